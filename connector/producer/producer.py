"""`thl produce`: goes online, publishes the source's log, and goes offline at the end of an event.

Two threads: this one reads and encodes, the publisher's writes to Kafka; a bounded queue lies between them. A third one
listens for requests to go offline (`connector.kafka.requests`). The producer has a `ProducerState`; `_step` makes every
transition:

- The brokers do not answer, or a Kafka transaction failed: close everything, and go online again in a new epoch. An
  initial load whose beginning is not published begins again; loads of tables go on (`TableLoads`).
- The source does not answer: publish the whole events, and reconnect. If the log has fragments of an unfinished event,
  that event begins again in a new epoch; else the stream continues. In either case the source must first show the log's
  last transaction again.
- The source does not answer while transactions wait for replicas (`publish.wait_for`): they may exist only here, so
  they are dropped, and the producer goes online again at the log's end.
- The record store is damaged: go online again, which begins the store again. If no event is finished in between, or a
  stop was requested, end.
- A signal or a request asks it to stop: end after the current event. An event that does not end within `GRACE` seconds
  stays unfinished, and the next start voids it. Transactions that wait for replicas are not published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from typing import Final, TypeVar

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    Fenced,
    LogDamaged,
    PreflightError,
    RecordsDamaged,
    SourceChanged,
    SourceUnavailable,
)
from connector.health import ProcessHealth
from connector.kafka.records import Request
from connector.kafka.registry import load_subject_of, registered_number
from connector.kafka.requests import listening, send_request
from connector.log.epochs.control import OfflineRequest
from connector.log.epochs.loads import LoadRequest
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.xa import Decided, Prepared
from connector.log.writing.online import go_back, recheck_source
from connector.producer.going_online import GoingOnline, Online
from connector.producer.heartbeats import HeartbeatLabels
from connector.producer.loads.initial import begin_initial_load
from connector.producer.loads.loads import TableLoads
from connector.producer.ownership import EpochOwnership
from connector.producer.publish.publisher import READING
from connector.producer.publish.queue import Work
from connector.producer.publish.replica_gate import ReplicaGate, ReplicaLagging
from connector.producer.sources.source import EventSource
from connector.producer.states import ProducerState
from connector.retrying import Stopped, retry
from connector.schema import fragment_schema, framing, load_schema

LOG: Final = logging.getLogger(__name__)
GRACE: Final = 5.0  # seconds that an open event has to end after a request to stop
WORK_BYTES: Final = 1 << 20  # bytes of fragments in one item of the publisher's queue

T = TypeVar("T")


class Producer:
    """One run of `thl produce`.

    Args:
        config: the configuration.
        source: the server or the files.
        clock: the clock.
        stop: set from outside to end the run.
        accept_trapped: go online once although the source lacks transactions that the log has.
        accept_partial: patterns of tables that may begin to be captured although they have rows.
        start: the start that was given for a new log beside the configuration; a log that exists has to be past it.
        gate: the replicas that must have a transaction before it is published; None: none.
        health: what probes are told of this producer.
    """

    def __init__(
        self,
        config: Config,
        source: EventSource,
        clock: Clock,
        stop: Event,
        *,
        accept_trapped: bool = False,
        accept_partial: Sequence[str] = (),
        start: str | None = None,
        gate: ReplicaGate | None = None,
        health: ProcessHealth | None = None,
    ) -> None:
        self.request: OfflineRequest | None = None  # the request that ended the run
        self.ownership = EpochOwnership()
        self.state = ProducerState.OFFLINE
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._accept_trapped = accept_trapped
        self._accept_partial = accept_partial
        self._start = start
        self._gate = gate
        self._health = health or ProcessHealth(clock)
        self._reading = self._health.loop(READING)
        self._framing = framing()
        self._heartbeat_labels = HeartbeatLabels(config) if config.source.heartbeat_table else None
        self._listeners: ExitStack | None = None  # listens on the control topic once the producer was online
        self._held: Online | None = None
        self._table_loads = TableLoads(config, source, clock, stop)
        self._lost: SourceUnavailable | None = None  # the error of the lost source
        self._stop_seen: float | None = None  # the time at which `stop` was noticed
        self._failed_after = NO_SEQNO  # the last finished event at the last failure
        self._failures = 0  # number of failures since that event
        self._rebuilt_after: Seqno | None = None  # the last finished event when the record store was damaged
        self._position: PositionRecord | None = None

    def run(self) -> PositionRecord | None:
        """Produce until asked to stop, or until the source's files end.

        Returns:
            The position in Kafka; None if the producer was stopped before it was online.

        Raises:
            ConnectorError: an error that is not retryable, or that persisted after all retries.
        """
        if self._config.registry.url.get_secret_value():
            self._framing = framing(
                registered_number(self._config, fragment_schema()),
                registered_number(self._config, load_schema(), load_subject_of(self._config)),
            )
        with ExitStack() as closing:
            closing.callback(self._close)
            self._enter(ProducerState.GOING_ONLINE)
            while self.state is not ProducerState.OFFLINE:
                self._enter(self._step())
        if self.request is not None:  # answered last: this producer has no more work in progress
            seqno = None if self._position is None else self._position.last_finished
            send_request(self._config, replace(self.request, offline_at=self._clock.now(), seqno=seqno))
        return self._position

    @property
    def publishes(self) -> bool:
        """True while it publishes the source's log."""
        return self.state is ProducerState.ONLINE

    def _step(self) -> ProducerState:
        """Do the work of the current state.

        Returns:
            The next state.
        """
        work: Mapping[ProducerState, Callable[[], ProducerState]] = {
            ProducerState.GOING_ONLINE: self._go_online,
            ProducerState.LOADING: self._load,
            ProducerState.ONLINE: self._publish,
            ProducerState.GOING_BACK: self._go_back,
            ProducerState.ENDING: self._end,
        }
        try:
            return work[self.state]()
        except Fenced:
            self.state = ProducerState.FENCED
            raise
        except Stopped:
            return ProducerState.OFFLINE if self._held is None else ProducerState.ENDING
        except ReplicaLagging:
            if self._held is None:
                return ProducerState.OFFLINE
            if self._stop.is_set():
                self._position = self._held.publisher.committed
                return ProducerState.OFFLINE
            LOG.warning("the source is gone: transactions that waited for replicas are dropped", extra=self._fields())
            return ProducerState.GOING_ONLINE
        except BrokerUnavailable as error:
            if self._held is None:
                raise
            self._count(self._held.publisher.committed, error, "publish")
            return ProducerState.GOING_ONLINE
        except RecordsDamaged as error:
            if self._held is None or self._held.completion is None:
                raise
            self._held.completion.discard()
            if self._stop.is_set():  # the next start begins the store again
                return ProducerState.ENDING
            last = self._held.publisher.committed.last_finished
            if self._rebuilt_after == last:  # the store that was made again is, too
                raise
            self._rebuilt_after = last
            self._count(self._held.publisher.committed, error, "records")
            return ProducerState.GOING_ONLINE

    def _enter(self, state: ProducerState) -> None:
        LOG.debug("state", extra=self._fields(state=state.value, previous=self.state.value))
        if state in (ProducerState.GOING_ONLINE, ProducerState.OFFLINE):
            self._close_held()
        self.state = self.state.followed_by(state)
        self._health.enter(state.value, ready=self.publishes)

    def _go_online(self) -> ProducerState:
        def attempt() -> Online:
            return GoingOnline(
                config=self._config,
                source=self._source,
                clock=self._clock,
                stop=self._stop,
                ownership=self.ownership,
                framing=self._framing,
                accept_trapped=self._accept_trapped,
                accept_partial=self._accept_partial,
                start=self._start,
                gate=self._gate,
                health=self._health,
            ).run()

        def with_source() -> Online:
            return self._retry(attempt, self._config.source.retries, "read", SourceUnavailable)

        online = self._held = self._retry(with_source, self._config.kafka.retries, "publish", BrokerUnavailable)
        if online.completion is not None:
            online.completion.loads = self._table_loads.known
        self._start = None  # said once
        self._accept_trapped = False  # a further source that lacks transactions needs another start with the option
        if self._listeners is None:
            with ExitStack() as listeners:
                listeners.enter_context(listening(self._config, online.control_end, self._on_request, role="producer"))
                self._listeners = listeners.pop_all()
        if online.publisher.committed.snapshot:
            return ProducerState.LOADING
        self._table_loads.restore(online.control)
        return ProducerState.ONLINE

    def _on_request(self, request: Request) -> None:
        """Stop at a request to go offline that names an epoch of this process; note a request to load a table."""
        if isinstance(request, LoadRequest):
            self._table_loads.accept(request)
            return
        own = any(request.epoch == begun.epoch for begun in self.ownership.epochs)
        if own and request.offline_at is None and self.request is None:
            self.request = request
            self._stop.set()

    def _load(self) -> ProducerState:
        """Publish the beginning of an initial load; the rows follow while the source's log is published."""
        online = self._online

        def begin() -> None:
            begin_initial_load(online, self._source.snapshot(), self._clock.now(), self._stop)

        self._retry(begin, self._config.source.restarts_in_event, "load", SourceUnavailable, SourceChanged)
        position = online.publisher.drain()
        LOG.info("the initial load begins", extra=self._fields(seqno=position.last_finished, resume=position.resume))
        online.publisher.resume()
        self._table_loads.restore(online.control, initial=True)
        return ProducerState.ONLINE

    def _publish(self) -> ProducerState:
        """Publish the source's log until it ends or a stop is requested."""
        online = self._online
        try:
            with self._reading.under_way():
                while not self._done(online):
                    self._publish_next(online)
        except SourceUnavailable as error:
            self._lost = error
            return ProducerState.GOING_BACK
        except (PreflightError, LogDamaged):  # the work of a newer producer can look like either
            _drain_unfenced(online)
            raise
        return ProducerState.ENDING

    def _publish_next(self, online: Online) -> None:
        """Publish what the source gives next, if it gives anything."""
        self._reading.turn()
        with self._reading.waits():
            self._table_loads.advance(online)
        items, later = self._table_loads.split_at_position(online.stream.read(online.publisher.committed))
        self._put(online, items)
        if later:
            online.stream.push_back(later)
        if online.completion is not None:
            online.completion.rest(self._clock.monotonic())

    def _done(self, online: Online) -> bool:
        if not self._stop.is_set():
            return online.stream.ended
        now = self._clock.monotonic()
        self._stop_seen = self._stop_seen or now
        return not online.encoder.open or now > self._stop_seen + GRACE

    def _put(self, online: Online, items: list[Item]) -> None:
        """Encode items, and queue them for the publisher in work of about `WORK_BYTES`."""
        work: Work = []
        size = 0
        if self._heartbeat_labels is not None:
            items = self._heartbeat_labels.labelled(items)
        if online.completion is not None:
            online.completion.prefetch(items)
        at = 0
        while at < len(items):
            item = items[at]
            if isinstance(item, TransactionBatch):
                at, added = online.encoder.encode_on(items, at, WORK_BYTES - size, work)
                size += added
                if size >= WORK_BYTES:
                    online.put(work)
                    work, size = [], 0
                continue
            at += 1
            if isinstance(item, PositionAdvance):
                work.append(item)
            elif isinstance(item, Redefined):  # queued with the end of its event
                work += [item, *self._table_loads.redefined(item)]
                if online.stream.tables is not None:
                    online.stream.tables = online.stream.tables.after(item)
            else:
                online.put(work)
                work, size = [], 0
                self._put_xa(online, item)
        online.put(work)

    def _put_xa(self, online: Online, item: Prepared | Decided) -> None:
        """Store a batch of an XA transaction, or publish the transaction as an event.

        Raises:
            Stopped: a stop was requested, and the event did not end in time.
        """
        for work in online.prepared.accept(item):
            online.put(work)
            if online.encoder.open and self._done(online):
                raise Stopped

    def _go_back(self) -> ProducerState:
        """Publish the whole events after the loss of the source, wait for the source, and continue at the log's end."""
        online, error = self._online, self._lost
        self._table_loads.abandon()
        if error is None:
            raise RuntimeError("the source is not lost")
        open_event = online.encoder.open
        position = _drain_unfenced(online)
        if open_event:
            self._count(position, error, "read")
        else:
            LOG.warning("the source is gone", extra=self._fields(resume=position.resume, why=error))

        def reopen() -> None:
            self._source.check(load=False)
            facts = self._source.facts(new=False)
            last = online.control.epochs[-1]
            if last.capture is not None and last.capture != facts.capture:
                raise PreflightError(
                    "the hash key has changed since the producer began: source.filters.hash_key_file",
                    hint="restore the file; or start the producer again, which says what the log then lacks",
                    service=self._config.service,
                )
            recheck_source(online.control, position, facts)
            online.stream.open(position, online.control, facts.server_uuid, online.encoder)
            if position.open or facts.server_uuid != last.server_uuid:
                online.begin(go_back(online.control, position, facts))
            else:
                online.number(position)
                online.publisher.resume()

        self._retry(reopen, self._config.source.retries, "read", SourceUnavailable)
        LOG.info(
            "the source is back",
            extra=self._fields(
                epoch=online.control.epochs[-1].epoch,
                next_seqno=position.last_finished + 1,
                went_back=position.open is not None,
            ),
        )
        return ProducerState.ONLINE

    def _end(self) -> ProducerState:
        self._position = self._online.publisher.drain()
        return ProducerState.OFFLINE

    def _count(self, position: PositionRecord, error: ConnectorError, stage: str) -> None:
        """Count a failure within an event.

        Raises:
            ConnectorError: the failure, if it occurred too often without a finished event in between.
        """
        if position.last_finished != self._failed_after:
            self._failed_after, self._failures = position.last_finished, 0
        self._failures += 1
        metrics.restarts.labels(self._config.service, stage).inc()
        LOG.warning(
            "failed",
            extra=self._fields(stage=stage, after_seqno=position.last_finished, times=self._failures, why=error),
        )
        if self._failures > self._config.source.restarts_in_event:
            raise error

    def _retry(self, call: Callable[[], T], retries: int, stage: str, *errors: type[ConnectorError]) -> T:
        service = self._config.service
        return retry(call, errors, retries=retries, service=service, stage=stage, stop=self._stop, clock=self._clock)

    @property
    def _online(self) -> Online:
        if self._held is None:
            raise RuntimeError("the producer is not online")
        return self._held

    def _fields(self, **more: object) -> dict[str, object]:
        return {"service": self._config.service, **more}

    def _close_held(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            held.close()

    def _close(self) -> None:
        try:
            self._table_loads.abandon()
            self._close_held()
        finally:
            if self._listeners is not None:
                self._listeners.close()


def _drain_unfenced(online: Online) -> PositionRecord:
    """Publish the whole events, and check that no newer producer has taken over.

    A newer producer's dump connection ends this one's, because both register as the same replica; this producer may
    notice that before the fencing.

    Raises:
        Fenced: a newer producer has taken over.
        ReplicaLagging: transactions wait for replicas and may never be published.
    """
    position = online.publisher.drain(hurried=True)
    online.publisher.confirm()
    return position
