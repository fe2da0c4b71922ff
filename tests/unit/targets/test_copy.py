"""The binary COPY emitter: every form decoded by a reader of the tests."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.targets.postgres.copy import HEADER, TRAILER, CopyKind, ValueDoesNotFit, copy_rows
from tests.support.net import Row, images

EPOCH = datetime.datetime(2000, 1, 1)


def sent(kind: CopyKind, item: int | float | str | bytes | None, bits: int = 0) -> bytes | None:
    """The field of one value."""
    made = images([[item]])
    data, done = copy_rows(made.data, made.ends, 0, bytes([kind]), bytes([bits]), b"\1", ord("i"), 100)
    assert done == 1
    assert data[:7] == struct.pack(">hi", 2, 1) + b"i"
    (size,) = struct.unpack_from(">i", data, 7)
    assert len(data) == 11 + max(size, 0)
    return None if size < 0 else data[11:]


def numeric(field: bytes | None) -> str:
    """The output of numeric_out."""
    assert field is not None
    count, weight, sign, scale = struct.unpack_from(">hhHh", field)
    digits = struct.unpack_from(f">{count}h", field, 8)
    assert len(field) == 8 + 2 * count
    assert all(0 <= digit < 10000 for digit in digits)
    if count:
        assert digits[0] and digits[-1], "leading and trailing zero digits are left out"
    number = sum((Decimal(digit) * Decimal(10000) ** (weight - n) for n, digit in enumerate(digits)), Decimal(0))
    text = f"{abs(number):.{scale}f}"
    return f"-{text}" if sign == 0x4000 else text


@st.composite
def decimals(draw: st.DrawFn) -> str:
    scale = draw(st.integers(0, 30))
    digits = draw(st.integers(0, 10 ** draw(st.integers(0, 65)) - 1)) if draw(st.booleans()) else 0
    text = f"{digits:0{scale + 1}d}"
    whole, fraction = (text[:-scale], text[-scale:]) if scale else (text, "")
    sign = "-" if digits and draw(st.booleans()) else ""
    return f"{sign}{whole}{'.' + fraction if scale else ''}"


@given(decimals())
def test_numeric_from_text_keeps_every_digit(text: str) -> None:
    import decimal

    with decimal.localcontext(prec=200):
        assert numeric(sent(CopyKind.NUMERIC, text)) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_numeric_from_an_integer_keeps_every_digit(number: int) -> None:
    assert numeric(sent(CopyKind.NUMERIC, number)) == str(number)


@pytest.mark.parametrize(
    ("text", "reason"),
    [*((text, "form") for text in ("", "-", ".", "1-", "1e5", "1.2.3", "+1", " 1")), ("9" * 201, "digits")],
)
def test_text_that_is_no_number_stops(text: str, reason: str) -> None:
    with pytest.raises(ValueDoesNotFit) as refused:
        sent(CopyKind.NUMERIC, text)
    assert refused.value.reason == reason


@given(
    st.sampled_from([(CopyKind.INT2, 16), (CopyKind.INT4, 32), (CopyKind.INT8, 64)]), st.integers(-(2**63), 2**63 - 1)
)
def test_integers_fit_or_stop(kind: tuple[CopyKind, int], number: int) -> None:
    if -(2 ** (kind[1] - 1)) <= number < 2 ** (kind[1] - 1):
        assert sent(kind[0], number) == number.to_bytes(kind[1] // 8, "big", signed=True)
    else:
        with pytest.raises(ValueDoesNotFit) as refused:
            sent(kind[0], number)
        assert refused.value.reason == "range"


@given(st.floats(allow_nan=False))
def test_double_is_sent_as_eight_bytes(number: float) -> None:
    assert sent(CopyKind.FLOAT8, number) == struct.pack(">d", number)


@given(st.floats(width=32, allow_nan=False))
def test_float_is_sent_as_four_bytes(number: float) -> None:
    assert sent(CopyKind.FLOAT4, number) == struct.pack(">f", number)


def test_double_in_a_float_column_stops() -> None:
    with pytest.raises(ValueDoesNotFit) as refused:
        sent(CopyKind.FLOAT4, 0.1)
    assert refused.value.reason == "precision"


@given(st.dates())
def test_date_is_sent_as_days_since_2000(date: datetime.date) -> None:
    field = sent(CopyKind.DATE, f"{date.year:04}-{date.month:02}-{date.day:02}")
    assert field is not None
    assert struct.unpack(">i", field) == ((date - EPOCH.date()).days,)


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_date_outside_the_calendar_stops(year: int, month: int, day: int) -> None:
    text = f"{year:04}-{month:02}-{day:02}"
    try:
        datetime.date(year, month, day)
    except ValueError:
        with pytest.raises(ValueDoesNotFit) as refused:
            sent(CopyKind.DATE, text)
        assert refused.value.reason == ("zero_date" if 0 in (year, month, day) else "calendar")
    else:
        assert sent(CopyKind.DATE, text) is not None


@given(st.datetimes(), st.integers(0, 6))
def test_timestamp_is_sent_as_microseconds_since_2000(moment: datetime.datetime, places: int) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 10 ** (6 - places) * 10 ** (6 - places))
    text = f"{moment.year:04}-{moment:%m-%d %H:%M:%S}" + f".{moment.microsecond:06}"[: places + 1 if places else 0]
    field = sent(CopyKind.TIMESTAMP, text)
    assert field is not None
    assert struct.unpack(">q", field) == ((moment - EPOCH) // datetime.timedelta(microseconds=1),)


@given(st.integers(-3_020_399_999_999, 3_020_399_999_999))
def test_interval_is_sent_as_microseconds(micros: int) -> None:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    sign = "-" if micros < 0 else ""
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    assert sent(CopyKind.INTERVAL, text) == struct.pack(">qii", micros, 0, 0)


@pytest.mark.parametrize("kind", [CopyKind.DATE, CopyKind.TIMESTAMP, CopyKind.INTERVAL])
@given(text=st.text(max_size=30))
def test_malformed_time_stops_within_its_bytes(kind: CopyKind, text: str) -> None:
    try:
        sent(kind, text)
    except ValueDoesNotFit:
        return
    assert any(letter.isdigit() for letter in text)


@given(st.integers(1, 64), st.data())
def test_bits_are_left_aligned(bits: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 2**bits - 1))
    size = (bits + 7) // 8
    field = sent(CopyKind.BIT, number.to_bytes(size, "big"), bits)
    assert field is not None
    assert struct.unpack_from(">i", field) == (bits,)
    assert int.from_bytes(field[4:], "big") == number << (8 * size - bits)


@pytest.mark.parametrize(("bits", "value"), [(3, b"\x08"), (9, b"\1"), (8, b"\1\1")])
def test_bits_of_another_length_stop(bits: int, value: bytes) -> None:
    with pytest.raises(ValueDoesNotFit) as refused:
        sent(CopyKind.BIT, value, bits)
    assert refused.value.reason == "bits"


@given(st.text())
def test_text_is_sent_as_utf8_and_a_zero_character_stops(text: str) -> None:
    if "\0" in text:
        with pytest.raises(ValueDoesNotFit) as refused:
            sent(CopyKind.TEXT, text)
        assert refused.value.reason == "zero_character"
    else:
        assert sent(CopyKind.TEXT, text) == text.encode()


@pytest.mark.parametrize("kind", list(CopyKind))
def test_null_of_every_kind_is_sent_as_null(kind: CopyKind) -> None:
    assert sent(kind, None) is None


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        (CopyKind.INT4, "1"),
        (CopyKind.INT4, 1.0),
        (CopyKind.FLOAT8, 1),
        (CopyKind.TEXT, b"a"),
        (CopyKind.BYTEA, "a"),
        (CopyKind.DATE, 1),
    ],
)
def test_value_of_another_kind_stops(kind: CopyKind, item: int | float | str | bytes) -> None:
    with pytest.raises(ValueDoesNotFit) as refused:
        sent(kind, item)
    assert refused.value.reason == "kind"


@given(st.lists(st.tuples(st.integers(-9, 9), st.binary(max_size=50)), max_size=30), st.integers(1, 200))
def test_chunks_joined_are_the_whole(rows: list[Row], limit: int) -> None:
    made = images(rows)
    kinds = bytes([CopyKind.INT8, CopyKind.BYTEA])

    def chunk(first: int, most: int) -> tuple[bytes, int]:
        return copy_rows(made.data, made.ends, first, kinds, b"\0\0", b"\1\1", ord("u"), most)

    whole, end = chunk(0, 1 << 20)
    assert end == len(rows)
    parts, done = b"", 0
    while done < len(rows):
        part, done = chunk(done, limit)
        parts += part
    assert parts == whole


def test_column_not_selected_is_null() -> None:
    made = images([(1, "not even looked at \0")])
    data, _ = copy_rows(made.data, made.ends, 0, bytes([CopyKind.INT2, CopyKind.TEXT]), b"\0\0", b"\1\0", ord("d"), 100)
    assert data == struct.pack(">hi", 3, 1) + b"d" + struct.pack(">ihi", 2, 1, -1)


def test_value_that_does_not_fit_has_image_and_column() -> None:
    made = images([(1, "a"), (2, "b\0")])
    with pytest.raises(ValueDoesNotFit) as caught:
        copy_rows(made.data, made.ends, 0, bytes([CopyKind.INT2, CopyKind.TEXT]), b"\0\0", b"\1\1", ord("i"), 1000)
    assert (caught.value.image, caught.value.column) == (1, 1)


def test_copy_begins_and_ends_with_postgresqls_bytes() -> None:
    assert HEADER == b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"
    assert TRAILER == b"\xff\xff"
