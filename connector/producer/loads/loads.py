"""Loads of tables while the source's log is published, in rounds.

A round reads chunks of tables in one consistent view, and has a position in the source's log. The stream is published
up to that position, then the rows that the round has read, then the stream goes on. So each row is in the log behind
the changes that it contains, and before those that it does not.

Without a lock the view may have been fixed a moment before the position, after the round was opened. Rows that the
stream changed meanwhile are left out: the stream has them whole. Where this is unknown (DDL, statements, XA
transactions, images without all columns, tables without a key) the rows of the round are dropped, and read again;
after some such rounds with a lock.

How far each load is stands in the control topic, in the Kafka transaction of the events. A producer that begins goes on
from there.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Event
from typing import Final

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError, SourceChanged, SourceUnavailable
from connector.kafka.requests import new_load_id
from connector.log.epochs.control import ControlState
from connector.log.epochs.load_pause import stream_behind
from connector.log.epochs.loads import LoadRequest, LoadState, OutstandingLoad, TableLoad, cancelled
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord
from connector.producer.loads.gate import RoundGate
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.loads.online import OnlineLog
from connector.producer.loads.open_round import OpenRound
from connector.producer.loads.round_publication import RoundPublication
from connector.producer.sources.source import EventSource

LOG: Final = logging.getLogger(__name__)
TABLES_OF_A_ROUND: Final = 20
SPOILED_ROUNDS: Final = 3  # after which a round gets a lock


@dataclass(frozen=True, slots=True)
class Refused:
    """A round that was not opened.

    Args:
        reason: why not.
        patient: wait the longer for the next attempt, the more often.
    """

    reason: str
    patient: bool = False


class TableLoads:
    """The loads of one producer.

    Args:
        config: the configuration.
        source: the source.
        clock: the clock.
        stop: set to stop the producer.

    Attributes:
        known: what was asked for, and how far each load is.
    """

    def __init__(self, config: Config, source: EventSource, clock: Clock, stop: Event) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._received: deque[LoadRequest] = deque()
        self._round: OpenRound | None = None
        self.known = KnownLoads(config.service, clock)
        self._publication = RoundPublication(self.known, clock, stop)
        self._loading = False  # true: the end of all loads is to be logged
        self._gate = RoundGate(config, source, clock)
        self._spoiled_rounds = 0
        self._together = TABLES_OF_A_ROUND

    def restore(self, control: ControlState, *, initial: bool = False) -> None:
        """Go on where the control topic says.

        Args:
            control: the control topic.
            initial: an initial load has begun.
        """
        self.abandon()
        self.known.restore(control)
        self._loading = initial or bool(self.known.outstanding())
        for _, state in self.known.outstanding():
            if state is not None and not initial:
                LOG.info("the load of a table goes on", extra=self.known.fields(state.table, after=state.after))

    def accept(self, request: LoadRequest) -> None:
        """Take a request; may be called from another thread."""
        self._received.append(request)

    def split_at_position(self, items: list[Item]) -> tuple[list[Item], list[Item]]:
        """Divide what the stream gives into what precedes the open round's position, and the rest."""
        opened = self._round
        if opened is None:
            return items, []
        for index, item in enumerate(items):
            if opened.reached and not isinstance(item, Redefined):  # which belongs to the transaction before it
                return items[:index], items[index:]
            opened.note(item)
        return items, []

    def advance(self, online: OnlineLog) -> None:
        """Open a round if tables are to be loaded; publish it once the stream has reached its position.

        Raises:
            ConnectorError: of the publisher.
        """
        while self._received:
            self.known.ask(self._received.popleft())
            self._loading = True
        if self.known.unsorted:
            self._cancel(online)
        if self._round is None and not self.known.outstanding():
            if self._loading:
                self._loading = False
                self._gate.rest()
                online.publisher.drain()
                online.publisher.resume()
                LOG.info("loaded", extra={"service": self._config.service, "next_seqno": online.encoder.next_seqno})
            return
        if online.encoder.open:
            return
        if self._round is None:
            self._begin_round(online)
        if self._round is not None and self._round.reached:
            opened, self._round = self._round, None
            try:
                self._publish(online, opened)
            finally:
                opened.round.close()

    def redefined(self, change: Redefined) -> list[LoadRequest | TableLoad]:
        """End the loads of tables that DDL has dropped, and begin those of tables that it has renamed.

        Returns:
            The records that are written with the DDL's event.
        """
        under_way = {request.table: (request, state) for request, state in self.known.outstanding()}
        now = self._clock.now()
        records: list[LoadRequest | TableLoad] = []
        for name, (request, state) in list(under_way.items()):
            if name in change.tables and change.tables[name] is None:
                ended = state or TableLoad.of(request, now)
                why = "the table was dropped or renamed"
                records.append(self.known.changed(replace(ended, state=LoadState.CANCELLED, at=now, why=why)))
                LOG.info("the load of a table has stopped", extra=self.known.fields(name, why=why))
                if request.keys:
                    del under_way[name]  # the rows of its new name need no load
        for new, old in change.renamed.items():
            if new in under_way or old in under_way:
                before = under_way[old if old in under_way else new][0]
                asked = LoadRequest(
                    table=new,
                    load=new_load_id(),
                    asked_at=now,
                    asked_by=f"the renaming of {old}",
                    published=_published(before, new),
                    targets=before.targets,
                )
                self.known.ask(asked)
                records.append(asked)
        return records

    def abandon(self) -> None:
        """Drop the open round, e.g. because the stream is gone. May be repeated."""
        if self._round is not None:
            opened, self._round = self._round, None
            opened.round.close()

    def _cancel(self, online: OnlineLog) -> None:
        for state in list(cancelled(self.known.requests.values(), self.known.states, self._clock.now())):
            online.publisher.put([self.known.changed(state)])
            self.abandon()

    def _begin_round(self, online: OnlineLog) -> None:
        ready = self._gate.admitted(self.known.outstanding())
        ready.sort(key=lambda one: not one.request.keys)  # repairs, which are small, need not wait for loads
        waiting = ready[: self._together]
        if not waiting:
            return
        position = online.publisher.drain()
        online.publisher.resume()
        if not self._gate.opens(position, online.publisher.newest_commit):
            return
        found = self._open(online, position, waiting)
        if isinstance(found, Refused):
            self._gate.refused(found.reason, patient=found.patient)
        else:
            self._round = found
            self._gate.begun()

    def _open(
        self, online: OnlineLog, position: PositionRecord, waiting: Sequence[OutstandingLoad]
    ) -> OpenRound | Refused:
        try:
            return self._open_at(online, position, waiting)
        except (SourceChanged, SourceUnavailable) as error:
            if isinstance(table := error.where.get("table"), TableName):
                self._gate.postpone(table)
                return Refused(error.located)
            self._spoiled_rounds = 0  # the lock may not be had
            return Refused(error.located, patient=True)
        except ConnectorError as error:
            if self._spoiled_rounds >= SPOILED_ROUNDS:
                self._spoiled_rounds = 0  # the lock is not permitted
            elif len(waiting) == 1:
                self.known.stop(online, *waiting[0], error)
            # With several tables it is not known which one cannot be loaded.
            self._together = 1 if len(waiting) > 1 else TABLES_OF_A_ROUND
            return Refused(error.located)

    def _open_at(
        self, online: OnlineLog, position: PositionRecord, waiting: Sequence[OutstandingLoad]
    ) -> OpenRound | Refused:
        """Open a round, unless the stream is too far from its position.

        Args:
            online: the online producer.
            position: how far the stream is published.
            waiting: the loads of its tables.
        """
        lock = self._config.source.snapshot.lock == "brief" or self._spoiled_rounds >= SPOILED_ROUNDS
        after = {request.table: None if state is None else state.after for request, state in waiting}
        keys = {request.table: request.keys for request, _ in waiting if request.keys}
        round_ = self._source.round(after, keys, lock=lock)
        with ExitStack() as closing:
            closing.callback(round_.close)
            round_.open(position)
            if round_.server_uuid != online.control.epochs[-1].server_uuid:
                return Refused("the connection reaches another server than the stream")
            if behind := stream_behind(position.resume, round_.position):
                return Refused(behind.why)
            closing.pop_all()
        published = {one.published: set[bytes]() if one.has_key else None for one in round_.tables.values()}
        loads = {request.table: request.load for request, _ in waiting}
        return OpenRound(round_, loads, position.resume, published, repaired=keys)

    def _publish(self, online: OnlineLog, opened: OpenRound) -> None:
        """Publish a round at its position."""
        began = self._clock.monotonic()
        rows = self._publication.publish(online, opened)
        self._spoiled_rounds = self._spoiled_rounds + 1 if self._publication.useless else 0
        if rows is None:
            return
        seconds = self._clock.monotonic() - began
        fields = {"service": self._config.service, "rows": rows, "stream_waited_seconds": f"{seconds:.2f}"}
        LOG.info("published a round of loads", extra=fields)
        self._gate.published(rows, began)


def _published(request: LoadRequest, name: TableName) -> TableName | None:
    """The name in the log of a table that was renamed; None: that on the source."""
    if request.published is None or request.table.schema != name.schema or request.in_log.table != request.table.table:
        return None
    return TableName(request.in_log.schema, name.table)
