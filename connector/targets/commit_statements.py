"""The statements of a commit that write the bookkeeping: position, tables, loads, exclusions, skipped events, audit.

Every target has the same tables (`bookkeeping`), so these statements are the same but for what `SqlDialect` has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import NO_SEQNO
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.operations import Value
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import to_json
from connector.targets.target_schema import TargetSchema

_AT_ONCE = 500  # rows of thl_applied in a statement


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The differences between targets in these statements.

    Args:
        literal: writes a value as a literal.
        schema: precedes the names of the bookkeeping's tables.
        keep: ends an INSERT whose rows may be there already, and stay as they are.
    """

    literal: Callable[[Value], str]
    schema: str
    keep: str


@dataclass(frozen=True, slots=True)
class CommitStatement:
    """A statement.

    Args:
        sql: its text.
        done: its effect in words, for errors.
        expected: the number of rows that it must affect; None: any number.
    """

    sql: str
    done: str = ""
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class CommitStatements:
    """Makes the statements for one service under one token.

    Args:
        dialect: the target's.
        service: the service.
        token: of the applier's claim.
        now: the time of the commit, µs since 1970 UTC.
    """

    dialect: SqlDialect
    service: str
    token: int
    now: int

    @property
    def owner(self) -> str:
        """The condition that a row is the service's."""
        return f"service = {self.dialect.literal(self.service)}"

    def position(self, position: TargetPosition) -> CommitStatement:
        """The statement that moves the position; it finds no row after a newer claim."""
        values = (*bookkeeping.position_values(position), self.now)
        assignments = ", ".join(
            f"{column} = {self.dialect.literal(value)}"
            for column, value in zip((*bookkeeping.POSITION, "applied_at"), values, strict=True)
        )
        where = f"{self.owner} AND token = {self.token}"
        sql = f"UPDATE {self.dialect.schema}thl_position SET {assignments} WHERE {where}"
        return CommitStatement(sql, "updated in thl_position", 1)

    def after_position(
        self,
        before: TargetPosition,
        position: TargetPosition,
        schema: StagedSchema,
        *,
        table_name: Callable[[TableName], str],
        target_name: Callable[[TableName], Sequence[str]],
        left_out: Iterable[LeftOut] = (),
        audited: Iterable[AppliedEvent],
    ) -> Iterator[CommitStatement]:
        """Record what one transaction commits, after it has moved the position.

        Args:
            before, position: the positions before and after the commit.
            schema: the tables.
            table_name: a table's quoted name.
            target_name: the parts of a table's name on the target.
            left_out: events that are left out, and are not recorded yet.
            audited: the applied events, if they are recorded.
        """
        yield from self.rewind(before, position)
        yield from self.histories(before, position, schema.tables, table_name)
        yield from self.tables(schema, target_name)
        yield from self.loads(schema)
        yield from self.exclusions(schema)
        yield from self.left_out(left_out)
        yield from self.audit(audited)

    def rewind(self, before: TargetPosition, position: TargetPosition) -> Iterator[CommitStatement]:
        """Record a rewind, or its end."""
        if position.rewound_from != before.rewound_from:
            yield self._delete("thl_rewound")
            if position.rewound_from != NO_SEQNO:
                yield self.insert("thl_rewound", [(self.service, position.rewound_from)])
        if position.seqno < before.seqno:
            yield self._delete("thl_applied", f"seqno > {position.seqno}")

    def histories(
        self, before: TargetPosition, position: TargetPosition, schema: TargetSchema, name: Callable[[TableName], str]
    ) -> Iterator[CommitStatement]:
        """Take the rows of events after a position that goes back out of the histories.

        Events of excluded tables are not applied again: their histories keep the rows.

        Args:
            before, position: the positions before and after the commit.
            schema: the tables.
            name: a table's quoted name.
        """
        if position.seqno < before.seqno:
            for table in schema:
                if table.history_of is not None and table.history_of not in schema.excluded:
                    yield CommitStatement(f"DELETE FROM {name(table.name)} WHERE seqno > {position.seqno}")

    def tables(
        self, schema: StagedSchema, target_name: Callable[[TableName], Sequence[str]]
    ) -> Iterator[CommitStatement]:
        """Record changed tables.

        Args:
            schema: the tables.
            target_name: the parts of a table's name on the target.
        """
        gone, new = schema.changed_tables()
        for name in gone:
            yield self._delete("thl_tables", self._of(name))
        for table in new:
            row = (self.service, *table.name, ".".join(target_name(table.name)), to_json(table))
            yield self.insert("thl_tables", [row])

    def exclusions(self, schema: StagedSchema) -> Iterator[CommitStatement]:
        """Record changed exclusions, and the counts of excluded changes."""
        included, excluded = schema.changed_exclusions()
        for name in included:
            yield self._delete("thl_excluded", self._of(name))
        for name, entry in excluded.items():
            yield self.insert("thl_excluded", [bookkeeping.excluded_row(self.service, name, entry)])
        for name, count in schema.uncounted.items():
            where = f"{self.owner} AND {self._of(name)}"
            added = f"changes = changes + {count}"
            yield CommitStatement(f"UPDATE {self.dialect.schema}thl_excluded SET {added} WHERE {where}")

    def loads(self, schema: StagedSchema) -> Iterator[CommitStatement]:
        """Record changed loads of tables."""
        gone, new = schema.changed_loads()
        for name in gone:
            yield self._delete("thl_loading", self._of(name))
        for name, entry in new.items():
            yield self.insert("thl_loading", [bookkeeping.loading_row(self.service, name, entry)])
        if schema.loads_changed:
            yield self.version(loading=bool(schema.tables.loading))

    def version(self, *, loading: bool) -> CommitStatement:
        """Set what a connector has to know; `loading`: tables are being loaded after the commit."""
        version = bookkeeping.version_of(intent=False, loading=loading)
        sql = f"UPDATE {self.dialect.schema}thl_position SET schema_version = {version} WHERE {self.owner}"
        return CommitStatement(sql)

    def left_out(self, events: Iterable[LeftOut]) -> Iterator[CommitStatement]:
        """Record events that are left out; an older mark of a table stays."""
        for event in events:
            skipped, inconsistent = bookkeeping.left_out_rows(self.service, event, self.now)
            yield self._delete("thl_skipped", f"seqno = {event.seqno}")
            yield self.insert("thl_skipped", [skipped])
            if inconsistent:
                yield CommitStatement(self.insert("thl_inconsistent", inconsistent).sql + self.dialect.keep)

    def audit(self, events: Iterable[AppliedEvent]) -> Iterator[CommitStatement]:
        """Record every applied event."""
        rows = list(bookkeeping.applied_rows(self.service, events, self.now, self.token))
        for first in range(0, len(rows), _AT_ONCE):
            yield self.insert("thl_applied", rows[first : first + _AT_ONCE])

    def insert(self, table: str, rows: Sequence[Sequence[Value]]) -> CommitStatement:
        """Insert rows into a table of the bookkeeping."""
        values = ", ".join(f"({', '.join(map(self.dialect.literal, row))})" for row in rows)
        sql = f"INSERT INTO {self.dialect.schema}{table} VALUES {values}"
        return CommitStatement(sql, f"inserted into {table}", len(rows))

    def _delete(self, table: str, where: str = "") -> CommitStatement:
        condition = f"{self.owner} AND {where}" if where else self.owner
        return CommitStatement(f"DELETE FROM {self.dialect.schema}{table} WHERE {condition}")

    def _of(self, name: TableName) -> str:
        literal = self.dialect.literal
        return f"schema_name = {literal(name.schema)} AND table_name = {literal(name.table)}"
