"""Whether the log's partitions still have what the producer's position names, asked by who only reads.

A partition that lost its end (an unclean election, a disk that was restored) looks like one that has no more. Nothing
in it tells; the position does, which is written in the Kafka transaction of the events that it names. So whoever
reads compares the two where it begins, where it ends, and where it has waited in vain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.consumer import PATIENCE
from connector.kafka.log_reader import LogReader
from connector.log.ids import Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import TailFound, lost_tails

EVERY: Final = 10.0  # seconds without progress between two looks
GLANCE: Final = 5.0  # seconds; a reader that waits is not to be held up


@dataclass(frozen=True, slots=True)
class Tails:
    """The ends of partitions beside the position.

    Args:
        position: the producer's, read before the partitions: what it names is visible in those that have it.
        found: what stands last in each.
        lost: the error to raise where one lacks what the position names.
    """

    position: PositionRecord | None
    found: Mapping[int, TailFound]
    lost: LogDamaged | None


def read_tails(config: Config, partitions: Collection[int] | None = None, patience: float = PATIENCE) -> Tails:
    """Compare the ends of partitions with the position.

    A Kafka transaction becomes visible in one partition before another, so what seems to be lost is looked at again
    with everything decided.

    Args:
        config: the service and its brokers.
        partitions: those that are read; None: all.
        patience: seconds that a broker has to answer.

    Raises:
        BrokerUnavailable, PreflightError, LogDamaged: as `LogReader`.
    """
    with LogReader(config, patience=patience) as log:
        tails = _compare(log, config, partitions)
    if tails.lost is None:
        return tails
    with LogReader(config, high_watermark=True, patience=patience) as log:
        return _compare(log, config, partitions)


def check_tails(config: Config, partitions: Collection[int] | None = None, patience: float = PATIENCE) -> None:
    """Check that partitions have what the position names; arguments as `read_tails`.

    Raises:
        LogDamaged: one lost its end.
        BrokerUnavailable, PreflightError: as `LogReader`.
    """
    if (lost := read_tails(config, partitions, patience).lost) is not None:
        raise lost


def _compare(log: LogReader, config: Config, partitions: Collection[int] | None) -> Tails:
    position = log.position() if log.partitions(config.position_topic) else None
    chosen = range(log.partitions(config.topic)) if partitions is None else partitions
    found = {partition: log.tail(partition) for partition in chosen}
    return Tails(position, found, lost_tails(config.topic, position, found))


class TailWatch:
    """Looks at the tails for a reader that waits and gets no further.

    Args:
        config: the service and its brokers.
        clock: for how long it has waited.
        partitions: those that are read; None: all.
    """

    def __init__(self, config: Config, clock: Clock, partitions: Collection[int] | None = None) -> None:
        self._config = config
        self._clock = clock
        self._partitions = partitions
        self._progress: Seqno | None = None
        self._since = clock.monotonic()

    def check(self, progress: Seqno) -> None:
        """Look, where nothing has moved for a while.

        Args:
            progress: the last event that the reader has been given, or whatever else moves with it.

        Raises:
            LogDamaged: what it waits for is lost.
        """
        now = self._clock.monotonic()
        if progress != self._progress:
            self._progress, self._since = progress, now
        if now - self._since < EVERY:
            return
        self._since = now
        try:
            check_tails(self._config, self._partitions, GLANCE)
        except BrokerUnavailable:
            return  # the reader itself learns that they are away, and decides what becomes of it
