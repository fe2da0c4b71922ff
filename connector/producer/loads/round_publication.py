"""Publishes a round of loads at its position, and records how far the load of each of its tables is."""

from __future__ import annotations

import logging
from dataclasses import replace
from threading import Event
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    DiskUnavailable,
    Fenced,
    RecordsDamaged,
    SourceChanged,
    SourceUnavailable,
)
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.producer.loads.events import RoundEvents
from connector.producer.loads.initial import begin_table
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.loads.online import OnlineLog
from connector.producer.loads.open_round import OpenRound
from connector.producer.loads.repair import begin_repair, end_repair
from connector.producer.publish.queue import Work
from connector.producer.sources.source import OpenedTable, Round

LOG: Final = logging.getLogger(__name__)


class RoundPublication:
    """The publication of rounds of one producer.

    Args:
        loads: the loads.
        clock: the clock.
        stop: set to stop the producer.

    Attributes:
        useless: true: the last round had no rows of use.
    """

    def __init__(self, loads: KnownLoads, clock: Clock, stop: Event) -> None:
        self._loads = loads
        self._clock = clock
        self._stop = stop
        self.useless = False

    def publish(self, online: OnlineLog, opened: OpenRound) -> int | None:
        """Publish a round whose position the stream has reached.

        Returns:
            The number of rows; None if the round is given up.

        Raises:
            SourceUnavailable: the source is gone, or a table could not be read within its event.
            ConnectorError: of the publisher.
        """
        position = online.publisher.drain()
        online.publisher.resume()
        at = RoundEvents(online, opened.round, position.resume)
        chosen = self._choose(at, opened)
        self.useless = not chosen
        repaired: set[TableName] = set()
        faults.point("load.before_rows")
        rows = self._publish_rows(at, opened, chosen, repaired)
        if rows is None:
            return None
        faults.point("load.mid_round")
        self._record_all(at, opened, chosen, rows, repaired)
        return sum(rows.values())

    def _choose(self, at: RoundEvents, opened: OpenRound) -> dict[TableName, TableLoad]:
        """Begin the loads of the round's tables, and stop those that are not possible.

        Returns:
            The tables whose rows are of use, and their loads.
        """
        chosen: dict[TableName, TableLoad] = {}
        for request, state in self._loads.outstanding():
            table = opened.round.tables.get(request.table)
            if table is None or opened.loads.get(request.table) != request.load:
                continue
            if table.refusal is not None:
                self._loads.stop(at.online, request, state, table.refusal)
                continue
            usable = opened.round.locked or not (opened.all_spoiled or table.published in opened.spoiled)
            if request.table in opened.repaired:
                try:
                    begun = begin_repair(request, table, self._clock.now())
                except SourceChanged as changed:
                    self._loads.stop(at.online, request, state, changed)
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
        except (BrokerUnavailable, Fenced, DiskUnavailable, RecordsDamaged):  # no table's fault
            raise
        except SourceUnavailable:
            for name, state in chosen.items():
                if error := opened.round.failed(name):
                    self._loads.stop(at.online, self._loads.requests[name], state, error)
            raise
        except ConnectorError as error:
            for name, state in chosen.items():
                if name not in repaired:
                    self._loads.stop(at.online, self._loads.requests[name], state, error)
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
                self._loads.stop(at.online, self._loads.requests[name], state, failed)
            elif name not in repaired:  # the stream has changed all of its rows
                at.online.publisher.put(self._end_repair(state, 0, NO_SEQNO))
        self._stop_missing(at.online, opened.round)

    def _end_repair(self, state: TableLoad, rows: int, event: Seqno) -> Work:
        LOG.info("repaired a table", extra=self._loads.fields(state.table, load=state.load, rows=rows))
        return [self._loads.changed(end_repair(state, rows, event, self._clock.now()))]

    def _can_continue(self, state: TableLoad, table: OpenedTable) -> bool:
        """True if a load goes on in this table where its state says."""
        if state.load_identity != table.load_identity:
            return False
        if state.after is None or table.is_key(state.after):
            return True
        # It would be part of the SQL that the source executes. Others may write to the control topic, too.
        why = "the control topic has something else than a key of the table"
        LOG.warning("the load of a table begins again", extra=self._loads.fields(state.table, why=why))
        return False

    def _begin(self, at: RoundEvents, request: LoadRequest, table: OpenedTable) -> TableLoad:
        before = self._loads.states.get(request.table)
        together = self._loads.published_together(request.table, request.load)
        shares_begin = bool(together) and (before is None or before.load != request.load)
        more: list[LoadRequest] = []
        if self._loads.requests[request.table].keys:  # a repair is not enough
            self._loads.requests[request.table] = request
            more.append(request)
        state = self._loads.changed(
            begin_table(at, request, table, self._clock.now(), [*more], shares_begin=shares_begin)
        )
        if not shares_begin:  # targets start over, with the rows of all of them
            for other in together:
                again = replace(other, state=LoadState.LOADING, after=None, rows=0, begin=state.begin, last=state.last)
                at.online.publisher.put([self._loads.changed(again)])
        LOG.info("the load of a table begins", extra=self._loads.fields(request.table, rows=table.estimate))
        return state

    def _record(self, at: RoundEvents, round_: Round, name: TableName, state: TableLoad) -> None:
        """Record how far a table is after a round, and publish its end."""
        published = round_.tables[name].published
        try:
            after, ended = round_.progress(name)
        except SourceChanged as error:
            LOG.info("a table is read again", extra=self._loads.fields(name, why=error))
            return
        except ConnectorError as error:
            self._loads.stop(at.online, self._loads.requests[name], state, error)
            return
        if ended and at.online.read_again(published):
            why = "rows changed their keys by partial images before they were read"
            LOG.info("a table is read once more", extra=self._loads.fields(name, why=why))
            after, ended = None, False
            for other in self._loads.published_together(name, state.load):  # it may have been a row of theirs
                again = replace(other, state=LoadState.LOADING, after=None)
                at.online.publisher.put([self._loads.changed(again)])
        state = replace(state, after=after, at=self._clock.now(), last=at.next)
        if not ended:
            at.online.publisher.put([self._loads.changed(state)])
            return
        state = self._loads.changed(replace(state, state=LoadState.ENDED))
        if all(other.state is LoadState.ENDED for other in self._loads.published_together(name, state.load)):
            at.put(LoadEvent(state.load, Part.END, published, state.targets), [], [state])
        else:
            at.online.publisher.put([state])
        LOG.info("loaded a table", extra=self._loads.fields(name, load=state.load, rows=state.rows))

    def _stop_missing(self, online: OnlineLog, round_: Round) -> None:
        """Stop the loads of tables that do not exist."""
        for request, state in self._loads.outstanding():
            if request.table not in round_.tables and request.table in round_.names:
                error = SourceChanged("there is no such table: it was dropped or renamed, or is not captured")
                self._loads.stop(online, request, state, error)
