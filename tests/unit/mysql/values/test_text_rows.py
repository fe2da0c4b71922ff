"""MySQL's text protocol to Avro, for any packet boundaries; protocol violations are refused."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import CorruptBinlog, ValueNotRepresentable
from connector.mysql.values.columns import Spec, keeping_bytes, text_spec
from connector.mysql.values.text_rows import ServerError, TextRows
from tests.support.binlog import ROW

END = b"\xfe\x00\x00\x02\x00"


def length(size: int) -> bytes:
    if size < 0xFB:
        return bytes([size])
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little")
    return b"\xfd" + size.to_bytes(3, "little") if size < 1 << 24 else b"\xfe" + size.to_bytes(8, "little")


def payload(row: list[bytes | None]) -> bytes:
    return b"".join(b"\xfb" if value is None else length(len(value)) + value for value in row)


def packets(*payloads: bytes, sequence: int = 5) -> bytes:
    out = b""
    for body in payloads:
        rest = body
        while True:
            part, rest = rest[: (1 << 24) - 1], rest[(1 << 24) - 1 :]
            out += len(part).to_bytes(3, "little") + bytes([sequence & 0xFF]) + part
            sequence += 1
            if len(part) < (1 << 24) - 1:
                break
    return out


def decoded(rows: TextRows) -> list[list[Any]]:
    data, ends = rows.drain()
    stream = io.BytesIO(bytes(data))
    found = []
    for end in ends:
        row = fastavro.schemaless_reader(stream, ROW, None)
        assert stream.tell() == end
        assert row["before"] is None
        found.append(row["after"])
    assert stream.tell() == len(data)
    return found


def read(kinds: str, wire: bytes, *cuts: int, texts: Sequence[Spec | None] = ()) -> list[list[Any]]:
    rows = TextRows(kinds, 5, texts)
    found: list[list[Any]] = []
    edges = sorted({0, len(wire), *(cut % (len(wire) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        rows.feed(wire[start:stop])
        missing = rows.decode(1 << 30, 1 << 40)
        assert rows.ended or missing > 0
        found += decoded(rows)
    assert rows.ended
    return found


integers = st.integers(-(2**63), 2**64 - 1)
values = st.one_of(st.none(), st.text(max_size=300))
rows_of_values = st.lists(
    st.tuples(
        st.one_of(st.none(), integers),
        st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
        st.one_of(st.none(), st.text(max_size=300)),
        st.one_of(st.none(), st.binary(max_size=300)),
    ),
    max_size=8,
)


@given(rows=rows_of_values, cuts=st.lists(st.integers(0, 10_000), max_size=8))
def test_values_do_not_depend_on_packet_boundaries(rows: list[tuple[Any, ...]], cuts: list[int]) -> None:
    wire = packets(
        *(
            payload(
                [
                    None if i is None else str(i).encode(),
                    None if d is None else repr(d).encode(),
                    None if s is None else s.encode(),
                    b,
                ]
            )
            for i, d, s, b in rows
        ),
        END,
    )
    expected = [[str(i) if i is not None and i >= 2**63 else i, d, s, b] for i, d, s, b in rows]
    assert read("idsb", wire, *cuts) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0000", 0),
        (b"-0", 0),
        (b"00042", 42),
        (b"-9223372036854775808", -(2**63)),
        (b"9223372036854775808", str(2**63)),
    ],
)
def test_integers_are_decoded(text: bytes, value: object) -> None:
    assert read("i", packets(payload([text]), END)) == [[value]]


@pytest.mark.parametrize("text", [b"", b"-", b"1.0", b"18446744073709551616", b"-9223372036854775809", b" 1", b"0x1"])
def test_invalid_integer_is_refused(text: bytes) -> None:
    with pytest.raises(CorruptBinlog):
        read("i", packets(payload([text]), END))


def test_negative_zero_and_extreme_doubles_are_decoded() -> None:
    found = read("ddd", packets(payload([b"-0", b"5e-324", b"1.7976931348623157e308"]), END))[0]
    assert math.copysign(1, found[0]) == -1
    assert [struct.pack("d", value) for value in found[1:]] == [
        struct.pack("d", v) for v in (5e-324, 1.7976931348623157e308)
    ]


@pytest.mark.parametrize("size", [250, 251, 0xFFFF, 0x10000, (1 << 24) - 5, (1 << 24) - 1, 1 << 24, (1 << 25) + 3])
def test_values_of_every_length_encoding_are_decoded(size: int) -> None:
    value = bytes(size)
    assert read("bs", packets(payload([value, b"x"]), payload([b"", None]), END), 7, size // 2) == [
        [value, "x"], [b"", None],
    ]  # fmt: skip


def test_limits_end_a_batch_with_a_row() -> None:
    rows = TextRows("b", 5)
    rows.feed(packets(*(payload([bytes(100)]) for _ in range(10)), END))
    assert rows.decode(3, 1 << 30) == 0
    assert rows.rows == 3
    decoded(rows)
    assert rows.decode(1 << 30, 150) == 0
    assert rows.rows == 2
    assert not rows.ended


def test_error_packet_raises_its_error() -> None:
    with pytest.raises(ServerError) as raised:
        read("i", packets(payload([b"1"]), b"\xff\x84\x05#HY000gone"))
    assert (raised.value.code, raised.value.text) == (1412, "#HY000gone")


@pytest.mark.parametrize(
    "wire",
    [
        packets(payload([b"1", b"2"]), END),
        packets(b"", END),
        packets(b"\x09abc", END),
        packets(b"\xfc\x01", END),
        packets(b"\xff", END),
        packets(b"\xff\x01", END),
        packets(b"\xfe" + b"\xff" * 8 + b"abc", END),
        packets(payload([b"1"]), END, sequence=6),
        packets(payload([b"1"])) + packets(END, sequence=9),
    ],
)
def test_protocol_violation_is_refused(wire: bytes) -> None:
    with pytest.raises(CorruptBinlog):
        read("s", wire)


@given(garbage=st.binary(max_size=200))
def test_random_bytes_raise_or_wait_for_more(garbage: bytes) -> None:
    rows = TextRows("isdb", 0)
    rows.feed(garbage)
    try:
        rows.decode(100, 1 << 20)
    except (CorruptBinlog, ServerError):
        return
    decoded(rows)


def test_text_becomes_utf8_or_names_the_invalid_bytes() -> None:
    sets = ["utf8mb4", "gbk", "latin1", "utf16", "sjis"]
    texts = [None, *map(text_spec, sets)]
    row: list[bytes | None] = [b"7", "a\u20ac".encode(), b"b\xd6\xd0", b"\x80", b"\xd8\x3d\xde\x00", None]
    empty: list[bytes | None] = [b"8", b"", b"", b"", b"", b"\xb1" * 70_000]

    found = read("ittttt", packets(payload(row), payload(empty), END), 9, texts=texts)

    assert found == [[7, "a\u20ac", "b\u4e2d", "\u20ac", "\U0001f600", None], [8, "", "", "", "", "\uff71" * 70_000]]
    kept = [keeping_bytes(text_spec(name)) for name in sets]
    wrong: list[bytes | None] = [b"\xff", b"\xff", b"x", b"\xd8", b"x\xff"]
    assert read("ttttt", packets(payload(wrong), END), texts=kept) == [[b"\xff", b"\xff", "x", b"\xd8", b"x\xff"]]
    rows = TextRows("sst", 5, [None, None, text_spec("gbk")])
    rows.feed(packets(payload([b"", b"", b"a\xff"]), END))
    with pytest.raises(ValueNotRepresentable) as raised:
        rows.decode(10, 1 << 20)
    assert (rows.column, raised.value.where) == (2, {"bytes": "ff", "at": 1})


def test_text_column_without_a_character_set_is_refused() -> None:
    gbk = text_spec("gbk")
    for kinds, texts in (("t", []), ("it", [None, None]), ("ii", [None, gbk]), ("tt", [gbk])):
        with pytest.raises(ValueError):
            TextRows(kinds, 0, texts)


def test_unknown_column_kind_is_refused() -> None:
    with pytest.raises(ValueError):
        TextRows("iz", 0)
