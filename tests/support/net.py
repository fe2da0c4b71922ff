"""Net operations from Python rows, encoded by a small Avro writer of the tests' own."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Sequence

from connector.thl.layout import Column, TableLayout, TableName
from connector.thl.net import Images, NetRows

Row = Sequence[int | float | str | bytes | None]


def varint(number: int) -> bytes:
    """Avro's long."""
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def value(item: int | float | str | bytes | None) -> bytes:
    """A value of the union null, long, double, string, bytes."""
    match item:
        case None:
            return varint(0)
        case int():
            return varint(1) + varint(item)
        case float():
            return varint(2) + struct.pack("<d", item)
        case str():
            return varint(3) + varint(len(item.encode())) + item.encode()
        case bytes():
            return varint(4) + varint(len(item)) + item


def images(rows: Iterable[Row]) -> Images:
    """Full images."""
    data, ends = bytearray(), array("Q")
    for row in rows:
        for item in row:
            data += value(item)
        ends.append(len(data))
    return Images(bytes(data), ends)


def net(
    layout: TableLayout,
    *,
    inserts: Iterable[Row] = (),
    updates: Iterable[Row] = (),
    deletes: Iterable[Row] = (),
) -> NetRows:
    """Net operations on a table."""
    made = [images(rows) for rows in (inserts, updates, deletes)]
    return NetRows(layout, *made, changes=sum(len(each) for each in made))


def column(text: str) -> Column:
    """A column from `name type [unsigned] [not null]`; of text in utf8mb4."""
    name, kind, *rest = text.split()
    base, _, labels = kind.partition("(")
    named = tuple(re.findall(r"'([^']*)'", labels)) if base in ("enum", "set") else ()
    characters = base in ("char", "varchar", "enum", "set") or base.endswith("text")
    return Column(
        name=name,
        type=base if named else kind,
        unsigned="unsigned" in rest,
        charset="utf8mb4" if characters else "binary" if "blob" in base or "binary" in base else "",
        labels=named,
        nullable="not" not in rest,
    )


def layout(name: str, columns: Sequence[str], key: Sequence[str] = ()) -> TableLayout:
    """A layout of `schema.table` with columns as `column` reads them."""
    made = tuple(column(text) for text in columns)
    order = [each.name for each in made]
    return TableLayout(TableName(*name.split(".", 1)), made, tuple(order.index(part) for part in key))


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows sorted whatever database they came from: NULLs first, numbers before text."""
    return sorted(rows, key=lambda row: [(item is not None, isinstance(item, str), item) for item in row])
