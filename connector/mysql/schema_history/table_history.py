"""Follows the source's tables through its log, for rows whose TABLE_MAP does not name the columns.

The history begins with the data dictionary at a position and follows every later definition. It must agree with
each TABLE_MAP: types, lengths, NULL; signedness and character sets too, unless the TABLE_MAP lacks them (MariaDB with
NO_LOG, MySQL before 8.0). Nothing is guessed: an unknown or contradicting table stops reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from connector.ddl.schema_changes import schema_changes
from connector.ddl.schema_draft import Rules
from connector.ddl.table_spec import creations, inherits_charset
from connector.errors import CorruptBinlog, Unsupported
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.rules import NEW_LOG
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import VIEW, Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.transaction.statement_options import SCHEMA_CHARSET, TABLE_EXISTED
from connector.mysql.binlog.events.column_names import ColumnNameResolver, RefusingResolver
from connector.mysql.binlog.events.query import UNFINISHED, Query
from connector.mysql.binlog.events.table_map import TableMap, table_layout
from connector.mysql.transforms.filters import Filter
from connector.mysql.values.collations import charset_of, collation_of
from connector.mysql.values.columns import NUMERIC, TEXT, Raw, Spec, compile_column

UTF8: Final = 45  # the collation utf8mb4_general_ci
HINT: Final = (
    "SET GLOBAL binlog_row_metadata = FULL; (MySQL before 8.0 has no such variable) then "
    f"{NEW_LOG}, with an initial load"
)


def history_of(tables: Definitions | None, filter: Filter, position: PositionRecord) -> ColumnNameResolver:
    """A resolver from a position on. Without known tables it refuses tables without column names."""
    return RefusingResolver() if tables is None else TableHistory(tables, filter, position)


class DefinitionsBefore:
    """Tells definitions before a position, which may be read again, from later ones.

    Args:
        position: the position; None: no definition is read again.
    """

    def __init__(self, position: PositionRecord | None) -> None:
        self._resume = position.resume if position else None
        self._gtids = parse_gtids(position.gtid_set) if position and position.gtid_set is not None else None

    def __call__(self, gtid: str | None, position: SourcePosition) -> bool:
        """True if a definition with this GTID and end is before the position."""
        if gtid is not None and self._gtids is not None:
            return gtid in self._gtids
        return self._resume is not None and position <= self._resume


class TableHistory:
    """Names columns by the known definitions of their tables; a `ColumnNameResolver`.

    Args:
        known: the tables at the position.
        filter: decides what is captured.
        position: definitions before it are part of `known`; None: none is read again.
    """

    def __init__(self, known: Definitions, filter: Filter, position: PositionRecord | None = None) -> None:
        self._known = known
        self._filter = filter
        self._rules = Rules(filter.fold, filter.captures_schema, old=bool(filter.unlogged_options))
        self._contained = DefinitionsBefore(position)
        self._changes: list[Redefined] = []

    def follow(self, query: Query, gtid: str | None, position: SourcePosition) -> bool:
        """Follows a definition.

        Args:
            query: the statement.
            gtid: GTID of its transaction; None without one.
            position: the position after it.

        Returns:
            True if tables were changed, added or removed.
        """
        statement = query.statement
        if self._contained(gtid, position) or statement.options.get("alter") in UNFINISHED:
            return False
        if self._filter.passes(statement):
            return False
        change = schema_changes(
            statement,
            self._known,
            self._rules,
            schemas=query.schemas or {name.schema for name in self._known.tables},
            server_charset=_charset(statement.options.get("collation_server")),
            position=str(position),
        )
        if not (change.tables or change.schemas or change.renamed):
            return False
        self._known = self._known.after(change)
        self._changes.append(change)
        return True

    def drain(self) -> Redefined:
        """Returns the changes since the last call."""
        changes, self._changes = self._changes, []
        return Redefined(
            {name: table for change in changes for name, table in change.tables.items()},
            {name: charset for change in changes for name, charset in change.schemas.items()},
            {new: old for change in changes for new, old in change.renamed.items()},
        )

    def known(self, name: TableName) -> TableLayout | None:
        """A table after the last definition; None: it is not known."""
        found = self._known.tables.get(self._folded(name))
        return None if found is None or found.unknown else found.layout

    def creation_options(self, statement: Statement) -> dict[str, str]:
        """The options of CREATE TABLE that only the tables before it tell."""
        readings = creations(statement)
        options = {}
        inherited = {one.table.name.schema for one in readings if inherits_charset(one)}
        if len(inherited) == 1 and (charset := self._known.schemas.get(self._filter.fold(inherited.pop()))):
            options[SCHEMA_CHARSET] = charset
        optional = {one.table.name if one.optional else None for one in readings}
        if len(optional) == 1 and (name := optional.pop()) is not None:
            known = self._known.tables.get(self._folded(name))
            if known is not None and known.unknown in ("", VIEW):
                options[TABLE_EXISTED] = "1"
            elif known is None and self._filter.fold(name.schema) in self._known.schemas:
                options[TABLE_EXISTED] = "0"
        return options

    def _folded(self, name: TableName) -> TableName:
        return TableName(self._filter.fold(name.schema), self._filter.fold(name.table))

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """The table with the names of its columns.

        Raises:
            Unsupported: the table is not known.
            CorruptBinlog: the TABLE_MAP contradicts the history.
        """
        known = self._known.tables.get(self._folded(table.name))
        if known is None:
            raise Unsupported(
                "the binary log does not name the columns of a table, and the history of tables does not know it",
                hint=HINT,
                table=table.name,
            )
        if known.unknown:
            raise Unsupported(
                "the binary log does not name the columns of a table, and they are unknown since a statement",
                hint=HINT,
                table=table.name,
                unknown_since=known.unknown,
            )
        columns = known.layout.columns
        if len(table.raws) == len(columns):
            table = replace(table, raws=[_completed(*pair) for pair in zip(table.raws, columns, strict=True)])
        _check(table, known)
        raws = [_named(raw, column) for raw, column in zip(table.raws, columns, strict=True)]
        _, specs = table_layout(replace(table, raws=raws))
        return TableLayout(table.name, columns, known.layout.key), specs


def _charset(collation: str | None) -> str:
    return charset_of(int(collation)) if collation else ""


def _completed(raw: Raw, column: Column) -> Raw:
    """Adds the history's signedness and character set if the event has none."""
    if raw.unsigned is None and raw.code in NUMERIC:
        raw = replace(raw, unsigned=column.unsigned)
    if raw.collation is None and raw.code in TEXT and column.charset:
        raw = replace(raw, collation=collation_of(column.charset))
    return raw


def _named(raw: Raw, column: Column) -> Raw:
    """Adds the history's name, labels and collation."""
    if column.type not in ("enum", "set"):
        return replace(raw, name=column.name.encode())
    labels = [label.encode() for label in column.labels]
    return replace(raw, name=column.name.encode(), labels=labels, collation=UTF8)


def _check(table: TableMap, known: TableDefinition) -> None:
    """Compares the TABLE_MAP with the history."""
    difference = next(_differences(table, known.layout.columns), None)
    if difference is not None:
        raise CorruptBinlog(
            "a table in the binary log is not the table that the history knows",
            hint=HINT,
            table=table.name,
            difference=difference,
        )


def _differences(table: TableMap, columns: tuple[Column, ...]) -> Iterator[str]:
    if len(table.raws) != len(columns):
        yield f"it has {len(table.raws)} columns, the history {len(columns)}"
        return
    for number, (raw, column) in enumerate(zip(table.raws, columns, strict=True), 1):
        found, (_, size, *_) = compile_column(replace(raw, name=column.name.encode()), table.name)
        if column.type in ("enum", "set"):
            found = replace(found, charset=column.charset, labels=column.labels)
            if size != _label_bytes(column):
                yield f"column {number}, {column.name}, has numbers of {size} bytes, and {len(column.labels)} labels"
        if found.type == "vector(0)" and column.type.startswith("vector"):
            found = replace(found, type=column.type)  # the log lacks its dimension
        if found != column:
            yield f"column {number}, {column.name}, is {_shown(found)}, in the history {_shown(column)}"


def _label_bytes(column: Column) -> int:
    count = len(column.labels)
    if column.type == "enum":
        return 1 if count < 256 else 2
    return 8 if count > 32 else (count + 7) // 8


def _shown(column: Column) -> str:
    words = (column.type, "unsigned" * column.unsigned, column.charset, "NULL" if column.nullable else "NOT NULL")
    return " ".join(word for word in words if word)
