"""Finds offsets of events from the driver: a few point lookups, however long the log is.

The producer's position names the last finished event, in the Kafka transaction of that event. A Kafka transaction
becomes visible in one partition before another: where a partition does not show the named event yet, it is read again,
and until then the log ends where it ended before.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, HistoriesDiffer, LogDamaged
from connector.kafka.handshake import handshake
from connector.kafka.log_reader import LogReader
from connector.log.epochs.history import History
from connector.log.ids import NO_EPOCH, NO_SEQNO, Seqno
from connector.log.reading.offset_range import OffsetRange
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import REPARTITIONED
from connector.spark.source.offset import LogOffset, PartitionOffset

PATIENCE: Final = 5.0  # seconds for a Kafka transaction to become visible in all partitions


class Ends:
    """Finds offsets of events in one log.

    Every method raises BrokerUnavailable when the brokers do not answer or there is no log yet, PreflightError when
    they refuse access, and LogDamaged where the topics are not a log's.

    Args:
        config: the service and its brokers.
        clock: for the patience.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._log = LogReader(config)
        self._history: History | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._log.close()

    def earliest(self) -> LogOffset:
        """Before the first event after which the log is complete: 0 where retention has deleted nothing."""
        record = self._position()
        floor = NO_SEQNO
        for partition in self._partitions():
            low, _ = self._log.bounds(partition)
            first = self._log.first_header(partition)
            if first is not None:
                # An event that has lost its first fragments is left out, with everything before it.
                floor = max(floor, first.seqno if first.fragno else first.prev_seqno)
            elif low:
                floor = max(floor, record.tails.get(partition, NO_SEQNO))
        return self._offset_after(floor, record)

    def after(self, seqno: Seqno) -> LogOffset:
        """After a finished event.

        Raises:
            HistoriesDiffer: the log has not finished it.
            LogDamaged: what follows it was deleted.
        """
        return self._offset_after(seqno, self._position())

    def latest(self, before: LogOffset | None = None, most: int = 0) -> LogOffset:
        """After the last finished event.

        Args:
            before: the offset up to which the log was read.
            most: events after it, at most; 0: all.

        Raises:
            HistoriesDiffer: the log is no longer the one that `before` is of.
        """
        record = self._position()
        last = record.last_finished
        if before is not None:
            if last < before.seqno or self._known(record).log_id != before.log_id:
                raise HistoriesDiffer(
                    "the log was re-created, or lost events, since it was read",
                    hint="start with a new checkpoint, and fill the query's results again",
                    seqno=before.seqno,
                    last_finished=last,
                    log_id=before.log_id,
                )
            self._known(record).prove_none_trapped(before.seqno, before.epoch)
            if last == before.seqno:
                return before
            if most and last > before.seqno + most:
                return self._offset_after(Seqno(before.seqno + most), record)
        give_up = self._clock.monotonic() + PATIENCE
        while True:
            found = self._offset_after(last, record)
            unseen = [n for n, at in found.partitions.items() if at.tail != record.tails.get(n, NO_SEQNO)]
            if not unseen:
                return found
            if self._clock.monotonic() > give_up:
                raise LogDamaged(
                    "a partition does not end with the event that the position names: it lost its tail",
                    partition=f"{self._config.topic}-{unseen[0]}",
                    expected=record.tails.get(unseen[0], NO_SEQNO),
                    found=found.partitions[unseen[0]].tail,
                )
            self._clock.sleep(0.02)

    def verify(self, offset: LogOffset) -> None:
        """Verify that an offset lies on the log's history, and that the log still has all later events.

        Raises:
            HistoriesDiffer: it is of another log or another history, or later events were deleted.
        """
        handshake(self._config, offset.position(self._config.service))

    def ranges(self, start: LogOffset, end: LogOffset, split: int) -> list[OffsetRange]:
        """Cut the log between two offsets into ranges of `split` Kafka offsets."""
        found = []
        trapped = self._known(self._position()).trapped
        for number, until in end.partitions.items():
            begin = start.partitions.get(number)
            if begin is None:
                raise LogDamaged("the event topic has more partitions than it had", hint=REPARTITIONED)
            if begin.tail == until.tail:
                continue
            low, _ = self._log.bounds(number)
            first = max(begin.offset, low)
            for at in range(first, until.offset, split):
                found.append(
                    OffsetRange(
                        partition=number,
                        begin=at,
                        end=min(at + split, until.offset),
                        after=start.seqno,
                        upto=end.seqno,
                        tail=begin.tail if at == first else None,
                        last=until.tail,
                        log_id=end.log_id,
                        trapped=trapped,
                    )
                )
        return found

    def _position(self) -> PositionRecord:
        record = self._log.position() if self._log.partitions(self._config.position_topic) else None
        if record is None:
            raise BrokerUnavailable(
                "the log does not exist yet",
                hint=f"start thl produce for service {self._config.service}",
                topic=self._config.topic,
            )
        return record

    def _partitions(self) -> range:
        return range(self._log.partitions(self._config.topic))

    def _offset_after(self, seqno: Seqno, record: PositionRecord) -> LogOffset:
        history = self._known(record)
        epoch = NO_EPOCH if seqno == NO_SEQNO else history.covering(seqno).epoch
        partitions = {}
        for number in self._partitions():
            offset, tail = self._log.after(number, seqno)
            if tail is None:  # the partition is empty: only the position names its last event
                tail = record.tails.get(number, NO_SEQNO) if offset else NO_SEQNO
            if tail > seqno:
                raise LogDamaged(
                    "the topic's retention has deleted later events",
                    hint="start with startingOffsets=earliest",
                    partition=f"{self._config.topic}-{number}",
                    seqno=seqno + 1,
                    deleted=tail,
                )
            partitions[number] = PartitionOffset(offset, tail)
        return LogOffset(history.log_id, seqno, epoch, partitions)

    def _known(self, record: PositionRecord) -> History:
        """The log's history up to a position that was read. Control is read again when there is a newer epoch."""
        history = self._history
        newest = record.finished.epoch if record.finished else NO_EPOCH
        if history is None or newest > history.epochs[-1].epoch:
            # Read after the position, so it has its epoch; an epoch that begins meanwhile has no finished events.
            control, record = self._log.control(), self._position()
            history = History.of(control, record.last_finished)
        elif record.last_finished > history.last_finished:
            history = History(history.log_id, history.epochs, record.last_finished)
        self._history = history
        return history
