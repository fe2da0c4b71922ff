"""The statements of a commit that write the bookkeeping: position, tables, exclusions, events left out, audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from psycopg import sql

from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Intent, TargetPosition
from connector.targets import bookkeeping
from connector.targets.operations import Value
from connector.targets.postgres.marks import create_marks, marks_name
from connector.targets.postgres.merge import Step
from connector.targets.postgres.names import NAMES
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import to_json


@dataclass(frozen=True, slots=True)
class CommitSteps:
    """Makes the statements for one service under one token.

    Args:
        service: the service.
        token: of the applier's claim.
        now: the time of the commit, µs since 1970 UTC.
        channels: true if the target has `thl_channels`.
        loading: true if tables are being loaded after the commit.
    """

    service: str
    token: int
    now: int
    channels: bool
    loading: bool = False

    @property
    def _owner(self) -> str:
        return f"service = {_literal(self.service)}"

    def position(self, before: TargetPosition, position: TargetPosition) -> Iterator[Step]:
        """Replace one position by another, and record a rewind or its end."""
        values = (*bookkeeping.position_values(position), self.now)
        assignments = ", ".join(
            f"{column} = {_literal(value)}"
            for column, value in zip((*bookkeeping.POSITION, "applied_at"), values, strict=True)
        )
        where = f"{self._owner} AND token = {self.token}"
        yield Step(f"UPDATE thl.thl_position SET {assignments} WHERE {where}", "updated in thl_position", 1)
        if position.rewound_from != before.rewound_from:
            yield Step(f"DELETE FROM thl.thl_rewound WHERE {self._owner}")
            if position.rewound_from != NO_SEQNO:
                yield _insert("thl.thl_rewound", (self.service, position.rewound_from))
        if position.seqno < before.seqno:
            if self.channels:
                yield Step(f"UPDATE thl.thl_channels SET seqno = {NO_SEQNO} WHERE {self._owner}")
            yield Step(f"DELETE FROM thl.thl_applied WHERE {self._owner} AND seqno > {position.seqno}")

    def intent(self, intent: Intent, before: TargetPosition, position: TargetPosition) -> Iterator[Step]:
        """Begin a commit of several writers: readers may see parts of it from now on.

        Args:
            intent: the commit.
            before, position: the positions before and after it.
        """
        where = f"{self._owner} AND token = {self.token}"
        version = bookkeeping.version_of(intent=True, loading=self.loading)
        changes = f"consistent = false, schema_version = {version}"
        yield Step(f"UPDATE thl.thl_position SET {changes} WHERE {where}", "updated in thl_position", 1)
        yield _insert(
            "thl.thl_intent", (self.service, *bookkeeping.intent_values(intent, position, consistent=before.consistent))
        )

    def channel(self, number: int, last: Seqno) -> Step:
        """Move a writer to the last event of a commit, in the transaction of its part."""
        where = f"{self._owner} AND channel = {number} AND token = {self.token}"
        return Step(f"UPDATE thl.thl_channels SET seqno = {last} WHERE {where}", "updated in thl_channels", 1)

    def end_intent(self) -> Iterator[Step]:
        """End a commit of several writers, with the position after it."""
        yield Step(f"DELETE FROM thl.thl_intent WHERE {self._owner}")
        yield self._version()

    def _version(self) -> Step:
        version = bookkeeping.version_of(intent=False, loading=self.loading)
        return Step(f"UPDATE thl.thl_position SET schema_version = {version} WHERE {self._owner}")

    def owned(self) -> Step:
        """Lock the position, which has another token after a newer claim."""
        sql = f"UPDATE thl.thl_position SET token = token WHERE {self._owner} AND token = {self.token}"
        return Step(sql, "updated in thl_position", 1)

    def tables(self, schema: StagedSchema) -> Iterator[Step]:
        """Record changed tables."""
        owner = self._owner
        gone, new = schema.changed_tables()
        for name in gone:
            yield Step(f"DELETE FROM thl.thl_tables WHERE {owner} AND {_same_table(name)}")
        for table in new:
            target_name = ".".join(NAMES.table(table.name))
            yield _insert("thl.thl_tables", (self.service, *table.name, target_name, to_json(table)))

    def exclusions(self, schema: StagedSchema) -> Iterator[Step]:
        """Record changed exclusions, and the counts of excluded changes."""
        owner = self._owner
        included, excluded = schema.changed_exclusions()
        for name in included:
            yield Step(f"DELETE FROM thl.thl_excluded WHERE {owner} AND {_same_table(name)}")
        for name, entry in excluded.items():
            yield _insert("thl.thl_excluded", bookkeeping.excluded_row(self.service, name, entry))
        for name, count in schema.uncounted.items():
            yield Step(f"UPDATE thl.thl_excluded SET changes = changes + {count} WHERE {owner} AND {_same_table(name)}")

    def loads(self, schema: StagedSchema) -> Iterator[Step]:
        """Record changed loads of tables, and create the tables for marks."""
        gone, new = schema.changed_loads()
        for name in gone:
            yield Step(f"DELETE FROM thl.thl_loading WHERE {self._owner} AND {_same_table(name)}")
        for name, entry in new.items():
            yield _insert("thl.thl_loading", bookkeeping.loading_row(self.service, name, entry))
        if schema.loads_changed:
            yield self._version()
        for marks, table in schema.changed_marks()[1]:
            yield Step(create_marks(marks, table))

    def swept(self, schema: StagedSchema) -> Iterator[Step]:
        """Drop the tables for marks that are not needed any more, after everything else."""
        for marks in schema.changed_marks()[0]:
            yield Step(f"DROP TABLE IF EXISTS {marks_name(marks)}")

    def left_out(self, events: Iterable[LeftOut]) -> Iterator[Step]:
        """Record events that are left out; an older mark of a table stays."""
        for event in events:
            skipped, inconsistent = bookkeeping.left_out_rows(self.service, event, self.now)
            yield Step(f"DELETE FROM thl.thl_skipped WHERE {self._owner} AND seqno = {event.seqno}")
            yield _insert("thl.thl_skipped", skipped)
            for row in inconsistent:
                yield Step(f"{_insert('thl.thl_inconsistent', row).sql} ON CONFLICT DO NOTHING")

    def audit(self, events: Iterable[AppliedEvent]) -> Iterator[Step]:
        """Record every applied event."""
        for row in bookkeeping.applied_rows(self.service, events, self.now, self.token):
            yield _insert("thl.thl_applied", row)


def _same_table(name: TableName) -> str:
    return f"schema_name = {_literal(name.schema)} AND table_name = {_literal(name.table)}"


def _insert(table: str, values: Sequence[Value]) -> Step:
    return Step(f"INSERT INTO {table} VALUES ({', '.join(_literal(value) for value in values)})", "", 1)


def _literal(value: Value) -> str:
    return sql.Literal(value).as_string(None)
