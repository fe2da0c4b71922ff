"""The producer: capture, encode and publish joined, from going online to a clean end.

Two threads: this one reads and encodes, the publisher's writes to Kafka. Between them a bounded queue. A third one
listens for who wants the producer offline (`connector.kafka.requests`).
- The broker is gone, or our Kafka transaction failed: everything is let go, and we go online again (a new epoch).
- The source is gone: what is whole is published. If fragments of an event are in the log without its last one, we
  go back to its beginning in a new epoch; else the stream goes on where it was. Either way the source proves first
  that it still has the log's last transaction.
- Replicas are waited for (`publish.wait_for`) and the source is gone, so what is held may never be anywhere else: it is
  forgotten, and we go online again where the log ends.
- Asked to stop, by a signal or through the control topic: at the event's end. One that does not end within `GRACE`
  seconds stays open; the next start voids it. What is held then is not published.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from typing import Final

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    LogDamaged,
    PreflightError,
    SourceChanged,
    SourceUnavailable,
)
from connector.kafka.registry import registered_number
from connector.kafka.requests import listening, tell
from connector.log.ids import NO_SEQNO
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.definition import Redefined
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.xa import Decided, Prepared
from connector.log.writing.control import OfflineRequest
from connector.log.writing.online import go_back, recheck_source
from connector.producer.going_online import Items, OnlineProducer
from connector.producer.heartbeats import Marker
from connector.producer.ownership import EpochOwnership
from connector.producer.publish.fragments import size_of
from connector.producer.publish.loaded import SnapshotCompleted
from connector.producer.publish.queue import Work
from connector.producer.publish.replica_gate import ReplicaGate, ReplicaLagging
from connector.producer.sources.source import Source
from connector.retrying import Stopped, retry
from connector.schema import fragment_schema, framing

LOG: Final = logging.getLogger(__name__)
READ: Final = 0.2  # seconds without anything, after which we look whether to stop
GRACE: Final = 5.0
WORK_BYTES: Final = 1 << 20  # of fragments that are handed on at once


class Producer:
    """One run of `thl produce`.

    Args:
        config: everything.
        source: where from.
        clock: the time.
        stop: set by whoever wants it to end.
        accept_trapped: go online although the source lacks transactions that the log has: once.
        accept_partial: patterns of tables that may begin to be captured although they hold rows.
        hold: what has to be elsewhere before it is published; None: nothing.
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
        hold: ReplicaGate | None = None,
    ) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._asked: float | None = None  # when we saw that we are to stop
        self._failed_after = NO_SEQNO  # the last finished event when something failed
        self._failures = 0  # since that event
        self._begun = EpochOwnership()
        self._marker = Marker(config) if config.source.heartbeat_table else None
        self._accept_trapped = accept_trapped
        self._accept_partial = accept_partial
        self._framing = framing()
        self.request: OfflineRequest | None = None  # as whose answer it ended
        self._hold = hold

    def run(self) -> PositionRecord | None:
        """Produce until asked to stop, or until the files that are the source end.

        Returns:
            The position in Kafka; None when we were stopped before we were online.

        Raises:
            ConnectorError: what cannot be helped by trying again, or was not by trying often.
        """
        with ExitStack() as ear:
            position = self._run(ear)
        if self.request is not None:  # now that nothing of ours is under way
            seqno = None if position is None else position.last_finished
            tell(self._config, replace(self.request, offline_at=self._clock.now(), seqno=seqno))
        return position

    def _run(self, ear: ExitStack) -> PositionRecord | None:
        config, heard = self._config, False
        if config.registry.url.get_secret_value():
            self._framing = framing(registered_number(config, fragment_schema()))
        try:
            while True:
                online = retry(
                    self._go_online,
                    (BrokerUnavailable,),
                    retries=config.kafka.retries,
                    service=config.service,
                    stage="publish",
                    stop=self._stop,
                    clock=self._clock,
                )
                try:
                    if not heard:
                        ear.enter_context(listening(config, online.control_end, self._asked_offline))
                        heard = True
                    return self._produce(online)
                except ReplicaLagging:
                    if self._stop.is_set():
                        return online.publisher.committed
                    LOG.warning("the source is gone, and what is held is forgotten", extra={"service": config.service})
                except BrokerUnavailable as error:
                    self._count(online.publisher.committed, error, "publish")
                finally:
                    online.close()
        except (Stopped, ReplicaLagging):
            return None

    def _asked_offline(self, request: OfflineRequest) -> None:
        """Somebody asked a producer to go offline: us?"""
        ours = any(request.epoch == begun.epoch for begun in self._begun.epochs)
        if ours and request.offline_at is None and self.request is None:
            self.request = request
            self._stop.set()

    def _go_online(self) -> OnlineProducer:
        def attempt() -> OnlineProducer:
            online = OnlineProducer(
                self._config,
                self._source,
                self._clock,
                self._stop,
                self._begun,
                framing=self._framing,
                accept_trapped=self._accept_trapped,
                accept_partial=self._accept_partial,
                hold=self._hold,
            )
            try:
                online.go()
            except BaseException:
                online.close()
                raise
            self._accept_trapped = False  # of this source; another that lacks something has to be accepted anew
            return online

        return retry(
            attempt,
            (SourceUnavailable,),
            retries=self._config.source.retries,
            service=self._config.service,
            stage="read",
            stop=self._stop,
            clock=self._clock,
        )

    def _produce(self, online: OnlineProducer) -> PositionRecord:
        try:
            if online.publisher.committed.snapshot:
                self._load(online)
            while not self._done(online):
                try:
                    self._hand_on(online, self._read(online))
                except SourceUnavailable as error:
                    self._go_back(online, error)
                except (PreflightError, LogDamaged):  # both may be a newer producer's work, as we see it
                    _still_ours(online)
                    raise
        except Stopped:
            LOG.debug("stopped while waiting")
        return online.publisher.drain()

    def _done(self, online: OnlineProducer) -> bool:
        if not self._stop.is_set():
            return online.stream is not None and online.stream.ended and not online.ahead
        now = self._clock.monotonic()
        self._asked = self._asked or now
        return not online.encoder.open or now > self._asked + GRACE

    def _read(self, online: OnlineProducer) -> Items:
        if online.ahead:
            items, online.ahead = online.ahead, []
            return items
        if online.stream is None:  # a load has just ended
            online.stream = self._source.after(online.publisher.committed, online.tables)
        return online.stream.read(READ)

    def _hand_on(self, online: OnlineProducer, items: Items) -> None:
        work: Work = []
        size = 0
        if self._marker is not None:
            items = self._marker.marked(items)
        for item in items:
            if isinstance(item, PositionAdvance):
                work.append(item)
                continue
            if isinstance(item, Redefined):  # in the same work as the end of its event
                work.append(item)
                if online.tables is not None:
                    online.tables = online.tables.after(item)
                continue
            if not isinstance(item, TransactionBatch):
                online.publisher.put(work)
                work, size = [], 0
                self._xa(online, item)
                continue
            if size >= WORK_BYTES:
                online.publisher.put(work)
                work, size = [], 0
            fragments = online.encoder.take(item)
            work += fragments
            size += size_of(fragments)
        online.publisher.put(work)

    def _xa(self, online: OnlineProducer, item: Prepared | Decided) -> None:
        """An XA transaction's next piece is kept; or the whole becomes an event.

        Raises:
            Stopped: we are to stop, and the event does not end in time.
        """
        for work in online.prepared.take(item):
            online.publisher.put(work)
            if online.encoder.open and self._done(online):
                raise Stopped

    def _load(self, online: OnlineProducer) -> None:
        """Publish an initial load, from its beginning.

        Raises:
            Stopped: we are to stop; the next start begins it anew.
        """

        def whole_load() -> None:
            load = self._source.load()
            try:
                for piece in load.pieces():
                    if self._stop.is_set():
                        raise Stopped
                    work: Work = [*online.encoder.take(piece)]
                    if piece.begin is not None and piece.begin.metadata.get("snapshot") == "end":
                        work.append(SnapshotCompleted(load.position[1]))
                        online.tables = load.tables
                        if load.tables is not None:
                            work.append(load.tables)
                    online.publisher.put(work)
            finally:
                load.close()

        service, retries = self._config.service, self._config.source.restarts_in_event
        errors = (SourceUnavailable, SourceChanged)
        retry(whole_load, errors, retries=retries, service=service, stage="load", stop=self._stop, clock=self._clock)
        position = online.publisher.drain()
        LOG.info("loaded", extra={"service": service, "seqno": position.last_finished, "resume": position.resume})
        online.publisher.resume()

    def _go_back(self, online: OnlineProducer, error: SourceUnavailable) -> None:
        """The source is gone: publish what is whole, wait for the source, and go on where the log ends."""
        begun = online.encoder.open
        position = _still_ours(online)
        if begun:
            self._count(position, error, "read")
        else:
            fields = {"service": self._config.service, "resume": position.resume, "why": error}
            LOG.warning("the source is gone", extra=fields)

        def reopen() -> None:
            self._source.check(load=False)
            facts = self._source.facts(new=False)
            last = online.control.epochs[-1]
            recheck_source(online.control, position, facts)
            online.reopen(position, online.control, facts.server_uuid)
            if position.open or facts.server_uuid != last.server_uuid:
                online.begin(go_back(online.control, position, facts))
            else:
                online.number(position)
                online.publisher.resume()

        retry(
            reopen,
            (SourceUnavailable,),
            retries=self._config.source.retries,
            service=self._config.service,
            stage="read",
            stop=self._stop,
            clock=self._clock,
        )
        LOG.info(
            "the source is back",
            extra={
                "service": self._config.service,
                "epoch": online.control.epochs[-1].epoch,
                "next_seqno": position.last_finished + 1,
                "went_back": position.open is not None,
            },
        )

    def _count(self, position: PositionRecord, error: ConnectorError, stage: str) -> None:
        """A failure within an event: told, and given up when it comes too often without an event finished."""
        if position.last_finished != self._failed_after:
            self._failed_after, self._failures = position.last_finished, 0
        self._failures += 1
        metrics.restarts.labels(self._config.service, stage).inc()
        LOG.warning(
            "failed",
            extra={
                "service": self._config.service,
                "stage": stage,
                "after_seqno": position.last_finished,
                "times": self._failures,
                "why": error,
            },
        )
        if self._failures > self._config.source.restarts_in_event:
            raise error


def _still_ours(online: OnlineProducer) -> PositionRecord:
    """Publish what is whole, and make sure that no newer producer has taken over.

    A newer one's dump ends ours, because both register as the same replica: that is the first we see of it.

    Raises:
        Fenced: one has.
        Held: something is held that may never be published.
    """
    position = online.publisher.drain(hurried=True)
    online.publisher.confirm()
    return position
