"""Publishes the events of a round at its place."""

from __future__ import annotations

from collections.abc import Iterator
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
from connector.producer.going_online import Online
from connector.producer.open_round import OpenRound
from connector.producer.publish.queue import Work
from connector.producer.sources.source import OpenedTable, Round
from connector.retrying import Stopped


@dataclass(frozen=True, slots=True)
class RoundEvents:
    """Publishes events of a round at its place.

    Args:
        online: the online producer.
        round: the round.
        resume: the position of the log, which these events do not move.
    """

    online: Online
    round: Round
    resume: SourcePosition

    @property
    def next(self) -> Seqno:
        """The next event."""
        return self.online.encoder.next_seqno

    def put(self, event: LoadEvent, changes: list[Rows | Statement], state: TableLoad | None = None) -> None:
        """Publish an event, and the state of the load with it."""
        self._put([TransactionBatch(self._start(event), changes, self._end())], state)

    def publish(
        self, opened: OpenRound, chosen: dict[TableName, TableLoad], stop: Event
    ) -> dict[TableName, int] | None:
        """Publish the rows of a round.

        Returns:
            The number of rows of each table; None if the producer was stopped meanwhile.
        """
        rows = dict.fromkeys(chosen, 0)
        whole: TableName | None = None  # the table without a key whose event is open
        for name, read in self._read(opened, chosen):
            if stop.is_set():
                if whole is not None:
                    raise Stopped
                return None
            table = self.round.tables[name]
            if whole not in (None, name):
                self._put([TransactionBatch(None, [], self._end())])
                whole = None
            if table.has_key:
                self.put(_event(chosen[name], Part.ROWS, table), [read])
            else:
                begin = None
                if whole is None:
                    begin = self._start(_event(chosen[name], Part.WHOLE, table))
                self._put([TransactionBatch(begin, [read], None)])
                whole = name
            rows[name] += read.count
        if whole is not None:
            if self.round.failed(whole):
                # The next epoch voids the event.
                raise SourceUnavailable("the rows of a table without a key could not be read", table=whole)
            self._put([TransactionBatch(None, [], self._end())])
        for name, state in chosen.items():
            table = self.round.tables[name]
            if not (table.has_key or rows[name] or self.round.failed(name)) and self.round.progress(name)[1]:
                self.put(_event(state, Part.WHOLE, table), [])
        return rows

    def _read(self, opened: OpenRound, chosen: dict[TableName, TableLoad]) -> Iterator[tuple[TableName, Rows]]:
        for name, read in self.round.rows(chosen):
            changed = set() if self.round.brief else opened.changed[self.round.tables[name].published]
            kept = without(read, changed) if changed else read
            if kept.count:
                yield name, kept

    def _put(self, batches: list[TransactionBatch], state: TableLoad | None = None) -> None:
        work: Work = [fragment for batch in batches for fragment in self.online.encoder.encode(batch)]
        if state is not None:
            work.append(state)
        self.online.publisher.put(work)

    def _start(self, event: LoadEvent) -> TransactionStart:
        return TransactionStart(
            server_id=self.round.server_id,
            thread_id=0,
            gtid=None,
            last_committed=0,
            sequence_number=0,
            start=self.resume,
            kind=Kind.LOAD,
            metadata=event.metadata(),
        )

    def _end(self) -> TransactionEnd:
        return TransactionEnd(self.resume, self.round.time, Outcome.COMMIT)


def _event(state: TableLoad, part: Part, table: OpenedTable) -> LoadEvent:
    return LoadEvent(state.load, part, table.published, state.targets)
