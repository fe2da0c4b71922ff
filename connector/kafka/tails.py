"""Detects partitions that lost their end, for readers.

A partition that lost its end (an unclean election, a restored disk) looks like one that has no more messages. Only the
producer's position shows the loss: it is written in the Kafka transaction of the events that it names. So a reader
compares the two when it begins, when it ends, and when it has waited without progress.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock, SystemClock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.consumer import PATIENCE
from connector.kafka.log_reader import LogReader
from connector.log.ids import Seqno
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import TailFound, lost_tails

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 10.0  # seconds without progress between two checks
AGAIN: Final = 1.0  # seconds until a log that seems to be damaged is read again
SILENCE: Final = 60.0  # seconds between two warnings that the ends cannot be read
CHECK_PATIENCE: Final = 5.0  # seconds to wait for an answer, so that a waiting reader continues


@dataclass(frozen=True, slots=True)
class Tails:
    """The last records of partitions, compared with the producer's position.

    Args:
        position: the producer's, read before the partitions, so that the events it names are visible by then.
        found: partition → its last record.
        lost: the error to raise if a partition lacks an event that the position names.
    """

    position: PositionRecord | None
    found: Mapping[int, TailFound]
    lost: LogDamaged | None


def read_tails(config: Config, partitions: Collection[int] | None = None, patience: float = PATIENCE) -> Tails:
    """Compare the ends of partitions with the producer's position.

    A Kafka transaction becomes visible in one partition before another, so an apparent loss is checked again up to the
    high watermark; and again a moment later, as a broker that has just come back may not show the last records at once.

    Args:
        config: the service and its brokers.
        partitions: the partitions to compare; None: all.
        patience: seconds for an answer of a broker.

    Raises:
        BrokerUnavailable, PreflightError, LogDamaged: see `LogReader`.
    """
    with LogReader(config, patience=patience) as log:
        tails = _compare(log, config, partitions)
    for pause in (0.0, AGAIN):
        if tails.lost is None:
            break
        SystemClock().sleep(pause)
        with LogReader(config, high_watermark=True, patience=patience) as log:
            tails = _compare(log, config, partitions)
    return tails


def check_tails(config: Config, partitions: Collection[int] | None = None, patience: float = PATIENCE) -> None:
    """Check that partitions have the events that the position names; arguments as `read_tails`.

    Raises:
        LogDamaged: a partition lost its end.
        BrokerUnavailable, PreflightError: see `LogReader`.
    """
    if (lost := read_tails(config, partitions, patience).lost) is not None:
        raise lost


def _compare(log: LogReader, config: Config, partitions: Collection[int] | None) -> Tails:
    position = log.position() if log.partitions(config.position_topic) else None
    chosen = range(log.partitions(config.topic)) if partitions is None else partitions
    found = {partition: log.tail(partition) for partition in chosen}
    return Tails(position, found, lost_tails(config.topic, position, found))


class TailWatch:
    """Checks the partitions' ends for a reader that waits without progress.

    Args:
        config: the service and its brokers.
        clock: the clock for the time without progress.
        partitions: the partitions that are read; None: all.
    """

    def __init__(self, config: Config, clock: Clock, partitions: Collection[int] | None = None) -> None:
        self._config = config
        self._clock = clock
        self._partitions = partitions
        self._progress: Seqno | None = None
        self._since = clock.monotonic()
        self._warned: float | None = None  # since the ends cannot be read

    def check(self, progress: Seqno) -> None:
        """Check the ends if `progress` has not changed for `EVERY` seconds.

        Ends that cannot be read are no error, but a warning once a minute: librdkafka itself tries in silence, without
        end, to read a partition whose leader is gone, a deleted topic, or past an open transaction.

        Args:
            progress: the last event that the reader has received.

        Raises:
            LogDamaged: a partition lost its end.
        """
        now = self._clock.monotonic()
        if progress != self._progress:
            self._progress, self._since = progress, now
        if now - self._since < EVERY:
            return
        self._since = now
        try:
            check_tails(self._config, self._partitions, CHECK_PATIENCE)
        except BrokerUnavailable as error:
            if self._warned is None or now - self._warned >= SILENCE:
                self._warned = now
                fields = {"topic": self._config.topic, "seqno": progress, "why": error}
                LOG.warning("no events come, and the log's end cannot be read", extra=fields)
        else:
            self._warned = None
