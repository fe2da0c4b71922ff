"""The log as it grows: whole events in the order of their seqnos, whatever partition each stands in.

Seqnos have no holes, so it is always known which comes next; partitions that are ahead of it are held back, and no
more is read of them than a few MiB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.inspect.events.attempts import Attempt, Gathering
from connector.inspect.events.decoding import header_of
from connector.inspect.events.log import Listed, LogList
from connector.inspect.events.partitions import Partitions
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.kafka.tails import TailWatch, check_tails
from connector.log.ids import NO_SEQNO, Seqno

LOOK: Final = 0.2  # seconds between looks whether to stop
AHEAD_BYTES: Final = 8 << 20  # of a partition that is ahead


class Following:
    """Reads on and on. In no consumer group, commits no offsets.

    Args:
        config: the service and its brokers.
        stopped: whether to end; asked several times a second.
    """

    def __init__(self, config: Config, stopped: Callable[[], bool]) -> None:
        self._config = config
        self._partitions = Partitions(config)
        self._list = LogList(config)
        self._stopped = stopped
        self._tails = TailWatch(config, SystemClock())

    def events(self, last: int, *, voided: bool = False, until: int | None = None) -> Iterator[Listed | None]:
        """The last events that are there, and those that come, fragment by fragment.

        Args:
            last: so many of those that are there.
            voided: also what is given up, when it is known to be.
            until: end after this seqno.

        Yields:
            None where nothing more is there at the moment.

        Raises:
            BrokerUnavailable: Kafka does not answer at first; later it is waited for.
            ConfigError: there is no such log.
            LogDamaged: a message is not a fragment, or an event is missing.
        """
        check_tails(self._config)
        ends = self._list.ends()
        there = ends.newest - ends.oldest + 1 if ends.newest != NO_SEQNO else 0
        wanted = first = ends.newest + 1 - min(last, there)
        if until is not None and wanted > until:
            return
        lanes = {
            partition: _Lane(partition, self._partitions, self._partitions.offset_of(wanted, partition, bounds))
            for partition, bounds in self._partitions.bounds().items()
        }
        with KafkaConsumer(self._config.kafka, f"{self._config.topic}.tail") as consumer:
            consumer.assign(self._config.topic, {partition: lane.start for partition, lane in lanes.items()})
            while not self._stopped():
                found = next((lane for lane in lanes.values() if lane.comes(wanted)), None)
                if found is None:
                    if all(lane.ready for lane in lanes.values()):
                        raise LogDamaged("an event is missing: every partition goes on behind it", seqno=wanted)
                    if not self._read(consumer, lanes):
                        self._tails.look(Seqno(wanted))
                        yield None
                    continue
                attempt = self._list.judged(found.pop(consumer))
                if attempt.seqno < first:  # a Kafka transaction becomes visible in one partition before another
                    continue
                if attempt.whole and attempt.seqno < wanted:
                    raise LogDamaged("an event was given twice", at=found.at(attempt.first), seqno=attempt.seqno)
                if voided or not attempt.voided:
                    yield from self._list.fragments(attempt)
                if attempt.whole:
                    if attempt.seqno == until:
                        return
                    wanted = attempt.seqno + 1

    def _read(self, consumer: KafkaConsumer, lanes: dict[int, _Lane]) -> bool:
        """Take what comes next, whether there is anything."""
        message = consumer.poll(LOOK)
        if not isinstance(message, KafkaMessage):
            return False
        lane = lanes[message.partition]
        if message.value is None:
            raise LogDamaged("a message without value", at=lane.at(message.offset))
        lane.take(message.offset, message.value, consumer)
        return True


class _Lane:
    """A partition's attempts that have been read and not been given."""

    def __init__(self, partition: int, partitions: Partitions, start: int) -> None:
        self._partitions = partitions
        self._gathering = Gathering(partition, lambda offset, value: header_of(value, self.at(offset)))
        self._ready: deque[Attempt] = deque()
        self._bytes = 0
        self._paused = False
        self._partition = partition
        self.start = start

    @property
    def ready(self) -> bool:
        """Whether there is anything."""
        return bool(self._ready)

    def at(self, offset: int) -> str:
        """For errors."""
        return self._partitions.at(self._partition, offset)

    def take(self, offset: int, value: bytes, consumer: KafkaConsumer) -> None:
        """The next message."""
        for attempt in self._gathering.take(offset, value):
            self._ready.append(attempt)
            self._bytes += _size(attempt)
        if self._bytes > AHEAD_BYTES and not self._paused:
            self._paused = True
            consumer.pause(self._partitions.topic, [self._partition])

    def comes(self, seqno: int) -> bool:
        """Whether it has what comes next, or something that is not newer."""
        return bool(self._ready) and self._ready[0].seqno <= seqno

    def pop(self, consumer: KafkaConsumer) -> Attempt:
        """Take it away."""
        attempt = self._ready.popleft()
        self._bytes -= _size(attempt)
        if self._paused and self._bytes <= AHEAD_BYTES // 2:
            self._paused = False
            consumer.resume(self._partitions.topic, [self._partition])
        return attempt


def _size(attempt: Attempt) -> int:
    return sum(len(value) for _, value in attempt.held or ())
