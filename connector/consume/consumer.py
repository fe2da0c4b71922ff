"""The log's events, one after the other, for as long as one asks."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from connector.clock import SystemClock
from connector.config.model import Config, Kafka
from connector.consume.decoding import Decoder
from connector.consume.event import Event
from connector.consume.feed import Feed
from connector.consume.opening import begin
from connector.consume.ordered_reader import OrderedReader
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import ConfigError
from connector.log.ids import Kind, ShardId

EVENT_BYTES: Final = 8 << 20
AHEAD_BYTES: Final = 64 << 20
HEARTBEATS: Final = "Consumer(heartbeats=...) is ignored: no producer writes events of the kind HEARTBEAT"
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
        heartbeats: deprecated and ignored: no producer writes events of the kind HEARTBEAT.
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
        heartbeats: bool | None = None,
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
        if heartbeats is not None:
            warnings.warn(HEARTBEATS, DeprecationWarning, stacklevel=2)
        self._until_end = until_end
        self._event_bytes = event_bytes
        self._ahead_bytes = ahead_bytes
        self._clock = SystemClock()
        self._decoder = Decoder(self._config.topic, schemas)
        self._feed: Feed | None = None
        self._reader: OrderedReader | None = None

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
            self._reader = OrderedReader(
                self._config,
                feed,
                beginning,
                self._decoder,
                clock=self._clock,
                event_bytes=self._event_bytes,
                ahead_bytes=self._ahead_bytes,
                until_end=self._until_end,
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections. Nothing is committed by it."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
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
        reader = self._opened()
        until = self._clock.monotonic() + timeout
        while True:
            while (event := reader.next()) is not None:
                if event.kind is not Kind.HEARTBEAT:
                    return event
            if reader.failure is not None:
                raise reader.failure
            reader.check_whole()
            left = until - self._clock.monotonic()
            if self.at_end or left < 0:
                return None
            reader.read(min(left, LOOK))

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
        return self._until_end and self._opened().ended

    @property
    def position(self) -> ConsumerPosition:
        """The place behind the event that was given last; before the first, the one where reading began."""
        return self._opened().position

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
        reader = self._opened()
        position = reader.position if upto is None else upto.position if isinstance(upto, Event) else upto
        if self._feed is not None:
            self._feed.commit(position)

    def _opened(self) -> OrderedReader:
        if self._reader is None:
            raise ConfigError("the consumer is not open", hint="with Consumer(…) as consumer: …")
        return self._reader
