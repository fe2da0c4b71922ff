"""The public consumer of a log's events."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterable, Mapping
from math import inf
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.feed import Feed
from connector.consume.opening import begin
from connector.consume.ordered_reader import OrderedReader
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import ConfigError, ConnectorError
from connector.log.ids import Kind, ShardId

LOG: Final = logging.getLogger(__name__)
EVENT_BYTES: Final = 8 << 20
AHEAD_BYTES: Final = 64 << 20
HEARTBEATS: Final = "Consumer(heartbeats=...) is ignored: no producer writes events of the kind HEARTBEAT"
STEP: Final = 1.0  # seconds of one step of a wait
STORE_AGAIN: Final = 3600.0  # seconds between two times that an idle consumer stores its group's position


class Consumer:
    """Whole transactions of a log, in order, each once.

    ```python
    with Consumer("localhost:9092", "shop", start=Start.oldest()) as consumer:
        for event in consumer:
            for change in event.changes:
                ...
    ```

    Without `shards` it returns every event, by seqno, and a missing one is an error. With `shards` it returns the
    events of these shards and all barriers: the events of a shard in order, and each event on the right side of every
    barrier; between two barriers, events of different partitions come in any order.

    The parts of a table's load are events, too (`Event.load`): they are no changes of the source.

    It never returns an event before its last fragment, an event that its producer gave up, or an EPOCH marker.

    Errors are `ConnectorError`s, raised after all events before them were returned. The consumer reads no more then:
    open another one with the position after the last processed event. `LogDamaged` names the seqno and the
    topic-partition@offset of the damage; `HistoriesDiffer` means that the position belongs to another log, or to
    another history of it. A retry does not help against these two; `BrokerUnavailable` may pass.

    A consumer is not thread-safe, and there is no fencing: two consumers of one group both read everything, and
    overwrite each other's commits.

    Args:
        bootstrap: host:port[,host:port…] of Kafka's brokers.
        service: the name of the log.
        properties: any librdkafka property: SASL, TLS …
        topic_prefix: the producer's `kafka.topic_prefix`.
        start: the first event, or a position. Default: with a group after its last commit, or the beginning if there is
            none; without a group the beginning.
        group: the Kafka group in whose offsets `commit` stores positions.
        shards: read only these and barriers, until the rule that names shards changes (`ShardsChanged`).
        until_end: stop at the end that the log has when the consumer opens.
        heartbeats: deprecated and ignored: no producer writes events of the kind HEARTBEAT.
        schemas: further versions of fragment.avsc, as parsed JSON, that the log's producers have used.
        event_bytes: bytes of an event in memory; a larger event is held in a temporary file.
        ahead_bytes: bytes of one partition that may wait for an event of another one.
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
            raise ConfigError(f"the consumer's arguments are wrong: {error}") from error
        self._start = start or (Start.committed() if group else Start.beginning())
        self._group = group
        self._shards = None if shards is None else tuple(sorted(ShardId(shard) for shard in set(shards)))
        if heartbeats is not None:
            warnings.warn(HEARTBEATS, DeprecationWarning, stacklevel=2)
        self._until_end = until_end
        self._event_bytes = event_bytes
        self._ahead_bytes = ahead_bytes
        self._clock = SystemClock()
        self._decoder = MessageDecoder(self._config.topic, schemas)
        self._feed: Feed | None = None
        self._stored_at = -inf  # by the clock
        self._reader: OrderedReader | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Find the position to begin with, prove that it lies on the log's history, and begin to read.

        Raises:
            HistoriesDiffer, LogDamaged: the log is not the one that was followed, or the next events are missing.
            ConfigError: there is no such event.
            BrokerUnavailable: the brokers do not answer, or the log does not exist yet.
            PreflightError: the brokers refuse access.
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
        """End the connections; commits nothing."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def poll(self, timeout: float = STEP) -> Event | None:
        """The next event.

        Args:
            timeout: seconds to wait for it.

        Returns:
            None: no event arrived in time, or with `until_end` the last one was returned: see `at_end`.
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
            self._store_again()
            left = until - self._clock.monotonic()
            if self.at_end or left < 0:
                return None
            reader.read(min(left, STEP))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """Wait for the next event; with `until_end` stop after the last one."""
        while True:
            event = self.poll()
            if event is not None:
                return event
            if self.at_end:
                raise StopIteration

    @property
    def at_end(self) -> bool:
        """True once `until_end` is set and all events up to the end were returned."""
        return self._until_end and self._opened().ended

    @property
    def position(self) -> ConsumerPosition:
        """The position after the last returned event; before the first, the one to begin with."""
        return self._opened().position

    def commit(self, upto: Event | ConsumerPosition | None = None) -> None:
        """Store in the group's offsets that all events up to one are processed.

        The position is stored when this method returns. The group's next consumer returns all later events again: at
        least once. For exactly once, store `event.position` with the effect of the event.

        Args:
            upto: the event, or a position; default: the last returned event.

        Raises:
            ConfigError: there is no group.
            BrokerUnavailable, PreflightError: the brokers do not store it.
        """
        reader = self._opened()
        position = reader.position if upto is None else upto.position if isinstance(upto, Event) else upto
        if self._feed is not None:
            self._feed.commit(position)
            self._stored_at = self._clock.monotonic()

    def _store_again(self) -> None:
        """Keep the brokers from deleting the position of a group that has nothing to commit."""
        now = self._clock.monotonic()
        if self._feed is None or now - self._stored_at < STORE_AGAIN:
            return
        self._stored_at = now
        try:
            self._feed.store_again()
        except ConnectorError as error:
            LOG.debug("the group's position is not stored again", extra={"why": error.message})

    def _opened(self) -> OrderedReader:
        if self._reader is None:
            raise ConfigError("the consumer is not open", hint="with Consumer(…) as consumer: …")
        return self._reader
