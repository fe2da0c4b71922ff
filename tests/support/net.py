"""Net changes from Python rows, encoded by a small Avro writer of the tests."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence

from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.transaction.layout import Column, TableLayout, TableName

Row = Sequence[int | float | str | bytes | None]
Told = Mapping[str, int | float | str | bytes | None]


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
    """Images with all columns."""
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
    changed: Sequence[tuple[Told, Row]] = (),
    moved: Sequence[tuple[Told, Row]] = (),
    added: Sequence[Told] = (),
) -> NetChanges:
    """Net changes of a table; rows may have only some columns, and the key under which they are stored."""
    made = [images(rows) for rows in (inserts, updates, deletes)]
    result = NetChanges(layout, *made, changes=0)
    if changed or moved or added:
        result.partial = Partial(
            images(told(layout, *each) for each in changed),
            images(told(layout, *each) for each in moved),
            images(told(layout, each, ()) for each in added),
        )
    result.changes = len(result)
    return result


def told(layout: TableLayout, values: Told, base: Row) -> Row:
    """An image of `connector.log.compact.net_changes.Partial`, which always has the key."""
    names = [column.name for column in layout.columns]
    key = dict(zip((names[index] for index in layout.key), base, strict=True)) if base else {}
    values = {**key, **values}
    bits = sum(1 << index for index, name in enumerate(names) if name in values)
    present = bits.to_bytes((len(names) + 7) // 8, "little")
    return (*(values.get(name) for name in names), present, *base)


def column(text: str) -> Column:
    """A column from `name type [unsigned] [not null]`; text is in utf8mb4."""
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
    """Rows sorted alike for every database: NULLs first, numbers before text."""
    return sorted(rows, key=lambda row: [(item is not None, isinstance(item, str), item) for item in row])
