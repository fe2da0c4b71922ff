"""The log's events, one after the other, for as long as one asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from connector.clock import SystemClock
from connector.config.model import Config, Kafka
from connector.consume.assembly import Assembly, SomeShards, WholeLog
from connector.consume.decoding import Decoder
from connector.consume.event import Event
from connector.consume.feed import Feed
from connector.consume.fragments import Fragments
from connector.consume.opening import Beginning, begin
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import ConfigError, ConnectorError
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import TailWatch, check_tails
from connector.log.ids import Kind, Seqno, ShardId
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.transaction.position import TargetPosition

EVENT_BYTES: Final = 8 << 20
AHEAD_BYTES: Final = 64 << 20
LOOK: Final = 1.0  # seconds; how long an endless wait waits at once


class Consumer:
    """Whole transactions of a log, in order, each once.

    ```python
    with Consumer("localhost:9092", "shop", start=Start.oldest()) as consumer:
        for event in consumer:
            for change in event.changes:
                ...
    ```

    Without `shards` every event is given, in the order of seqno, and a missing one is an error. With `shards` those of
    the shards and all barriers: the events of a shard in order, and every one on its side of each barrier; events of
    different partitions between two barriers come in any order.

    Never given: an event before its last fragment has come; one that its producer gave up; EPOCH markers.

    What is wrong is raised as a `ConnectorError`, after everything before it was given. The consumer reads no more
    then: open another one, with the position behind the last event that was dealt with. `LogDamaged` names the seqno
    and the topic-partition@offset where something is missing or wrong; `HistoriesDiffer` says that the log is not the
    one that the position is of, or was given another history since. For both, trying again does not help;
    `BrokerUnavailable` may pass.

    Not for several threads at once, and there is no fencing: two consumers with one group both read everything, and
    overwrite each other's commits.

    Args:
        bootstrap: host:port[,host:port…] of Kafka's brokers.
        service: the name of the log.
        properties: any librdkafka property: SASL, TLS …
        topic_prefix: as `kafka.topic_prefix` of the producer.
        start: where to begin. Default: after what the group has committed, at the beginning if nothing; without a group
            at the beginning.
        group: the Kafka group in whose offsets `commit` stores positions.
        shards: read these alone, and barriers, up to where another rule makes shards (`ShardsChanged`).
        until_end: stop at the log's end as it is when the consumer opens.
        heartbeats: give events of the kind HEARTBEAT, too.
        schemas: further versions of fragment.avsc, as parsed JSON, that the log's producers have written with.
        event_bytes: what of an event is more than this is held in a temporary file.
        ahead_bytes: of one partition, while another one has what comes next.
    """

    def __init__(
        self,
        bootstrap: str,
        service: str,
        *,
        properties: Mapping[str, str] | None = None,
        topic_prefix: str = "thl",
        start: Start | ConsumerPosition | None = None,
        group: str | None = None,
        shards: Collection[str] | None = None,
        until_end: bool = False,
        heartbeats: bool = False,
        schemas: Iterable[dict[str, Any]] = (),
        event_bytes: int = EVENT_BYTES,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        try:
            kafka = Kafka(bootstrap=bootstrap, topic_prefix=topic_prefix, properties=dict(properties or {}))
            self._config = Config(service=service, kafka=kafka)
        except ValidationError as error:
            raise ConfigError(f"no consumer can be made of this: {error}") from error
        self._start = start or (Start.committed() if group else Start.beginning())
        self._group = group
        self._shards = None if shards is None else tuple(sorted(ShardId(shard) for shard in set(shards)))
        self._heartbeats = heartbeats
        self._until_end = until_end
        self._event_bytes = event_bytes
        self._ahead_bytes = ahead_bytes
        self._clock = SystemClock()
        self._decoder = Decoder(self._config.topic, schemas)
        self._feed: Feed | None = None
        self._reading: _Reading | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Find the place to begin at, prove that it lies on the log's history, and begin to read.

        Raises:
            HistoriesDiffer, LogDamaged: the log is not the one that was followed, or what comes next is not there.
            ConfigError: there is no such place.
            BrokerUnavailable: Kafka does not answer, or there is no such log yet.
            PreflightError: Kafka refuses us.
        """
        if self._feed is not None:
            raise ConfigError("the consumer is open already")
        self._feed = feed = Feed(self._config, self._group)
        try:
            beginning = begin(
                self._config,
                self._start,
                self._shards,
                self._decoder,
                lambda partitions: feed.committed(self._config.service, partitions),
            )
            self._reading = _Reading(self, feed, beginning)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections. Nothing is committed by it."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def poll(self, timeout: float = LOOK) -> Event | None:
        """The next event.

        Args:
            timeout: seconds after which to come back without one.

        Returns:
            None: there was none within the time, or with `until_end` there is none any more: see `at_end`.
        """
        reading = self._open()
        until = self._clock.monotonic() + timeout
        while True:
            while reading.ready:
                event = reading.ready.popleft()
                reading.position = event.position
                if event.kind is not Kind.HEARTBEAT or self._heartbeats:
                    return event
            if reading.failure is not None:
                raise reading.failure
            reading.check_whole()
            left = until - self._clock.monotonic()
            if self.at_end or left < 0:
                return None
            reading.read(min(left, LOOK))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event, waited for; with `until_end` there is a last one."""
        while True:
            event = self.poll()
            if event is not None:
                return event
            if self.at_end:
                raise StopIteration

    @property
    def at_end(self) -> bool:
        """Whether everything was given that `until_end` asks for."""
        return self._until_end and self._open().ended

    @property
    def position(self) -> ConsumerPosition:
        """The place behind the event that was given last; before the first, the one where reading began."""
        return self._open().position

    def commit(self, upto: Event | ConsumerPosition | None = None) -> None:
        """Store in the group's offsets that everything up to an event is done.

        When it has come back it is stored. What was given and not committed is given again by the group's next
        consumer: at least once. For exactly once store `event.position` with what the event led to.

        Args:
            upto: the event, or a position; default: the event that was given last.

        Raises:
            ConfigError: there is no group.
            BrokerUnavailable, PreflightError: Kafka does not take it.
        """
        reading = self._open()
        position = reading.position if upto is None else upto.position if isinstance(upto, Event) else upto
        reading.feed.commit(position)

    def _open(self) -> _Reading:
        if self._reading is None:
            raise ConfigError("the consumer is not open", hint="with Consumer(…) as consumer: …")
        return self._reading


class _Reading:
    """A consumer that is open."""

    def __init__(self, consumer: Consumer, feed: Feed, beginning: Beginning) -> None:
        config = consumer._config
        self.feed = feed
        self.position = beginning.position
        self.ready: deque[Event] = deque()
        self.failure: ConnectorError | None = None
        self._limit = consumer._ahead_bytes
        self._config = config
        self._until_end = consumer._until_end
        self._whole = False  # with `until_end`: everything before the ends was given, and nothing is missing
        self._tails = TailWatch(config, consumer._clock, beginning.offsets)
        self._joined: ShardSequencer[Fragments] | None = None
        self._shown: dict[int, tuple[Seqno, int]] = {}
        self._ends_of = LogReader(config, settled=True)
        position = beginning.position
        if position.shards is None:
            of_target = TargetPosition(
                service=position.service,
                log_id=position.log_id,
                seqno=position.seqno,
                epoch=position.epoch,
                offsets=beginning.offsets,
            )
            ledger: EventSequencer[Fragments, Any] = EventSequencer(
                topic=config.topic,
                partitions=beginning.partitions,
                position=of_target,
                history=beginning.history,
            )
            self._order: WholeLog | SomeShards = WholeLog(ledger, position.service, position.log_id)
        else:
            self._joined = ShardSequencer(
                topic=config.topic,
                log_id=position.log_id,
                shards=position.shards,
                offsets=beginning.offsets,
                floor=position.floor,
                tails=position.tails,
                barrier=position.barrier,
                history=beginning.history,
                generation=position.generation,
            )
            self._order = SomeShards(self._joined, position)
        self._assembly = Assembly(self._order, consumer._decoder, config.topic, consumer._event_bytes)
        self._ends = {p: self._ends_of.bounds(p)[1] for p in beginning.offsets} if consumer._until_end else {}
        feed.read_from(beginning.offsets)

    def close(self) -> None:
        self._ends_of.__exit__(None, None, None)

    def read(self, timeout: float) -> None:
        """Read on. What may be given now is in `ready` then, and in `failure` why there will be no more after that."""
        try:
            for message in self.feed.messages(timeout):
                self.ready.extend(self._assembly.take(message))
            if self._joined is not None and not self.ready:
                self._show_ends(self._joined)
            self.feed.hold(self._order.ahead(self._limit))
            self._tails.look(self.position.seqno)
        except ConnectorError as error:
            self.failure = error

    @property
    def ended(self) -> bool:
        """Whether everything before the ends was read and given, and `check_whole` found it to be whole."""
        return self._whole and not self.ready

    def check_whole(self) -> None:
        """Check, once everything before the ends was read and given, that the log has no more than that.

        A partition that lost its end looks like one that is read to its end; the position tells them apart.

        Raises:
            LogDamaged: something is missing.
        """
        if not self._until_end or self._whole or self.ready:
            return
        if any(self.feed.places.get(p, 0) < end for p, end in self._ends.items()):
            return
        if self._joined is not None and self._joined.lagging()[1]:
            return
        check_tails(self._config, self._ends)
        self._whole = True

    def _show_ends(self, joined: ShardSequencer[Fragments]) -> None:
        """A barrier waits: partitions that have nothing more before it are found read to ends that they have now."""
        barrier, partitions = joined.lagging()
        for partition in partitions:
            asked, end = self._shown.get(partition, (None, 0))
            if asked != barrier:
                end = self._ends_of.bounds(partition)[1]
                self._shown[partition] = (barrier, end)
            if self.feed.places.get(partition, 0) >= end:
                joined.reached(partition, barrier)
        self.ready.extend(self._assembly.ready())
