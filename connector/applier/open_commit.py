"""The next commit: collects the changes of its events, and stages them on the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from connector import failpoints as faults
from connector.applier.commit_batch import CommitBatch
from connector.applier.quarantine import RefusedCommit
from connector.applier.segment_changes import SegmentChanges
from connector.errors import ConnectorError, TargetDiffers, Unsupported, ValueNotRepresentable
from connector.log.compact.compact import Compactor
from connector.log.compact.history import EVENT, HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns, Value
from connector.log.compact.net_changes import Ddl, once_more
from connector.log.compact.scan import Messages
from connector.log.compact.segment import COMMIT_BYTES, COMMIT_ROWS, COMMIT_TABLES, Segment
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.ids import NO_SEQNO, Kind, Outcome, Seqno
from connector.log.reading.event_sequencer import Release
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import TargetPosition
from connector.targets.target import TargetDatabase

STAGE_BYTES: Final = 4 << 20  # bytes of an unfinished event from which on it is staged instead of kept in memory
FINISHED_BYTES: Final = 128 << 20  # the same while a commit is finished; as many as a task compacts at once
COMMIT_STATEMENTS: Final = 500  # executed statements after which a commit gets no further event


class OpenCommit:
    """The next commit on a target, as far as its events have come.

    Args:
        target: the claimed target.
        position: the target's position.
        topic: the event topic, for errors.
        columns: the metadata columns that the target was opened with.
        history: the tables that have a history on the target.
        executes_statements: true if the target executes changes that were logged as statements; else they are refused.

    Attributes:
        events: the whole events.
        unfinished: the unfinished event.
        staged: true if the target has a part of the commit.
        refused: the commit that the target has refused.
        edge: the event of a table's load that the commit consists of, if it does.
    """

    def __init__(
        self,
        target: TargetDatabase,
        position: TargetPosition,
        topic: str,
        columns: MetadataColumns | None,
        history: HistoryTables | None = None,
        *,
        executes_statements: bool = False,
    ) -> None:
        self._target = target
        self._executes_statements = executes_statements
        self._topic = topic
        # Of the staged rows of an unfinished event: those of its metadata columns, and of histories.
        self._late = (columns, None if history is None else EVENT)
        self._compactor = Compactor(topic, columns, history=history)
        self._segments = SegmentChanges(topic, columns)
        self._row_parts = RowParts(topic)
        self.refused: RefusedCommit | None = None
        self.begin(position)

    def begin(self, position: TargetPosition) -> None:
        """Begin an empty commit after a position."""
        self._position = position
        # The parts of an event end where its messages have come by; an intent's event may have been whole before.
        self._stage_bytes = STAGE_BYTES if position.intent is None else FINISHED_BYTES
        self.events = CommitBatch()
        self.unfinished: Seqno | None = None
        self.staged = False
        self.edge: LoadEvent | None = None
        self._rows = 0  # of the unfinished event
        self._executed = self._executed_before = 0  # statements: all, and those before the unfinished event
        self._statements: list[Statement] = []  # of the unfinished event, which the target does not have yet
        self._values: list[list[Value]] | None = None  # of these columns, in the staged rows of the unfinished event

    @property
    def full(self) -> bool:
        """True if it has enough rows, bytes or tables."""
        rows, size = self._compactor.rows + self._segments.rows, self._compactor.size + self._segments.size
        tables = self._compactor.table_count + self._segments.table_count
        return (
            rows >= COMMIT_ROWS
            or size >= COMMIT_BYTES
            or tables >= COMMIT_TABLES
            or self._executed >= COMMIT_STATEMENTS
        )

    @property
    def separates_statements(self) -> bool:
        """True if an event with statements needs a commit of its own: the target then knows what they are about."""
        return self._executes_statements and bool(self._target.target_schema.loading)

    def add_range(self, messages: Messages, first: int, end: int) -> int:
        """Add messages, each a whole event, until the commit is full.

        Returns:
            The index after the last added one.
        """
        at = self._compactor.add_range(messages, first, end, COMMIT_ROWS, COMMIT_BYTES)
        self.events.add_range(messages, first, at)
        return at

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Add segments that together are consecutive events."""
        for segment in segments:
            self._segments.add(self._compactor, segment)
        self.events.add_segments(segments)

    def collect(self, release: Release[Message]) -> None:
        """Collect the changes of an event's fragments; the target gets its statements at its end."""
        header, edge = release.header, self.edge
        if release.first:
            self._executed_before = self._executed
        if edge is not None and edge.precedes_rows and release.first:
            self._add_edge(edge, header)
        ddl = header.kind is Kind.DDL
        held = self._compactor.size + sum(message.size for message in release.bodies)
        for message in release.bodies:
            if not release.complete and held < self._stage_bytes:
                message.own()  # it outlives its batch
            whole = self._row_parts.whole(message)
            if whole is None:
                continue
            if ddl:
                self._collect_statements(whole)
            elif edge is not None:
                self._statements += whole.statements(self._topic)
            execute = partial(self._execute, header.seqno) if self._executes_statements else None
            self._rows = self._compactor.add(whole, self._rows, execute)
        if release.complete and header.outcome is Outcome.ROLLBACK and self._executed > self._executed_before:
            with self._of_statement(header.seqno):
                raise Unsupported("a transaction with statements was rolled back at the source, not all of it")
        if ddl and release.complete:
            self._define(header)
        elif edge is not None and not edge.precedes_rows and release.complete:
            self._add_edge(edge, header)

    def _execute(self, seqno: Seqno, statement: Statement) -> None:
        """Have the target execute a change that was logged as a statement, after the changes before it."""
        self.stage(last=False)
        with self._of_statement(seqno, sql=statement.sql[:200]):
            if self._position.rewound_from != NO_SEQNO:
                raise Unsupported("a change that was logged as a statement cannot be executed again")
            self._target.execute(statement, seqno)
        self._executed += 1
        self.staged = True

    @contextmanager
    def _of_statement(self, seqno: Seqno, **where: object) -> Iterator[None]:
        """Add event, statement and ways out to a refusal of a statement."""
        with self.located():
            try:
                yield
            except ConnectorError as error:
                error.where = {**error.where, "seqno": seqno, **where}
                if isinstance(error, Unsupported):
                    way = "make the event's changes on the target by hand, none if they are about no table of it, then "
                    way += f"thl apply --skip-seqno {seqno} --reason …"
                    error.hint = f"{error.hint}; or {way}" if error.hint else way
                raise

    def _add_edge(self, edge: LoadEvent, header: FragmentHeader) -> None:
        """Add an event of a load that is more than rows to the target's next commit."""
        ddl = Ddl(seqno=header.seqno, statements=tuple(self._statements), commit_time=header.commit_time or 0)
        self._statements = []
        with self.located():
            self._target.load(edge, ddl)
        self.staged = True

    def _collect_statements(self, message: Message) -> None:
        """Collect a DDL fragment's statements; rows after them (CREATE TABLE … SELECT) need the new tables."""
        self._statements += message.statements(self._topic)
        if message.header.rows > self._rows:
            self._define(message.header)

    def _define(self, header: FragmentHeader) -> None:
        """Execute the collected statements on the target."""
        if not self._statements:
            return
        faults.point("apply.before_stage")
        ddl = Ddl(seqno=header.seqno, statements=tuple(self._statements), commit_time=header.commit_time or 0)
        with self.located():
            self._target.ddl(ddl)
        faults.point("apply.after_stage")
        self._statements = []
        self.staged = True
        if self._values is None:
            self._values = self._late_values(header)  # in the statements' rows of histories

    def stage_unfinished(self, header: FragmentHeader) -> None:
        """Stage the changes of an unfinished event once they are large."""
        if self._compactor.size < self._stage_bytes or self.events.last is not None:
            return  # what is staged, and gets other metadata columns at its end, is of one event
        self.stage(last=False)
        if self._values is None:
            self._values = self._late_values(header)

    def finish(self, header: FragmentHeader) -> None:
        """Count a whole event; correct the metadata columns of its staged rows if its end has other values."""
        staged, self._values = self._values, None
        if staged is not None and staged != (values := self._late_values(header)):
            self._target.set_metadata(*values)
        self.events.add(header)
        self._rows = 0
        self.unfinished = None

    def _late_values(self, header: FragmentHeader) -> list[list[Value]]:
        """The values of the metadata columns, and those of `history.EVENT`, as far as a fragment's header has them."""
        return [[] if columns is None else columns.values(header) for columns in self._late]

    def stage(self, *, last: bool) -> None:
        """Stage what is collected; `last`: the commit follows."""
        with self.located():
            changes = self._segments.drain() + self._compactor.drain()
        if not changes:
            return
        if self._position.rewound_from != NO_SEQNO:
            # The rewind has taken the rows of these events out of histories.
            changes = [net if net.history_of else once_more(net) for net in changes]
        self.events.count_tables(changes)
        faults.point("apply.before_stage")
        with self.located():
            self._target.stage(changes, last=last)
        faults.point("apply.after_stage")
        self.staged = True

    def drop(self) -> None:
        """Drop everything."""
        self._compactor.drain()
        self._row_parts.forget()
        if self.staged:
            self._target.discard()
        self.begin(self._position)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Add the service and the events to an error of the target, and the option if an event can be skipped."""
        try:
            yield
        except ConnectorError as error:
            # A table is not applied without its history: what a history refuses, its table does.
            schema, named = self._target.target_schema, [TableName(*name) for name in error.tables]
            error.tables = tuple(dict.fromkeys(map(schema.source_table, named)))
            if histories := [str(name) for name in named if schema.source_table(name) != name]:
                dropped = f"if {', '.join(histories)} was dropped, delete its row of thl_tables and start again: the "
                dropped += "history begins anew, without its rows"
                error.hint = f"{error.hint}; {dropped}" if error.hint else dropped
            self.refused = self._refused(error)
            first, last = self._position.seqno + 1, self.events.last
            seqno = first if last is None or last.seqno <= first else f"{first}..{last.seqno}"
            error.where = {"service": self._position.service, "seqno": seqno, **error.where}
            skippable = "--done-seqno" not in error.hint
            skippable = skippable and (self.edge is None or self.edge.part is Part.REPAIR)
            if isinstance(error, TargetDiffers | ValueNotRepresentable) and skippable:
                skip = "to skip an event, which leaves its tables inconsistent: thl apply --skip-seqno"
                skip += f" {first} --reason …" if seqno == first else f" N --reason … (thl list shows {seqno})"
                error.hint = f"{error.hint}; {skip}" if error.hint else skip
            if self.refused is not None and self.edge is None and error.tables:
                again = f"to load it again: thl load {' '.join(map(str, error.tables))}, then start thl apply"
                error.hint = f"{error.hint}; {again}" if error.hint else again
            raise

    def _refused(self, error: ConnectorError) -> RefusedCommit | None:
        """The commit that the target refuses; None if a part of it is made, so that all of its events are needed."""
        events, unfinished = self.events, self.unfinished
        if self._position.intent is not None:
            return None
        if events.last is None:
            return None if unfinished is None else RefusedCommit(error, unfinished, 1)
        return RefusedCommit(error, events.last.seqno, events.count + (unfinished is not None))
