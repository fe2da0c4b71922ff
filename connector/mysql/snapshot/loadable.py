"""Decides which tables can be loaded; the only list of reasons why not.

Tables that are published under one name are one load: what keeps one of them from it keeps all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.errors import PreflightError
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, Filter

SEQUENCE: Final = "SEQUENCE"
_ORDINARY: Final = "BASE TABLE"
_NAMED: Final = 20  # tables in an error
_NOT_SYSTEM: Final = "TABLE_SCHEMA NOT IN ({})".format(", ".join(f"'{name}'" for name in sorted(SYSTEM_SCHEMAS)))
_TABLES: Final = (
    "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, TABLE_TYPE AS kind, e.TRANSACTIONS = 'YES' AS transactional"
    " FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES e USING (ENGINE)"
    f" WHERE TABLE_TYPE IN ('{_ORDINARY}', 'SYSTEM VERSIONED', '{SEQUENCE}') AND {_NOT_SYSTEM}"
    " ORDER BY TABLE_SCHEMA, TABLE_NAME"
)
_KEYED: Final = (
    "SELECT DISTINCT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.STATISTICS"
    f" WHERE INDEX_NAME = 'PRIMARY' AND {_NOT_SYSTEM}"
)


class Purpose(Enum):
    """The purpose of a load."""

    INITIAL = auto()  # the beginning of a log: targets have no rows yet
    AGAIN = auto()  # `thl load`: targets may have rows
    JOIN = auto()  # a table that source.filters captures only now, by itself
    ROUND = auto()  # the chunks of a load that was accepted


@dataclass(frozen=True, slots=True)
class LoadCandidate:
    """A table of the source, as far as it decides whether the table can be loaded.

    Args:
        name: the table.
        has_key: true if it has a primary key.
        transactional: true if its engine has transactions.
        kind: its TABLE_TYPE in information_schema.
    """

    name: TableName
    has_key: bool
    transactional: bool
    kind: str = _ORDINARY

    def __str__(self) -> str:
        return str(self.name) if self.ordinary else f"{self.name} ({self.kind.lower()})"

    @property
    def ordinary(self) -> bool:
        """True if a SELECT shows its rows as the binary log has them."""
        return self.kind == _ORDINARY

    @classmethod
    def of(cls, table: SourceTable) -> LoadCandidate:
        """The candidate of a table whose columns are known; of those only ordinary ones are."""
        return cls(table.layout.name, bool(table.layout.key), table.transactional)


SameNameTables = Sequence[LoadCandidate]
_Culprits = Callable[[SameNameTables, Filter], Iterable[LoadCandidate]]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why tables cannot be loaded.

    Args:
        text, hint: of the error; `{}` in the hint stands for the first table, in SQL.
        purposes: the loads for which it counts.
        culprits: the tables of a group, which are published under one name, that it is about.
    """

    text: str
    hint: str
    purposes: Collection[Purpose]
    culprits: _Culprits


def _without(action: str) -> _Culprits:
    """The tables of which an action is not published."""
    return lambda group, filter: [one for one in group if action not in filter.actions(*one.name)]


def _undefined(group: SameNameTables, filter: Filter) -> Iterable[LoadCandidate]:
    without = list(_without("ddl")(group, filter))
    return without if len(without) == len(group) else ()


_ANY: Final = frozenset(Purpose)
_RULED: Final = frozenset({Purpose.AGAIN, Purpose.JOIN})

REASONS: Final = (
    Reason(
        "tables whose SELECT differs from the binary log cannot be loaded",
        "exclude them with source.filters.ignore",
        _ANY,
        lambda group, _: [one for one in group if not one.ordinary],
    ),
    Reason(
        "tables whose engine has no transactions cannot be read consistently",
        "ALTER TABLE {} ENGINE = InnoDB; or exclude them with source.filters.ignore",
        _ANY,
        lambda group, _: [one for one in group if one.ordinary and not one.transactional],
    ),
    Reason(
        "source.filters.tables does not publish the rows",
        "add insert to the actions of the table",
        frozenset({Purpose.JOIN}),
        _without("insert"),
    ),
    Reason(
        "a load begins with the table's definition, and source.filters.tables does not publish it",
        "add ddl to its actions",
        _RULED,
        _undefined,
    ),
    Reason(
        "the load would delete the rows that are no longer on the source, which source.filters.tables keeps",
        "add delete to the actions of the table, or correct the target by hand",
        _RULED,
        _without("delete"),
    ),
    Reason(
        "tables that are published under one name cannot be loaded without a primary key",
        "add one, or exclude them with source.filters.ignore",
        frozenset({Purpose.INITIAL, Purpose.AGAIN}),
        lambda group, _: [one for one in group if len(group) > 1 and not one.has_key],
    ),
    Reason(
        "a table that is published under the name of others cannot join by itself",
        "thl load loads all of them",
        frozenset({Purpose.JOIN}),
        lambda group, _: group if len(group) > 1 else (),
    ),
)
"""All reasons, in the order in which they are named."""


@dataclass(frozen=True, slots=True)
class Unloadable:
    """A reason, and the tables that it is about.

    Args:
        reason: the reason.
        tables: the tables.
        purpose: what they would be loaded for.
    """

    reason: Reason
    tables: tuple[LoadCandidate, ...]
    purpose: Purpose

    @property
    def error(self) -> PreflightError:
        """The error of those who would load them."""
        more = len(self.tables) - _NAMED
        names = ", ".join(map(str, self.tables[:_NAMED])) + (f" and {more} more" if more > 0 else "")
        first = self.tables[0].name
        hint = self.reason.hint.format(f"{quoted(first.schema)}.{quoted(first.table)}")
        if self.purpose is Purpose.INITIAL:
            hint += "; or begin without a load: source.start = now"
        return PreflightError(self.reason.text, hint=hint, tables=names)


def candidates(connection: Connection) -> list[LoadCandidate]:
    """All tables of the source with rows, and MariaDB's sequences, but for the server's own."""
    keyed = {(row["s"], row["t"]) for row in query(connection, _KEYED)}
    return [
        LoadCandidate(
            TableName(row["s"], row["t"]), (row["s"], row["t"]) in keyed, bool(row["transactional"]), str(row["kind"])
        )
        for row in query(connection, _TABLES)
    ]


def captured(tables: Iterable[LoadCandidate], filter: Filter) -> list[LoadCandidate]:
    """The tables whose rows are captured."""
    return [one for one in tables if filter.captures(*one.name) and "insert" in filter.actions(*one.name)]


def initially_captured(tables: Iterable[LoadCandidate], filter: Filter) -> list[LoadCandidate]:
    """The captured tables that an initial load reads, or refuses because a SELECT shows them otherwise than the log."""
    return [
        one
        for one in tables
        if filter.captures(*one.name) and (not one.ordinary or "insert" in filter.actions(*one.name))
    ]


def unloadable(tables: Iterable[LoadCandidate], filter: Filter, purpose: Purpose) -> dict[TableName, Unloadable]:
    """The loads that are not possible.

    Args:
        tables: the captured tables; of those that are published under one name all.
        filter: what is published of them.
        purpose: what the loads are for.

    Returns:
        The first reason of each, by the name under which its tables are published.
    """
    groups: dict[TableName, list[LoadCandidate]] = {}
    for one in tables:
        groups.setdefault(filter.published_name(one.name), []).append(one)
    found: dict[TableName, Unloadable] = {}
    for published, group in groups.items():
        for reason in (one for one in REASONS if purpose in one.purposes):
            if culprits := tuple(reason.culprits(group, filter)):
                found[published] = Unloadable(reason, culprits, purpose)
                break
    return found


def by_reason(found: Iterable[Unloadable]) -> Iterator[Unloadable]:
    """Yield each reason once, with all of its tables."""
    joined: dict[str, Unloadable] = {}
    for one in found:
        before = joined.get(one.reason.text)
        joined[one.reason.text] = one if before is None else replace(before, tables=before.tables + one.tables)
    yield from joined.values()


def refuse_unloadable(tables: Iterable[LoadCandidate], filter: Filter, purpose: Purpose) -> None:
    """Check that tables can be loaded; arguments as those of `unloadable`.

    Raises:
        PreflightError: some cannot; names all that the first reason is about.
    """
    for one in by_reason(unloadable(tables, filter, purpose).values()):
        raise one.error
