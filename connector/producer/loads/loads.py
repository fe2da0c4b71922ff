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

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConnectorError, Fenced, SourceChanged, SourceUnavailable
from connector.kafka.requests import new_load_id
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import Range
from connector.log.epochs.load_pause import stream_behind
from connector.log.epochs.loads import LoadRequest, LoadState, OutstandingLoad, TableLoad, cancelled, outstanding
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import PositionRecord
from connector.producer.loads.events import RoundEvents
from connector.producer.loads.gate import RoundGate
from connector.producer.loads.initial import begin_table
from connector.producer.loads.online import OnlineLog
from connector.producer.loads.open_round import OpenRound
from connector.producer.loads.repair import begin_repair, end_repair
from connector.producer.publish.queue import Work
from connector.producer.sources.source import EventSource, OpenedTable, Round

LOG: Final = logging.getLogger(__name__)
TABLES_OF_A_ROUND: Final = 20
SPOILED_ROUNDS: Final = 3  # after which a round gets a lock
REASON_CHARACTERS: Final = 1000


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
    """

    def __init__(self, config: Config, source: EventSource, clock: Clock, stop: Event) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._received: deque[LoadRequest] = deque()
        self._requests: dict[TableName, LoadRequest] = {}
        self._states: dict[TableName, TableLoad] = {}
        self._round: OpenRound | None = None
        self._trapped: tuple[Range, ...] = ()
        self._known_outstanding: list[OutstandingLoad] | None = None  # None: it has changed
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
        self._requests = dict(control.load_requests)
        self._states = dict(control.loads)
        self._trapped = control.trapped
        self._known_outstanding = None
        self._loading = initial or bool(self._outstanding())
        for _, state in self._outstanding():
            if state is not None and not initial:
                LOG.info("the load of a table goes on", extra=self._fields(state.table, after=state.after))

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
            request = self._received.popleft()
            self._requests[request.table] = request
            self._known_outstanding = None
            self._loading = True
        if self._known_outstanding is None:
            self._cancel(online)
        if self._round is None and not self._outstanding():
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
        under_way = {request.table: (request, state) for request, state in self._outstanding()}
        now = self._clock.now()
        records: list[LoadRequest | TableLoad] = []
        for name, (request, state) in list(under_way.items()):
            if name in change.tables and change.tables[name] is None:
                ended = state or TableLoad.of(request, now)
                why = "the table was dropped or renamed"
                records.append(self._changed(replace(ended, state=LoadState.CANCELLED, at=now, why=why)))
                LOG.info("the load of a table has stopped", extra=self._fields(name, why=why))
                if request.keys:
                    del under_way[name]  # the rows of its new name need no load
        for new, old in change.renamed.items():
            if new in under_way or old in under_way:
                asked_by, targets = f"the renaming of {old}", under_way[old if old in under_way else new][0].targets
                asked = LoadRequest(table=new, load=new_load_id(), asked_at=now, asked_by=asked_by, targets=targets)
                self._requests[new] = asked
                records.append(asked)
                self._known_outstanding = None
        return records

    def abandon(self) -> None:
        """Drop the open round, e.g. because the stream is gone. May be repeated."""
        if self._round is not None:
            opened, self._round = self._round, None
            opened.round.close()

    def _cancel(self, online: OnlineLog) -> None:
        for state in list(cancelled(self._requests.values(), self._states, self._clock.now())):
            online.publisher.put([self._changed(state)])
            self.abandon()

    def _begin_round(self, online: OnlineLog) -> None:
        ready = self._gate.admitted(self._outstanding())
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
                self._stop_load(online, *waiting[0], error)
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
        position = online.publisher.drain()
        online.publisher.resume()
        at = RoundEvents(online, opened.round, position.resume)
        chosen = self._choose(at, opened)
        self._spoiled_rounds = 0 if chosen else self._spoiled_rounds + 1
        repaired: set[TableName] = set()
        faults.point("load.before_rows")
        rows = self._publish_rows(at, opened, chosen, repaired)
        if rows is None:
            return
        faults.point("load.mid_round")
        self._record_all(at, opened, chosen, rows, repaired)
        seconds = self._clock.monotonic() - began
        total = sum(rows.values())
        fields = {"service": self._config.service, "rows": total, "stream_waited_seconds": f"{seconds:.2f}"}
        LOG.info("published a round of loads", extra=fields)
        self._gate.published(total, began)

    def _choose(self, at: RoundEvents, opened: OpenRound) -> dict[TableName, TableLoad]:
        """Begin the loads of the round's tables, and stop those that are not possible.

        Returns:
            The tables whose rows are of use, and their loads.
        """
        chosen: dict[TableName, TableLoad] = {}
        for request, state in self._outstanding():
            table = opened.round.tables.get(request.table)
            if table is None or opened.loads.get(request.table) != request.load:
                continue
            if table.refusal is not None:
                self._stop_load(at.online, request, state, table.refusal)
                continue
            usable = opened.round.locked or not (opened.all_spoiled or table.published in opened.spoiled)
            if request.table in opened.repaired:
                try:
                    begun = begin_repair(request, table, self._clock.now())
                except SourceChanged as changed:
                    self._stop_load(at.online, request, state, changed)
                    continue
            elif state is None or not self._can_continue(state, table):
                # The stream's changes before the beginning may be missing on a target that had left the table out.
                usable = usable and state is None and (opened.round.locked or not opened.changed[table.published])
                begun = self._begin(at, request, table)
            else:
                begun = state
            if usable:
                chosen[request.table] = begun
        return chosen

    def _publish_rows(
        self, at: RoundEvents, opened: OpenRound, chosen: dict[TableName, TableLoad], repaired: set[TableName]
    ) -> dict[TableName, int] | None:
        """Publish the rows of the chosen tables.

        Args:
            at: where.
            opened: the round.
            chosen: the tables.
            repaired: gets the tables whose repair ends with its rows.

        Returns:
            The number of rows of each table; None if the round is given up.
        """

        def end(name: TableName, rows: int, event: Seqno) -> Work:
            repaired.add(name)
            return self._end_repair(chosen[name], rows, event)

        try:
            return at.publish(opened, chosen, self._stop, end)
        except (BrokerUnavailable, Fenced):
            raise
        except SourceUnavailable:
            for name, state in chosen.items():
                if error := opened.round.failed(name):
                    self._stop_load(at.online, self._requests[name], state, error)
            raise
        except ConnectorError as error:
            for name, state in chosen.items():
                if name not in repaired:
                    self._stop_load(at.online, self._requests[name], state, error)
            if at.online.encoder.open:  # the next epoch voids the event
                raise SourceUnavailable("a table could not be read within its event") from error
            return None

    def _record_all(
        self,
        at: RoundEvents,
        opened: OpenRound,
        chosen: dict[TableName, TableLoad],
        rows: dict[TableName, int],
        repaired: set[TableName],
    ) -> None:
        """Record how far the chosen tables are after a round, of which `rows` were published."""
        for name, state in chosen.items():
            if name not in opened.repaired:
                self._record(at, opened.round, name, replace(state, rows=state.rows + rows[name]))
            elif failed := opened.round.failed(name):
                self._stop_load(at.online, self._requests[name], state, failed)
            elif name not in repaired:  # the stream has changed all of its rows
                at.online.publisher.put(self._end_repair(state, 0, NO_SEQNO))
        self._stop_missing(at.online, opened.round)

    def _end_repair(self, state: TableLoad, rows: int, event: Seqno) -> Work:
        LOG.info("repaired a table", extra=self._fields(state.table, load=state.load, rows=rows))
        return [self._changed(end_repair(state, rows, event, self._clock.now()))]

    def _can_continue(self, state: TableLoad, table: OpenedTable) -> bool:
        """True if a load goes on in this table where its state says."""
        if state.load_identity != table.load_identity:
            return False
        if state.after is None or table.is_key(state.after):
            return True
        # It would be part of the SQL that the source executes. Others may write to the control topic, too.
        why = "the control topic has something else than a key of the table"
        LOG.warning("the load of a table begins again", extra=self._fields(state.table, why=why))
        return False

    def _begin(self, at: RoundEvents, request: LoadRequest, table: OpenedTable) -> TableLoad:
        before = self._states.get(request.table)
        together = self._published_together(request.table, request.load)
        shares_begin = bool(together) and (before is None or before.load != request.load)
        more: list[LoadRequest] = []
        if self._requests[request.table].keys:  # a repair is not enough
            self._requests[request.table] = request
            more.append(request)
        state = self._changed(begin_table(at, request, table, self._clock.now(), [*more], shares_begin=shares_begin))
        if not shares_begin:  # targets start over, with the rows of all of them
            for other in together:
                again = replace(other, state=LoadState.LOADING, after=None, rows=0, begin=state.begin, last=state.last)
                at.online.publisher.put([self._changed(again)])
        LOG.info("the load of a table begins", extra=self._fields(request.table, rows=table.estimate))
        return state

    def _published_together(self, table: TableName, load: str) -> list[TableLoad]:
        """The loads of other tables that are published under the same name: they have one ID, and one end."""
        return [one for one in self._states.values() if one.load == load and one.table != table]

    def _record(self, at: RoundEvents, round_: Round, name: TableName, state: TableLoad) -> None:
        """Record how far a table is after a round, and publish its end."""
        published = round_.tables[name].published
        try:
            after, ended = round_.progress(name)
        except SourceChanged as error:
            LOG.info("a table is read again", extra=self._fields(name, why=error))
            return
        except ConnectorError as error:
            self._stop_load(at.online, self._requests[name], state, error)
            return
        state = replace(state, after=after, at=self._clock.now(), last=at.next)
        if not ended:
            at.online.publisher.put([self._changed(state)])
            return
        state = self._changed(replace(state, state=LoadState.ENDED))
        if all(other.state is LoadState.ENDED for other in self._published_together(name, state.load)):
            at.put(LoadEvent(state.load, Part.END, published, state.targets), [], [state])
        else:
            at.online.publisher.put([state])
        LOG.info("loaded a table", extra=self._fields(name, load=state.load, rows=state.rows))

    def _stop_missing(self, online: OnlineLog, round_: Round) -> None:
        """Stop the loads of tables that do not exist."""
        for request, state in self._outstanding():
            if request.table not in round_.tables and request.table in round_.names:
                error = SourceChanged("there is no such table: it was dropped or renamed, or is not captured")
                self._stop_load(online, request, state, error)

    def _stop_load(
        self, online: OnlineLog, request: LoadRequest, state: TableLoad | None, error: ConnectorError
    ) -> None:
        now = self._clock.now()
        state = state or TableLoad.of(request, now, self._states.get(request.table))
        why = error.located[:REASON_CHARACTERS]
        online.publisher.put([self._changed(replace(state, state=LoadState.STOPPED, at=now, why=why))])
        LOG.error("the load of a table has stopped", extra=self._fields(request.table, why=error))

    def _outstanding(self) -> list[OutstandingLoad]:
        """The loads that are not ended. Asked for whenever the stream is read, so only what has changed is sorted."""
        if self._known_outstanding is None:
            self._known_outstanding = outstanding(self._requests.values(), self._states, self._trapped)
        return self._known_outstanding

    def _changed(self, state: TableLoad) -> TableLoad:
        self._states[state.table] = state
        self._known_outstanding = None
        return state

    def _fields(self, table: TableName, **more: object) -> dict[str, object]:
        return {"service": self._config.service, "table": table, **more}
