"""`thl produce`: goes online, publishes what the source has, and goes offline at the end of an event.

Two threads: this one reads and encodes, the publisher's writes to Kafka; a bounded queue lies between them. A third one
listens for requests to go offline (`connector.kafka.requests`). The producer is in one `State`; `_step` makes every
transition:

- The brokers are gone, or the Kafka transaction failed: close everything, and go online again in a new epoch.
- The source is gone: publish what is whole, and go back. If fragments of an event are in the log without its last one,
  that event begins again in a new epoch; else the stream goes on where it was. Either way the source first shows that
  it still has the log's last transaction.
- Replicas are waited for (`publish.wait_for`) and the source is gone, so the held transactions may exist nowhere else:
  they are forgotten, and the producer goes online again where the log ends.
- Asked to stop, by a signal or through the control topic: end with the event. An event that does not end within `GRACE`
  seconds stays open, and the next start voids it. Transactions held for replicas are not published then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum
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
    SourceChanged,
    SourceUnavailable,
)
from connector.kafka.registry import registered_number
from connector.kafka.requests import listening, send_request
from connector.log.epochs.control import OfflineRequest
from connector.log.ids import NO_SEQNO
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.xa import Decided, Prepared
from connector.log.writing.online import go_back, recheck_source
from connector.producer.going_online import GoingOnline, Online
from connector.producer.heartbeats import HeartbeatLabels
from connector.producer.ownership import EpochOwnership
from connector.producer.publish.fragments import size_of
from connector.producer.publish.queue import Work
from connector.producer.publish.replica_gate import ReplicaGate, ReplicaLagging
from connector.producer.sources.source import SnapshotCompleted, Source
from connector.retrying import Stopped, retry
from connector.schema import fragment_schema, framing

LOG: Final = logging.getLogger(__name__)
GRACE: Final = 5.0  # seconds that an open event has to end after a request to stop
WORK_BYTES: Final = 1 << 20  # bytes of fragments in one item of the publisher's queue

T = TypeVar("T")


class State(Enum):
    """The states of a producer."""

    OFFLINE = "offline"  # holds nothing: before the start and after the end
    GOING_ONLINE = "going online"  # goes through the six steps of `GoingOnline`
    LOADING = "loading"  # publishes the initial load
    ONLINE = "online"  # publishes the source's log
    GOING_BACK = "going back"  # has lost the source: waits for it, and goes on where the log ends
    ENDING = "ending"  # publishes what was read, and reads no more
    FENCED = "fenced"  # a newer producer has taken over


TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.OFFLINE: frozenset({State.GOING_ONLINE}),
    State.GOING_ONLINE: frozenset({State.GOING_ONLINE, State.LOADING, State.ONLINE, State.OFFLINE}),
    State.LOADING: frozenset({State.ONLINE, State.ENDING, State.GOING_ONLINE, State.OFFLINE}),
    State.ONLINE: frozenset({State.GOING_BACK, State.ENDING, State.GOING_ONLINE, State.OFFLINE}),
    State.GOING_BACK: frozenset({State.ONLINE, State.ENDING, State.GOING_ONLINE, State.OFFLINE}),
    State.ENDING: frozenset({State.GOING_ONLINE, State.OFFLINE}),
    State.FENCED: frozenset(),
}
"""The next states of each. Every one but OFFLINE also goes to FENCED; any other error ends the run in OFFLINE."""


class Producer:
    """One run of `thl produce`.

    Args:
        config: everything.
        source: the server or the files.
        clock: the time.
        stop: set from outside to end the run.
        accept_trapped: go online although the source lacks transactions that the log has: once.
        accept_partial: patterns of tables that may begin to be captured although they hold rows.
        gate: the replicas that must have a transaction before it is published; None: there are none.
    """

    def __init__(
        self,
        config: Config,
        source: Source,
        clock: Clock,
        stop: Event,
        *,
        accept_trapped: bool = False,
        accept_partial: Sequence[str] = (),
        gate: ReplicaGate | None = None,
    ) -> None:
        self.request: OfflineRequest | None = None  # the request that ended the run
        self.ownership = EpochOwnership()
        self.state = State.OFFLINE
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._accept_trapped = accept_trapped
        self._accept_partial = accept_partial
        self._gate = gate
        self._framing = framing()
        self._heartbeat_labels = HeartbeatLabels(config) if config.source.heartbeat_table else None
        self._listeners: ExitStack | None = None  # of the control topic, from the first time online on
        self._held: Online | None = None
        self._lost: SourceUnavailable | None = None  # the error with which the source was lost
        self._stop_seen: float | None = None  # the time at which `stop` was noticed
        self._failed_after = NO_SEQNO  # the last finished event at the last failure
        self._failures = 0  # since that event
        self._position: PositionRecord | None = None

    def run(self) -> PositionRecord | None:
        """Produce until asked to stop, or until the source's files end.

        Returns:
            The position in Kafka; None when the producer was stopped before it was online.

        Raises:
            ConnectorError: an error that no retry can cure, or that came back after every retry.
        """
        if self._config.registry.url.get_secret_value():
            self._framing = framing(registered_number(self._config, fragment_schema()))
        with ExitStack() as closing:
            closing.callback(self._close)
            self._enter(State.GOING_ONLINE)
            while self.state is not State.OFFLINE:
                self._enter(self._step())
        if self.request is not None:  # answered last: nothing of this producer is under way any more
            seqno = None if self._position is None else self._position.last_finished
            send_request(self._config, replace(self.request, offline_at=self._clock.now(), seqno=seqno))
        return self._position

    def _step(self) -> State:
        """Do the work of the present state.

        Returns:
            The next state.
        """
        work: Mapping[State, Callable[[], State]] = {
            State.GOING_ONLINE: self._go_online,
            State.LOADING: self._load,
            State.ONLINE: self._publish,
            State.GOING_BACK: self._go_back,
            State.ENDING: self._end,
        }
        try:
            return work[self.state]()
        except Fenced:
            self.state = State.FENCED
            raise
        except Stopped:
            return State.OFFLINE if self._held is None else State.ENDING
        except ReplicaLagging:
            if self._held is None:
                return State.OFFLINE
            if self._stop.is_set():
                self._position = self._held.publisher.committed
                return State.OFFLINE
            LOG.warning("the source is gone, and the held transactions are forgotten", extra=self._fields())
            return State.GOING_ONLINE
        except BrokerUnavailable as error:
            if self._held is None:
                raise
            self._count(self._held.publisher.committed, error, "publish")
            return State.GOING_ONLINE

    def _enter(self, state: State) -> None:
        if state not in TRANSITIONS[self.state]:
            raise RuntimeError(f"a producer does not go from {self.state.value} to {state.value}")
        LOG.debug("state", extra=self._fields(state=state.value, previous=self.state.value))
        if state in (State.GOING_ONLINE, State.OFFLINE):
            self._close_held()
        self.state = state

    def _go_online(self) -> State:
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
                gate=self._gate,
            ).run()

        def with_source() -> Online:
            return self._retry(attempt, self._config.source.retries, "read", SourceUnavailable)

        online = self._held = self._retry(with_source, self._config.kafka.retries, "publish", BrokerUnavailable)
        self._accept_trapped = False  # another source that lacks transactions must be accepted by another start
        if self._listeners is None:
            with ExitStack() as listeners:
                listeners.enter_context(listening(self._config, online.control_end, self._on_request))
                self._listeners = listeners.pop_all()
        return State.LOADING if online.publisher.committed.snapshot else State.ONLINE

    def _on_request(self, request: OfflineRequest) -> None:
        """Stop at a request to go offline that names an epoch of this process."""
        own = any(request.epoch == begun.epoch for begun in self.ownership.epochs)
        if own and request.offline_at is None and self.request is None:
            self.request = request
            self._stop.set()

    def _load(self) -> State:
        """Publish an initial load, from its beginning; a producer that is stopped in it begins it again."""
        online = self._online
        self._retry(self._load_once, self._config.source.restarts_in_event, "load", SourceUnavailable, SourceChanged)
        position = online.publisher.drain()
        LOG.info("loaded", extra=self._fields(seqno=position.last_finished, resume=position.resume))
        online.publisher.resume()
        return State.ONLINE

    def _load_once(self) -> None:
        online, load = self._online, self._source.load()
        try:
            for batch in load.batches():
                if self._stop.is_set():
                    raise Stopped
                work: Work = [*online.encoder.encode(batch)]
                if batch.begin is not None and batch.begin.metadata.get("snapshot") == "end":
                    work.append(SnapshotCompleted(load.position[1]))
                    online.stream.tables = load.tables
                    if load.tables is not None:
                        work.append(load.tables)
                online.publisher.put(work)
        finally:
            load.close()

    def _publish(self) -> State:
        """Publish the source's log, until it ends or the producer is to stop."""
        online = self._online
        try:
            while not self._done(online):
                self._put(online, online.stream.read(online.publisher.committed))
        except SourceUnavailable as error:
            self._lost = error
            return State.GOING_BACK
        except (PreflightError, LogDamaged):  # both may be what a newer producer's work looks like from here
            _drain_unfenced(online)
            raise
        return State.ENDING

    def _done(self, online: Online) -> bool:
        if not self._stop.is_set():
            return online.stream.ended
        now = self._clock.monotonic()
        self._stop_seen = self._stop_seen or now
        return not online.encoder.open or now > self._stop_seen + GRACE

    def _put(self, online: Online, items: list[Item]) -> None:
        """Encode items, and put them into the publisher's queue in parts of about `WORK_BYTES`."""
        work: Work = []
        size = 0
        if self._heartbeat_labels is not None:
            items = self._heartbeat_labels.labelled(items)
        for item in items:
            if isinstance(item, PositionAdvance):
                work.append(item)
                continue
            if isinstance(item, Redefined):  # in the same work as the end of its event
                work.append(item)
                if online.stream.tables is not None:
                    online.stream.tables = online.stream.tables.after(item)
                continue
            if not isinstance(item, TransactionBatch):
                online.publisher.put(work)
                work, size = [], 0
                self._put_xa(online, item)
                continue
            if size >= WORK_BYTES:
                online.publisher.put(work)
                work, size = [], 0
            fragments = online.encoder.encode(item)
            work += fragments
            size += size_of(fragments)
        online.publisher.put(work)

    def _put_xa(self, online: Online, item: Prepared | Decided) -> None:
        """Store a batch of an XA transaction; or publish the transaction as an event.

        Raises:
            Stopped: the producer is to stop, and the event does not end in time.
        """
        for work in online.prepared.accept(item):
            online.publisher.put(work)
            if online.encoder.open and self._done(online):
                raise Stopped

    def _go_back(self) -> State:
        """The source is gone: publish what is whole, wait for the source, and go on where the log ends."""
        online, error = self._online, self._lost
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
        return State.ONLINE

    def _end(self) -> State:
        self._position = self._online.publisher.drain()
        return State.OFFLINE

    def _count(self, position: PositionRecord, error: ConnectorError, stage: str) -> None:
        """Count a failure within an event.

        Raises:
            ConnectorError: the failure, when it came too often without an event finished.
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
            self._close_held()
        finally:
            if self._listeners is not None:
                self._listeners.close()


def _drain_unfenced(online: Online) -> PositionRecord:
    """Publish what is whole, and make sure that no newer producer has taken over.

    A newer one's dump connection ends this one's, because both register as the same replica: this producer may see
    that first.

    Raises:
        Fenced: a newer producer has taken over.
        ReplicaLagging: transactions are held that may never be published.
    """
    position = online.publisher.drain(hurried=True)
    online.publisher.confirm()
    return position
