"""Follows a table's secondary indexes through definitions: names, columns and order.

An index without a name in the definition gets the name that MySQL generates, because later statements use it. Indexes
are in the order of their definitions. The targets decide which of them to create.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from connector.ddl.syntax.ast_column import IndexColumn, IndexParts, NotUnderstood
from connector.ddl.syntax.ast_table import ForeignKey, Index

OTHER = "EXPRESSION"
"""The kind of an index with expressions."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of an index.

    Args:
        column: name of the column.
        length: the prefix length in characters or bytes; 0 for the whole column.
        descending: true for descending order.
    """

    column: str
    length: int = 0
    descending: bool = False


@dataclass(frozen=True, slots=True)
class TableIndex:
    """A secondary index.

    Args:
        name: name on the source.
        parts: the columns; of an index with expressions only its columns.
        unique: true for a unique index.
        kind: FULLTEXT, SPATIAL, VECTOR or `OTHER`; "" for an ordinary one.
        generated: true if the server made it for a foreign key; it drops it once another index serves the key. SHOW
            CREATE TABLE does not tell it.
    """

    name: str
    parts: tuple[KeyPart, ...]
    unique: bool = False
    kind: str = ""
    generated: bool = False


@dataclass(slots=True)
class Indexes:
    """The indexes of a table while the clauses of one statement are applied.

    MySQL first drops indexes, then renames the columns of the others, then adds new ones. Clauses about existing
    indexes use the columns' names before the statement, clauses that add indexes those after it.

    Args:
        before: the indexes before the statement.
        mariadb: true for MariaDB, where a descending index serves a foreign key.
    """

    before: tuple[TableIndex, ...] = ()
    mariadb: bool = False
    _dropped: list[tuple[str, bool]] = field(default_factory=list)
    _renamed: dict[str, str] = field(default_factory=dict)
    _added: list[tuple[Index | ForeignKey | str, bool]] = field(default_factory=list)

    def add(self, index: Index | ForeignKey, *, replaces: bool = False) -> None:
        """Add the indexes of a definition."""
        self._added.append((index, replaces))

    def add_unique(self, column: str) -> None:
        """Add the index of a column's own UNIQUE."""
        self._added.append((column, False))

    def drop(self, name: str, *, unique: bool = False) -> None:
        """Drop an index by its name; with `unique` only a unique one."""
        self._dropped.append((name, unique))

    def rename(self, old: str, new: str) -> None:
        """Rename an index."""
        self._renamed[old.casefold()] = new

    def after(self, called: Callable[[str], str | None], key: Sequence[str]) -> tuple[TableIndex, ...]:
        """Return the indexes after the statement.

        Args:
            called: returns the new name of a column that existed before the statement; None if it is dropped.
            key: the columns of the primary key after the statement.
        """
        found: list[TableIndex] = []
        for index in self.before:
            if any(_same(index.name, name) and (index.unique or not unique) for name, unique in self._dropped):
                continue
            parts = tuple(
                replace(part, column=name) for part in index.parts if (name := called(part.column)) is not None
            )
            if parts or not index.parts:
                new = self._renamed.get(index.name.casefold())
                generated = index.generated and new is None  # a renamed index stays
                found.append(replace(index, name=new or index.name, parts=parts, generated=generated))
        for item, replaces in self._added:
            match item:
                case str():
                    found.append(TableIndex("", (KeyPart(item),), unique=True))
                case Index():
                    found = _with_index(found, item, replaces=replaces)
                case ForeignKey():
                    if parts := _columns(item.parts):
                        found.append(TableIndex(item.index, parts, generated=True))
        return _named(_needed(found, key, mariadb=self.mariadb))


def _with_index(found: list[TableIndex], index: Index, *, replaces: bool) -> list[TableIndex]:
    there = bool(index.name) and any(_same(one.name, index.name) for one in found)
    if there and index.optional:
        return found
    if there and replaces:
        found = [one for one in found if not _same(one.name, index.name)]
    parts, kind = _columns(index.parts), index.kind
    if not kind and (isinstance(index.parts, NotUnderstood) or len(parts) < len(index.parts)):
        kind = OTHER
    return [*found, TableIndex(index.name, parts, index.unique, kind)]


def _needed(found: Sequence[TableIndex], key: Sequence[str], *, mariadb: bool) -> list[TableIndex]:
    """Leave out the indexes generated for foreign keys that another index, or the primary key, serves.

    As the server does, each index takes the place of at most one before it.
    """
    kept = [TableIndex("", tuple(KeyPart(column) for column in key))]
    for index in found:
        for at, other in enumerate(kept):
            if index.generated and _serves(other, index, mariadb=mariadb):
                break
            if other.generated and _serves(index, other, mariadb=mariadb):
                kept[at : at + 1] = []
                kept.append(index)
                break
        else:
            kept.append(index)
    return kept[1:]


def _serves(index: TableIndex, generated: TableIndex, *, mariadb: bool) -> bool:
    """True if an index begins with the columns of one that was generated for a foreign key."""
    if index.kind:
        return False
    wanted = [_folded(part, mariadb=mariadb) for part in generated.parts]
    return [_folded(part, mariadb=mariadb) for part in index.parts[: len(wanted)]] == wanted


def _folded(part: KeyPart, *, mariadb: bool) -> tuple[str, int, bool]:
    return part.column.casefold(), part.length, part.descending and not mariadb


def _named(found: Iterable[TableIndex]) -> tuple[TableIndex, ...]:
    """Name the indexes that have no name, in order."""
    named: list[TableIndex] = []
    for index in found:
        own = index.parts[0].column if index.parts and index.kind != OTHER else "functional_index"
        named.append(replace(index, name=index.name or _free(own, named)))
    return tuple(named)


def _columns(parts: IndexParts) -> tuple[KeyPart, ...]:
    if isinstance(parts, NotUnderstood):
        return ()
    return tuple(
        KeyPart(part.column.text, part.length, part.descending) for part in parts if isinstance(part, IndexColumn)
    )


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _free(name: str, taken: Iterable[TableIndex]) -> str:
    """Return the name that MySQL generates for an index: its first column's name, with a number if that exists."""
    names = {"primary", *(one.name.casefold() for one in taken)}
    number, free = 2, name
    while free.casefold() in names:
        number, free = number + 1, f"{name}_{number}"
    return free
