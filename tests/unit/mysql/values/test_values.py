"""Every codec against a test encoder written from the format's description."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.errors import ConnectorError, CorruptBinlog, ValueNotRepresentable
from connector.mysql.values import charsets
from tests.support.binlog_writer import ColumnDef, through

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
INTEGERS = {1: 1, 2: 2, 9: 3, 3: 4, 8: 8}  # type code → bytes


@quick
@given(st.sampled_from(sorted(INTEGERS)), st.booleans(), st.lists(st.binary(min_size=8, max_size=8), min_size=1))
def test_integers_are_decoded(tmp_path: Path, code: int, unsigned: bool, raw: list[bytes]) -> None:
    size = INTEGERS[code]
    values = [value[:size] for value in raw]

    found = through(tmp_path, ColumnDef(code, unsigned=unsigned), values)

    numbers = [int.from_bytes(value, "little", signed=not unsigned) for value in values]
    assert found == [str(number) if number >= 2**63 else number for number in numbers]


@quick
@given(st.lists(st.floats(allow_nan=False), min_size=1), st.lists(st.floats(width=32, allow_nan=False), min_size=1))
def test_floats_are_decoded(tmp_path: Path, doubles: list[float], singles: list[float]) -> None:
    assert through(tmp_path, ColumnDef(5, b"\x08", False), [struct.pack("<d", x) for x in doubles]) == doubles
    assert through(tmp_path, ColumnDef(4, b"\x04", False), [struct.pack("<f", x) for x in singles]) == singles


def decimal_image(value: Decimal, precision: int, scale: int) -> bytes:
    """Groups of nine digits in four bytes, counted from the point; inverted below zero; the first bit flipped."""
    digits = f"{abs(int(value.scaleb(scale))):0{precision}d}"
    whole, part = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    groups = ([whole[:head]] if head else []) + [whole[at : at + 9] for at in range(head, len(whole), 9)]
    groups += [part[at : at + 9] for at in range(0, len(part), 9)]
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    image = bytearray(b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups))
    if value < 0:
        image = bytearray(byte ^ 0xFF for byte in image)
    image[0] ^= 0x80
    return bytes(image)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, list[Decimal]]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    number = st.integers(-(10**precision) + 1, 10**precision - 1)
    return precision, scale, [Decimal(f"{n}E-{scale}") for n in draw(st.lists(number, min_size=1, max_size=5))]


@quick
@given(decimals())
def test_decimals_are_decoded(tmp_path: Path, case: tuple[int, int, list[Decimal]]) -> None:
    import decimal

    precision, scale, values = case
    with decimal.localcontext(decimal.Context(prec=80)):
        images = [decimal_image(value, precision, scale) for value in values]
        expected = [f"{value:.{scale}f}" for value in values]

    assert through(tmp_path, ColumnDef(246, bytes([precision, scale]), False), images) == expected


def fraction_image(micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (micros // 10 ** (6 - 2 * size)).to_bytes(size, "big")


def cut(text: str, micros: int, digits: int) -> str:
    return f"{text}.{micros:06d}"[: len(text) + 1 + digits] if digits else text


fractions = st.tuples(st.integers(0, 6), st.integers(0, 999_999)).map(
    lambda pair: (pair[0], pair[1] // 10 ** (6 - pair[0]) * 10 ** (6 - pair[0]))
)


@quick
@given(st.datetimes(min_value=datetime.datetime(1, 1, 1)), fractions)
def test_datetimes_are_decoded(tmp_path: Path, at: datetime.datetime, fraction: tuple[int, int]) -> None:
    digits, micros = fraction
    months = at.year * 13 + at.month
    number = 1 << 39 | months << 22 | at.day << 17 | at.hour << 12 | at.minute << 6 | at.second
    image = number.to_bytes(5, "big") + fraction_image(micros, digits)

    found = through(tmp_path, ColumnDef(18, bytes([digits])), [image])

    assert found == [cut(at.replace(microsecond=0).isoformat(" "), micros, digits)]


@quick
@given(st.integers(1, 2**32 - 1), fractions)
def test_timestamps_are_decoded(tmp_path: Path, seconds: int, fraction: tuple[int, int]) -> None:
    digits, micros = fraction
    image = seconds.to_bytes(4, "big") + fraction_image(micros, digits)

    found = through(tmp_path, ColumnDef(17, bytes([digits])), [image])

    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    assert found == [cut(at.isoformat(" "), micros, digits)]


def test_a_fraction_of_the_first_second_is_not_the_zero_timestamp(tmp_path: Path) -> None:
    """MariaDB has `1970-01-01 00:00:00.5`: the zero timestamp is second 0 with the fraction 0."""
    images = [bytes(4) + fraction_image(micros, 1) for micros in (0, 500_000)]
    found = through(tmp_path, ColumnDef(17, b"\x01"), images)
    assert found == ["0000-00-00 00:00:00.0", "1970-01-01 00:00:00.5"]


@quick
@given(st.integers(-3_020_399, 3_020_399), fractions)
def test_times_are_decoded(tmp_path: Path, seconds: int, fraction: tuple[int, int]) -> None:
    digits, micros = fraction
    size = (digits + 1) // 2
    hours, rest = divmod(abs(seconds), 3600)
    clock = hours << 12 | rest // 60 << 6 | rest % 60
    number = (clock << 8 * size) + micros // 10 ** (6 - 2 * size)
    sign = "-" if seconds < 0 else ""
    image = ((0x800000 << 8 * size) + (-number if sign else number)).to_bytes(3 + size, "big")

    found = through(tmp_path, ColumnDef(19, bytes([digits])), [image])

    assert found == [cut(f"{sign}{hours:02d}:{rest // 60:02d}:{rest % 60:02d}", micros, digits)]


@quick
@given(st.dates(), st.integers(0, 255))
def test_dates_and_years_are_decoded(tmp_path: Path, day: datetime.date, year: int) -> None:
    image = (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little")

    assert through(tmp_path, ColumnDef(10), [image, bytes(3)]) == [day.isoformat(), "0000-00-00"]
    assert through(tmp_path, ColumnDef(13, unsigned=True), [bytes([year])]) == [1900 + year if year else 0]


def test_times_of_the_formats_before_5_6_are_decoded(tmp_path: Path) -> None:
    assert through(tmp_path, ColumnDef(12), [(20240229235958).to_bytes(8, "little"), bytes(8)]) == [
        "2024-02-29 23:59:58",
        "0000-00-00 00:00:00",
    ]
    assert through(tmp_path, ColumnDef(7), [(86400 * 365).to_bytes(4, "little"), bytes(4)]) == [
        "1971-01-01 00:00:00",
        "0000-00-00 00:00:00",
    ]
    negative = (-8385959).to_bytes(3, "little", signed=True)
    assert through(tmp_path, ColumnDef(11), [(10203).to_bytes(3, "little"), negative]) == ["01:02:03", "-838:59:59"]


@quick
@given(st.lists(st.text(max_size=300), min_size=1, max_size=5), st.sampled_from([45, 255, 33]))
def test_utf8_is_decoded(tmp_path: Path, texts: list[str], collation: int) -> None:
    raw = [text.encode() for text in texts]
    column = ColumnDef(252, b"\x02", collation=collation)
    assert through(tmp_path, column, [struct.pack("<H", len(text)) + text for text in raw]) == texts


@quick
@given(st.binary(min_size=1, max_size=40))
def test_bytes_that_are_not_utf8_are_refused_and_named(tmp_path: Path, raw: bytes) -> None:
    value = struct.pack("<H", len(raw)) + raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        with pytest.raises(ValueNotRepresentable) as caught:
            through(tmp_path, ColumnDef(252, b"\x02", collation=45), [value])
        assert caught.value.where["column"] == "c0"
        assert str(caught.value.where["table"]) == "s.t"
        assert caught.value.where["file"] == "log.000001"
    else:
        assert through(tmp_path, ColumnDef(252, b"\x02", collation=45), [value]) == [text]


def test_latin1_is_cp1252_and_its_five_holes_are_controls(tmp_path: Path) -> None:
    raw = bytes(range(256))
    holes = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
    expected = "".join(chr(byte) if byte in holes else bytes([byte]).decode("cp1252") for byte in raw)

    column = ColumnDef(252, b"\x02", collation=8)

    assert through(tmp_path, column, [struct.pack("<H", 256) + raw]) == [expected]


def test_a_byte_without_meaning_in_a_charset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueNotRepresentable):
        through(tmp_path, ColumnDef(252, b"\x01", collation=11), [b"\x01\x80"])
    with pytest.raises(ValueNotRepresentable):
        charsets.decode(b"\xff", "greek")


@quick
@given(st.binary(max_size=8), st.integers(8, 20))
def test_binary_is_padded_to_its_length(tmp_path: Path, raw: bytes, size: int) -> None:
    stripped = raw.rstrip(b"\0")
    column = ColumnDef(254, bytes([254, size]), collation=63)
    assert through(tmp_path, column, [bytes([len(stripped)]) + stripped]) == [raw.ljust(size, b"\0")]


@quick
@given(st.integers(1, 64), st.data())
def test_bits_enums_and_sets_are_decoded(tmp_path: Path, count: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, 2**count - 1))
    labels = tuple(f"l{n}" for n in range(count))
    raw = tuple(label.encode() for label in labels)
    size = (count + 7) // 8
    wide = 8 if size > 4 else size

    column = ColumnDef(16, bytes([count % 8, count // 8]))
    assert through(tmp_path, column, [bits.to_bytes(size, "big")]) == [bits.to_bytes(size, "big")]

    column = ColumnDef(254, bytes([248, wide]), collation=45, labels=raw)
    joined = ",".join(label for at, label in enumerate(labels) if bits >> at & 1)
    assert through(tmp_path, column, [bits.to_bytes(wide, "little")]) == [joined]

    index = data.draw(st.integers(0, count))
    column = ColumnDef(254, bytes([247, 1]), collation=45, labels=raw)
    assert through(tmp_path, column, [bytes([index])]) == [labels[index - 1] if index else ""]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (ColumnDef(246, b"\x0a\x00", False), b"\xff\xff\xff\xff\xff"),  # a group above 999999999
        (ColumnDef(18, b"\x00"), b"\x00\x00\x00\x00\x00"),  # a datetime below zero
        (ColumnDef(18, b"\x00"), b"\xff\xff\xff\xff\xff"),  # month 130000, hour 31
        (ColumnDef(17, b"\x06"), b"\x00\x00\x00\x01\xff\xff\xff"),  # 16.7 seconds in a fraction
        (ColumnDef(19, b"\x00"), b"\x00\x00\x00"),  # 2048 hours
        (ColumnDef(10), b"\xff\xff\xff"),  # year 32767
        (ColumnDef(254, b"\xf7\x01", collation=45, labels=(b"a",)), b"\x02"),  # an enum without label
        (ColumnDef(254, b"\xf8\x01", collation=45, labels=(b"a",)), b"\x02"),  # a set without label
        (ColumnDef(254, b"\xfe\x02", collation=63), b"\x03abc"),  # more than BINARY(2) holds
        (ColumnDef(252, b"\x04", collation=45), b"\xff\xff\xff\xff"),  # a length beyond the event
        (ColumnDef(19, b"\x07"), b"\x00\x00\x00\x00\x00\x00\x00"),  # seven digits
        (ColumnDef(246, b"\x42\x00", False), b"\x80" * 30),  # 66 digits
        (ColumnDef(252, b"\x05", collation=45), b"\x00" * 5),  # a length of five bytes
        (ColumnDef(16, b"\x01\x08"), b"\x00" * 9),  # 65 bits
    ],
)
def test_impossible_value_is_corrupt_and_named_with_its_column(tmp_path: Path, column: ColumnDef, value: bytes) -> None:
    with pytest.raises(CorruptBinlog) as caught:
        through(tmp_path, column, [value])
    assert {"file", "pos", "event", "table", "column"} <= caught.value.where.keys()


@quick
@given(st.integers(0, 255), st.binary(max_size=4), st.integers(0, 330), st.binary(max_size=64))
def test_random_bytes_of_any_type_are_decoded_or_refused(
    tmp_path: Path, code: int, meta: bytes, collation: int, value: bytes
) -> None:
    try:
        found = through(tmp_path, ColumnDef(code, meta, False, collation), [value])
    except ConnectorError:
        return
    assert len(found) >= 1
