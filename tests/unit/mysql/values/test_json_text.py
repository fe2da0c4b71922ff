"""MySQL's binary JSON: documents of every shape from a test encoder, and crafted ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.errors import ConnectorError, CorruptBinlog
from tests.support.binlog_writer import ColumnDef, through

JSON = ColumnDef(245, b"\x04")
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def varlen(size: int) -> bytes:
    out = b""
    while size > 0x7F:
        out += bytes([size & 0x7F | 0x80])
        size >>= 7
    return out + bytes([size])


def encode(value: Any, wide: bool) -> tuple[int, bytes]:
    """Type and value; the inlined ones as the bytes that stand in the entry."""
    match value:
        case None | True | False:
            return 4, bytes([[None, True, False].index(value)])
        case int() if -(2**15) <= value < 2**15:
            return 5, struct.pack("<h", value)
        case int() if -(2**31) <= value < 2**31:
            return 7, struct.pack("<i", value)
        case int() if value < 2**63:
            return 9, struct.pack("<q", value)
        case int():
            return 10, struct.pack("<Q", value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            return 12, varlen(len(value.encode())) + value.encode()
        case list():
            return 2 + wide, container(None, value, wide)
    keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
    return 0 + wide, container(keys, [value[key] for key in keys], wide)


def container(keys: list[str] | None, values: list[Any], wide: bool) -> bytes:
    number = struct.Struct("<I" if wide else "<H")
    raw_keys = [key.encode() for key in keys or []]
    head = 2 * number.size + len(raw_keys) * (number.size + 2) + len(values) * (number.size + 1)
    key_part, entries, value_part = b"", b"", b""
    for key in raw_keys:
        entries += number.pack(head + len(key_part)) + struct.pack("<H", len(key))
        key_part += key
    for value in values:
        kind, raw = encode(value, wide)
        inlined = kind in {4, 5, 6} or (wide and kind in {7, 8})
        place = raw.ljust(number.size, b"\0") if inlined else number.pack(head + len(key_part) + len(value_part))
        entries += bytes([kind]) + place
        value_part += b"" if inlined else raw
    body = entries + key_part + value_part
    return number.pack(len(values)) + number.pack(2 * number.size + len(body)) + body


def document(value: Any, wide: bool = True) -> bytes:
    kind, raw = encode(value, wide)
    return bytes([kind]) + raw


def through_json(folder: Path, *documents: bytes) -> list[object]:
    return through(folder, JSON, [struct.pack("<I", len(raw)) + raw for raw in documents])


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=20)
documents = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


@quick
@given(documents, st.booleans())
def test_the_text_reads_back_as_the_document(tmp_path: Path, value: Any, wide: bool) -> None:
    try:
        raw = document(value, wide)
    except struct.error:  # too large for the small form
        return
    (text,) = through_json(tmp_path, raw)
    assert isinstance(text, str)
    assert json.loads(text) == value


def test_separators_escapes_and_key_order_equal_mysqls(tmp_path: Path) -> None:
    value = {"bb": [1, -2.5, 1e20, '\u00e9\x01\n"\\/'], "a": {}, "c": [None, True, False]}
    assert through_json(tmp_path, document(value), b"") == [
        '{"a": {}, "c": [null, true, false], "bb": [1, -2.5, 1e20, "\u00e9\\u0001\\n\\"\\\\/"]}',
        "null",
    ]


@quick
@given(st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, 9 * n), st.integers(0, 9 * (9 - n)))), st.data())
def test_decimals_may_be_larger_than_a_column(tmp_path: Path, parts: tuple[int, int], draw: st.DataObject) -> None:
    """SQL computes with nine groups of nine digits, whichever side of the point they stand on."""
    whole, scale = parts
    if not whole + scale:
        return
    digits = draw.draw(st.text("0123456789", min_size=whole + scale, max_size=whole + scale))
    groups = [digits[: whole % 9], *(digits[at : at + 9] for at in range(whole % 9, whole + scale, 9))]
    raw = b"".join(int(group).to_bytes((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[len(group)], "big") for group in groups if group)
    body = bytes([whole + scale, scale, raw[0] | 0x80]) + raw[1:]

    (text,) = through_json(tmp_path, b"\x0f\xf6" + varlen(len(body)) + body)

    assert text == (digits[:whole].lstrip("0") or "0") + ("." + digits[whole:] if scale else "")


def nested(depth: int) -> bytes:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return document(value)


def test_json_of_100_levels_is_printed_and_deeper_is_refused(tmp_path: Path) -> None:
    assert through_json(tmp_path, nested(100)) == ["[" * 100 + "]" * 100]
    with pytest.raises(CorruptBinlog):
        through_json(tmp_path, nested(101))


def test_shared_offsets_cannot_make_a_small_document_large(tmp_path: Path) -> None:
    """Every level holds the next one a hundred times: 60 levels would be 10^120 characters."""
    inner = struct.pack("<HH", 0, 4)
    for _ in range(60):
        entries = b"".join(b"\x02" + struct.pack("<H", 4 + 300) for _ in range(100))
        body = struct.pack("<HH", 100, 4 + 300 + len(inner)) + entries + inner
        if len(body) > 60_000:
            break
        inner = body
    with pytest.raises(CorruptBinlog):
        through_json(tmp_path, b"\x02" + inner)


def test_a_container_that_holds_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptBinlog):
        through_json(tmp_path, b"\x02" + struct.pack("<HH", 1, 7) + b"\x02" + struct.pack("<H", 0))


@pytest.mark.parametrize(
    "raw",
    [
        b"\x0d\x00",  # no such type
        b"\x04\x03",  # no such literal
        b"\x0b" + struct.pack("<d", float("inf")),
        b"\x0c\x05abc",  # a string beyond the document
        b"\x0c\xff\xff\xff\xff\xff\x01",  # a length of 35 bits and more
        b"\x0c\x01\xff",  # not UTF-8
        b"\x0f\xf6\x2a\x52\x00" + bytes(40),  # a decimal of 82 digits
        b"\x0f\xf6\x2a\x51\x1e" + bytes(40),  # of 81, in ten groups: 51 digits before the point and 30 behind it
        b"\x0f\x0b\x08" + struct.pack("<q", 900 << 36),  # 900 hours
        b"\x00" + struct.pack("<HH", 0xFFFF, 0xFFFF),
        b"\x01" + struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF),
        b"\x03\x00",
    ],
)
def test_impossible_json_documents_are_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(CorruptBinlog):
        through_json(tmp_path, raw)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents, st.booleans(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1))
def test_damaged_json_is_printed_or_refused(
    tmp_path: Path, value: Any, wide: bool, damage: list[tuple[int, int]]
) -> None:
    try:
        raw = bytearray(document(value, wide))
    except struct.error:
        return
    for at, byte in damage:
        raw[at % len(raw)] = byte
    try:
        (text,) = through_json(tmp_path, bytes(raw))
    except ConnectorError:
        return
    assert isinstance(text, str)
