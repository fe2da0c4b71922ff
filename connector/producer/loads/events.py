"""Publishes events of loads: those of a round at its position, and those with which an initial load begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event

from connector.errors import SourceUnavailable
from connector.log.compact.row_keys import without
from connector.log.epochs.loads import TableLoad
from connector.log.ids import Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.producer.loads.online import OnlineLog
from connector.producer.loads.open_round import OpenRound
from connector.producer.publish.queue import Work
from connector.producer.sources.source import OpenedTable, ReadOfSource, Round
from connector.retrying import Stopped

Changes = list[Rows | Statement]


@dataclass(frozen=True, slots=True)
class LoadEvents:
    """Publishes events that are not in the source's log.

    Args:
        online: the online producer.
        read: where the events are from.
        resume: the position of the log, which these events do not move.
    """

    online: OnlineLog
    read: ReadOfSource
    resume: SourcePosition

    @property
    def next(self) -> Seqno:
        """The next event."""
        return self.online.encoder.next_seqno

    def put(self, event: LoadEvent, changes: Changes, more: Work | None = None) -> None:
        """Publish an event of a table's load, and records of its load with it."""
        self.put_event(Kind.LOAD, event.metadata(), changes, more)

    def put_event(self, kind: Kind, metadata: Mapping[str, str], changes: Changes, more: Work | None = None) -> None:
        """Publish an event, and records with it."""
        self._put([TransactionBatch(self._start(kind, metadata), changes, self._end())], more)

    def _put(self, batches: list[TransactionBatch], more: Work | None = None) -> None:
        work: Work = [fragment for batch in batches for fragment in self.online.encoder.encode(batch)]
        self.online.put(work + (more or []))

    def _start(self, kind: Kind, metadata: Mapping[str, str]) -> TransactionStart:
        return TransactionStart(
            server_id=self.read.server_id,
            thread_id=0,
            gtid=None,
            last_committed=0,
            sequence_number=0,
            start=self.resume,
            kind=kind,
            metadata=metadata,
        )

    def _end(self) -> TransactionEnd:
        return TransactionEnd(self.resume, self.read.time, Outcome.COMMIT)


@dataclass(frozen=True, slots=True)
class RoundEvents(LoadEvents):
    """Publishes events of a round at its position.

    `read` is the round.
    """

    read: Round

    def publish(
        self,
        opened: OpenRound,
        chosen: dict[TableName, TableLoad],
        stop: Event,
        repaired: Callable[[TableName, int, Seqno], Work],
    ) -> dict[TableName, int] | None:
        """Publish the rows of a round.

        Args:
            opened: the round.
            chosen: the tables whose rows are of use, and their loads.
            stop: set to stop the producer.
            repaired: returns the records that are written with the end of a repair: of which table, the number of rows,
                the event.

        Returns:
            The number of rows of each table; None if the producer was stopped meanwhile.
        """
        rows = dict.fromkeys(chosen, 0)
        whole: TableName | None = None  # the table whose rows are one event, which is open

        def end(name: TableName) -> None:
            more = repaired(name, rows[name], self.next) if name in opened.repaired else None
            self._put([TransactionBatch(None, [], self._end())], more)

        for name, rows_read in self._rows(opened, chosen):
            if stop.is_set():
                if whole is not None:
                    raise Stopped
                return None
            table = self.read.tables[name]
            part = Part.REPAIR if name in opened.repaired else Part.ROWS if table.has_key else Part.WHOLE
            if whole is not None and whole != name:
                end(whole)
                whole = None
            if part is Part.ROWS:
                self.put(_event(chosen[name], part, table), [rows_read])
            else:
                begin = None
                if whole is None:
                    begin = self._start(Kind.LOAD, _event(chosen[name], part, table).metadata())
                self._put([TransactionBatch(begin, [rows_read], None)])
                whole = name
            rows[name] += rows_read.count
        if whole is not None:
            if self.read.failed(whole):
                # The next epoch voids the event.
                raise SourceUnavailable("the rows of a table, which are one event, could not be read", table=whole)
            end(whole)
        for name, state in chosen.items():
            table = self.read.tables[name]
            if not (table.has_key or rows[name] or self.read.failed(name)) and self.read.progress(name)[1]:
                self.put(_event(state, Part.WHOLE, table), [])
        return rows

    def _rows(self, opened: OpenRound, chosen: dict[TableName, TableLoad]) -> Iterator[tuple[TableName, Rows]]:
        for name, read in self.read.rows(chosen):
            changed = None if self.read.locked else opened.changed[self.read.tables[name].published]
            kept = without(read, changed) if changed else read
            if kept.count:
                yield name, kept


def _event(state: TableLoad, part: Part, table: OpenedTable) -> LoadEvent:
    return LoadEvent(state.load, part, table.published, state.targets)
