"""The statements of a commit that write the bookkeeping: position, tables, loads, exclusions, skipped events, audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import NO_SEQNO
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.mysql.connection import literal
from connector.targets.operations import Value
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import to_json

_AT_ONCE = 500  # rows of thl_applied in a statement


@dataclass(frozen=True, slots=True)
class CommitStatements:
    """Makes the statements for one service under one token.

    Args:
        service: the service.
        token: of the applier's claim.
        now: the time of the commit, µs since 1970 UTC.
    """

    service: str
    token: int
    now: int

    @property
    def _owner(self) -> str:
        return f"service = {literal(self.service)}"

    def position(self, position: TargetPosition) -> str:
        """The statement that moves the position; it finds no row after a newer claim."""
        values = (*bookkeeping.position_values(position), self.now)
        assignments = ", ".join(
            f"{column} = {literal(value)}"
            for column, value in zip((*bookkeeping.POSITION, "applied_at"), values, strict=True)
        )
        return f"UPDATE thl.thl_position SET {assignments} WHERE {self._owner} AND token = {self.token}"

    def rewind(self, before: TargetPosition, position: TargetPosition) -> Iterator[str]:
        """Record a rewind, or its end."""
        if position.rewound_from != before.rewound_from:
            yield f"DELETE FROM thl.thl_rewound WHERE {self._owner}"
            if position.rewound_from != NO_SEQNO:
                yield _insert("thl_rewound", [(self.service, position.rewound_from)])
        if position.seqno < before.seqno:
            yield f"DELETE FROM thl.thl_applied WHERE {self._owner} AND seqno > {position.seqno}"

    def tables(self, schema: StagedSchema, target_name: dict[TableName, str]) -> Iterator[str]:
        """Record changed tables."""
        gone, new = schema.changed_tables()
        for name in gone:
            yield f"DELETE FROM thl.thl_tables WHERE {self._of(name)}"
        for table in new:
            row = (self.service, *table.name, target_name[table.name], to_json(table))
            yield _insert("thl_tables", [row])

    def exclusions(self, schema: StagedSchema) -> Iterator[str]:
        """Record changed exclusions, and the counts of excluded changes."""
        included, excluded = schema.changed_exclusions()
        for name in included:
            yield f"DELETE FROM thl.thl_excluded WHERE {self._of(name)}"
        for name, entry in excluded.items():
            yield _insert("thl_excluded", [bookkeeping.excluded_row(self.service, name, entry)])
        for name, count in schema.uncounted.items():
            yield f"UPDATE thl.thl_excluded SET changes = changes + {count} WHERE {self._of(name)}"

    def loads(self, schema: StagedSchema) -> Iterator[str]:
        """Record changed loads of tables, and the tables of marks that are no longer needed."""
        gone, new = schema.changed_loads()
        for name in gone:
            yield f"DELETE FROM thl.thl_loading WHERE {self._of(name)}"
        for name, entry in new.items():
            yield _insert("thl_loading", [bookkeeping.loading_row(self.service, name, entry)])
        if schema.loads_changed:
            version = bookkeeping.version_of(intent=False, loading=bool(schema.tables.loading))
            yield f"UPDATE thl.thl_position SET schema_version = {version} WHERE {self._owner}"
        for marks in schema.changed_marks()[0]:
            yield f"REPLACE INTO thl.thl_unused VALUES ({literal(self.service)}, {literal(marks)})"

    def left_out(self, events: Iterable[LeftOut]) -> Iterator[str]:
        """Record events that are left out; an older mark of a table stays."""
        for event in events:
            skipped, inconsistent = bookkeeping.left_out_rows(self.service, event, self.now)
            yield _insert("thl_skipped", [skipped], "REPLACE")
            if inconsistent:
                yield _insert("thl_inconsistent", inconsistent, "INSERT IGNORE")

    def audit(self, events: Iterable[AppliedEvent]) -> Iterator[str]:
        """Record every applied event."""
        rows = list(bookkeeping.applied_rows(self.service, events, self.now, self.token))
        for first in range(0, len(rows), _AT_ONCE):
            yield _insert("thl_applied", rows[first : first + _AT_ONCE])

    def _of(self, name: TableName) -> str:
        return f"{self._owner} AND schema_name = {literal(name.schema)} AND table_name = {literal(name.table)}"


def _insert(table: str, rows: Sequence[Sequence[Value]], verb: str = "INSERT") -> str:
    values = ", ".join(f"({', '.join(literal(value) for value in row)})" for row in rows)
    return f"{verb} INTO thl.{table} VALUES {values}"
