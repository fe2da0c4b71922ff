"""The statements of a commit that write the bookkeeping, as steps, and those that only PostgreSQL has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.position import Intent, TargetPosition
from connector.targets import bookkeeping
from connector.targets.commit_statements import CommitStatement, CommitStatements, SqlDialect
from connector.targets.postgres.literals import constant
from connector.targets.postgres.marks import create_marks, marks_name
from connector.targets.postgres.merge import Step
from connector.targets.postgres.names import NAMES, table_name
from connector.targets.staged_schema import StagedSchema
from connector.targets.target_schema import TargetSchema

_DIALECT: Final = SqlDialect(constant, "thl.", " ON CONFLICT DO NOTHING")


@dataclass(frozen=True, slots=True)
class CommitSteps:
    """Makes the steps for one service under one token.

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
    def _statements(self) -> CommitStatements:
        return CommitStatements(_DIALECT, self.service, self.token, self.now)

    @property
    def _owner(self) -> str:
        return self._statements.owner

    def position(self, before: TargetPosition, position: TargetPosition) -> Iterator[Step]:
        """Replace one position by another, and record a rewind or its end."""
        yield _step(self._statements.position(position))
        if position.seqno < before.seqno and self.channels:
            yield Step(f"UPDATE thl.thl_channels SET seqno = {NO_SEQNO} WHERE {self._owner}")
        yield from map(_step, self._statements.rewind(before, position))

    def histories(self, before: TargetPosition, position: TargetPosition, schema: TargetSchema) -> Iterator[Step]:
        """Take the rows of events after a position that goes back out of the histories."""
        yield from map(_step, self._statements.histories(before, position, schema, table_name))

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
        values = bookkeeping.intent_values(intent, position, consistent=before.consistent)
        yield _step(self._statements.insert("thl_intent", [(self.service, *values)]))

    def channel(self, number: int, last: Seqno) -> Step:
        """Move a writer to the last event of a commit, in the transaction of its part."""
        where = f"{self._owner} AND channel = {number} AND token = {self.token}"
        return Step(f"UPDATE thl.thl_channels SET seqno = {last} WHERE {where}", "updated in thl_channels", 1)

    def end_intent(self) -> Iterator[Step]:
        """End a commit of several writers, with the position after it."""
        yield Step(f"DELETE FROM thl.thl_intent WHERE {self._owner}")
        yield _step(self._statements.version(loading=self.loading))

    def owned(self) -> Step:
        """Lock the position, which has another token after a newer claim."""
        sql = f"UPDATE thl.thl_position SET token = token WHERE {self._owner} AND token = {self.token}"
        return Step(sql, "updated in thl_position", 1)

    def bookkeeping(
        self, schema: StagedSchema, left_out: Iterable[LeftOut], events: Iterable[AppliedEvent]
    ) -> Iterator[Step]:
        """Record changed tables, loads and exclusions, events that are left out, and applied events."""
        statements = self._statements
        yield from self.tables(schema)
        yield from map(_step, statements.loads(schema))
        for marks, table in schema.changed_marks()[1]:
            yield Step(create_marks(marks, table))
        yield from map(_step, statements.exclusions(schema))
        yield from map(_step, statements.left_out(left_out))
        yield from map(_step, statements.audit(events))

    def tables(self, schema: StagedSchema) -> Iterator[Step]:
        """Record changed tables."""
        yield from map(_step, self._statements.tables(schema, NAMES.table))

    def swept(self, schema: StagedSchema) -> Iterator[Step]:
        """Drop the tables for marks that are not needed any more, after everything else."""
        for marks in schema.changed_marks()[0]:
            yield Step(f"DROP TABLE IF EXISTS {marks_name(marks)}")


def _step(statement: CommitStatement) -> Step:
    return Step(statement.sql, statement.done, statement.expected)
