"""Reads rows of a table by their keys, and tells which of the keys it has not: what a repair publishes.

A key is the text of each column's value, as MySQL shows it; bytes are hexadecimal digits. A row is looked up as the
server compares keys, and is that of a key only if the bytes are equal: a target that compares otherwise may have two
rows where the source has one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from connector.errors import Unsupported
from connector.log.compact.row_keys import keys as keys_of
from connector.log.format import avro
from connector.log.ids import Action
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableLayout
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import BYTES, TEXTS, KeyColumn

Key = tuple[str, ...]
KEYS_AT_ONCE: Final = 200  # of a SELECT: more take the memory of the server's range optimizer
_LONGS: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class KeySet:
    """Some keys of a table.

    Args:
        keys: the keys.
    """

    keys: Sequence[Key]

    def condition(self, columns: tuple[KeyColumn, ...]) -> str:
        """An SQL condition that the rows of these keys fulfil; those of further keys may."""
        found = (
            " AND ".join(f"{column.name} = {literal(column, text)}" for column, text in zip(columns, key, strict=True))
            for key in self.keys
        )
        return f"({' OR '.join(f'({one})' for one in found)})"


class RowsByKey:
    """The rows of one table under some keys.

    Args:
        table: the table.
        keys: the keys.

    Raises:
        Unsupported: not every column of the table's key has lossless literals, or a key is not of its columns' types.
    """

    def __init__(self, table: SourceTable, keys: Sequence[Key]) -> None:
        columns = table.divided_by
        check_keys(table, keys)
        self.sets = [KeySet(keys[at : at + KEYS_AT_ONCE]) for at in range(0, len(keys), KEYS_AT_ONCE)]
        self._layout = table.layout
        kinds = [table.kinds[index] for index in table.layout.key]
        self._absent: dict[bytes, list[bytes]] = {}
        for key in keys:
            values = [_value(column, kind, text) for column, kind, text in zip(columns, kinds, key, strict=True)]
            self._absent[b"".join(values)] = values

    def found(self, rows: Rows) -> None:
        """Note rows that were read."""
        for key in keys_of(rows):
            self._absent.pop(key, None)

    def absent(self) -> Iterator[Rows]:
        """The deletes of the keys whose rows were not read, if there are any; their images have the key alone."""
        if not self._absent:
            return
        layout, data, ends = self._layout, bytearray(), array("Q")
        order = sorted(range(len(layout.key)), key=lambda place: layout.key[place])
        for values in self._absent.values():
            data += b"\2" + avro.array([values[place] for place in order]) + b"\0"
            ends.append(len(data))
        yield Rows(layout, Action.DELETE, bytes(data), ends, _bits(layout))


def check_keys(table: SourceTable, keys: Sequence[Key]) -> None:
    """Check that rows of a table can be read by keys.

    Raises:
        Unsupported: they cannot.
    """
    columns = table.divided_by
    if not columns or len(columns) < len(table.layout.key):
        raise Unsupported(
            "the rows of a table are not found by keys: it has no primary key, or one with a prefix or of another type",
            hint=f"thl load {table.layout.name}",
            table=table.layout.name,
        )
    for key in keys:
        if len(key) != len(columns) or not all(map(_fits, columns, key)):
            raise Unsupported(
                f"no row of the source can have the key {', '.join(key)[:200]!r}",
                hint="delete the target's row by hand",
                table=table.layout.name,
            )


def literal(column: KeyColumn, text: str) -> str:
    """The text of a value as an SQL literal that compares as the value does."""
    if column.base not in TEXTS:
        return column.literal(text)
    characters = f"CONVERT(_utf8mb4 x'{text.encode().hex()}' USING {column.charset})"
    return f"{characters} COLLATE {column.collation}"


def _fits(column: KeyColumn, text: str) -> bool:
    """True if a text is one of the column's type, so that nothing else gets into a statement."""
    if column.base in TEXTS:
        return True  # in hexadecimal
    return text.isascii() and column.can_give(text.upper())  # digits of either case are hexadecimal


def _value(column: KeyColumn, kind: str, text: str) -> bytes:
    """The value as rows of the log have it."""
    if kind == "i" and int(text) in _LONGS:
        return avro.union(int(text))
    return avro.union(bytes.fromhex(text) if column.base in BYTES else text)


def _bits(layout: TableLayout) -> bytes:
    """The bitmap of images that have the key alone."""
    found = bytearray((len(layout.columns) + 7) // 8)
    for index in layout.key:
        found[index >> 3] |= 1 << (index & 7)
    return bytes(found)
