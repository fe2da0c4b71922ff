"""Transaction batches whose rows are written by an encoder of the tests."""

from __future__ import annotations

import struct
from array import array
from typing import Any

from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import Rows, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition

COLUMNS = (Column("a", "int"), Column("b", "text"))
LAYOUT = TableLayout(TableName("s", "t"), COLUMNS, (0,))
OTHER = TableLayout(TableName("s", "u"), COLUMNS, (0,))
START, END = SourcePosition("f.000001", 4), SourcePosition("f.000001", 900)
BEGIN = TransactionStart(1, 7, None, 0, 0, START, Kind.TRANSACTION, {})
ENDING = TransactionEnd(END, 1_000_001, Outcome.COMMIT)


def zigzag(number: int) -> bytes:
    bits = ((number << 1) ^ (number >> 63)) & (1 << 64) - 1
    out = bytearray()
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes([*out, bits])


def avro(value: object) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\2" + zigzag(value)
    if isinstance(value, float):
        return b"\4" + struct.pack("<d", value)
    text = value.encode() if isinstance(value, str) else value
    assert isinstance(text, bytes)
    return (b"\6" if isinstance(value, str) else b"\10") + zigzag(len(text)) + text


def avro_image(values: list[Any] | None) -> bytes:
    if values is None:
        return b"\0"
    return b"\2" + (zigzag(len(values)) + b"".join(map(avro, values)) if values else b"") + b"\0"


def rows(
    layout: TableLayout,
    action: Action,
    *images: tuple[list[Any] | None, list[Any] | None],
    before: bytes = b"",
    after: bytes = b"",
) -> Rows:
    data, ends = b"", array("Q")
    for old, new in images:
        data += avro_image(old) + avro_image(new)
        ends.append(len(data))
    return Rows(layout, action, data, ends, before, after)


def inserts(*numbers: int, layout: TableLayout = LAYOUT) -> Rows:
    return rows(layout, Action.INSERT, *((None, [number, "x"]) for number in numbers))
