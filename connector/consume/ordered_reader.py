"""Reads whole events of the log in order: the reader under `connector.consume` and `thl tail`."""

from __future__ import annotations

from collections import deque
from typing import Any

from connector.clock import Clock
from connector.config.model import Config
from connector.consume.assembly import Assembly, Attempts, SomeShards, WholeLog
from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.feed import Feed
from connector.consume.fragments import Fragments
from connector.consume.opening import Beginning
from connector.errors import ConnectorError
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import TailWatch, check_tails
from connector.log.ids import Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.transaction.position import TargetPosition


class OrderedReader:
    """Reads whole events from a beginning on: all events by seqno, or those of the position's shards.

    After `failure` is set it reads no more; events in `ready` precede the failure.

    Args:
        config: the service and its brokers.
        feed: the messages; closed by its owner.
        beginning: the first offsets, and the log's history.
        decoder: decodes the log's messages.
        clock: the clock for the time without progress after which the partitions' ends are checked.
        event_bytes: bytes of an event above which it is held in a temporary file.
        ahead_bytes: bytes of one partition that may wait for an event of another one.
        until_end: find out the partitions' ends, for `check_whole`.
        attempts: called with every attempt at an event, finished or given up.
    """

    def __init__(
        self,
        config: Config,
        feed: Feed,
        beginning: Beginning,
        decoder: MessageDecoder,
        *,
        clock: Clock,
        event_bytes: int,
        ahead_bytes: int,
        until_end: bool = False,
        attempts: Attempts | None = None,
    ) -> None:
        self.position = beginning.position
        self.failure: ConnectorError | None = None
        self._feed = feed
        self._ready: deque[Event] = deque()
        self._limit = ahead_bytes
        self._config = config
        self._until_end = until_end
        self._whole = False  # with `until_end`: everything before the ends was returned, and nothing is missing
        self._tails = TailWatch(config, clock, beginning.offsets)
        self._ends_of = LogReader(config, high_watermark=True)
        self._shards: ShardSequencer[Fragments] | None = None
        self._shown_ends: dict[int, tuple[Seqno, int]] = {}
        self._order: WholeLog | SomeShards
        if beginning.position.shards is None:
            self._order = _whole_log(config, beginning)
        else:
            self._shards = _shards(config, beginning)
            self._order = SomeShards(self._shards, beginning.position)
        self._assembly = Assembly(self._order, decoder, config.topic, event_bytes, attempts)
        self._ends = {p: self._ends_of.bounds(p)[1] for p in beginning.offsets} if until_end else {}
        feed.read_from(beginning.offsets)

    def close(self) -> None:
        """End the reader's own connections."""
        self._ends_of.close()

    def read(self, timeout: float) -> None:
        """Read on.

        Args:
            timeout: seconds to wait for messages.
        """
        try:
            for message in self._feed.messages(timeout):
                self._ready.extend(self._assembly.accept(message))
            if self._shards is not None and not self._ready:
                self._show_ends(self._shards)
            self._feed.pause(self._order.ahead(self._limit))
            self._tails.check(self.position.seqno)
        except ConnectorError as error:
            self.failure = error

    def next(self) -> Event | None:
        """The next event that was read; `position` is then the one after it."""
        if not self._ready:
            return None
        event = self._ready.popleft()
        self.position = event.position
        return event

    @property
    def released(self) -> Seqno:
        """The last event that was read without gaps before it; trapped events count."""
        return self._order.released

    @property
    def ended(self) -> bool:
        """True once everything before the ends was read and returned, and `check_whole` found nothing missing."""
        return self._whole and not self._ready

    def check_whole(self) -> None:
        """Check, once everything before the ends was read and returned, that the log has no further events.

        A partition that lost its end looks like one that was read to its end; the producer's position distinguishes
        them.

        Raises:
            LogDamaged: something is missing.
        """
        if not self._until_end or self._whole or self._ready:
            return
        if any(self._feed.offsets.get(p, 0) < end for p, end in self._ends.items()):
            return
        if self._shards is not None and self._shards.lagging()[1]:
            return
        check_tails(self._config, self._ends)
        self._whole = True

    def _show_ends(self, shards: ShardSequencer[Fragments]) -> None:
        """Report to the sequencer, while a barrier waits, the partitions without further events before it."""
        barrier, partitions = shards.lagging()
        for partition in partitions:
            asked, end = self._shown_ends.get(partition, (None, 0))
            if asked != barrier:
                end = self._ends_of.bounds(partition)[1]
                self._shown_ends[partition] = (barrier, end)
            if self._feed.offsets.get(partition, 0) >= end:
                shards.reached(partition, barrier)
        self._ready.extend(self._assembly.ready())


def _whole_log(config: Config, beginning: Beginning) -> WholeLog:
    position = beginning.position
    of_target = TargetPosition(
        service=position.service,
        log_id=position.log_id,
        seqno=position.seqno,
        epoch=position.epoch,
        offsets=beginning.offsets,
    )
    sequencer: EventSequencer[Fragments, Any] = EventSequencer(
        topic=config.topic, partitions=beginning.partitions, position=of_target, history=beginning.history
    )
    return WholeLog(sequencer, position.service, position.log_id)


def _shards(config: Config, beginning: Beginning) -> ShardSequencer[Fragments]:
    position = beginning.position
    return ShardSequencer(
        topic=config.topic,
        log_id=position.log_id,
        shards=position.shards or (),
        offsets=beginning.offsets,
        floor=position.floor,
        tails=position.tails,
        barrier=position.barrier,
        history=beginning.history,
        version=position.generation,
    )
