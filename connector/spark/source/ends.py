"""Finds offsets of events from the driver with a few point lookups, independent of the log's length.

The producer's position names the last finished event, and is written in that event's Kafka transaction. A Kafka
transaction becomes visible in one partition before another. A partition that does not show the named event yet is read
again; until then the log's previous end counts.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import HistoriesDiffer, LogDamaged
from connector.kafka.handshake import handshake, log_missing
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
        clock: the clock for `PATIENCE`.
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
        """Close the connections."""
        self._log.close()

    def earliest(self) -> LogOffset:
        """Return the offset before the first event from which on the log is complete."""
        record = self._position()
        history = self._known(record)
        bounds = {partition: self._log.bounds(partition) for partition in self._partitions()}
        return self._offset_after(self._log.incomplete_upto(bounds, history, record), record)

    def after(self, seqno: Seqno) -> LogOffset:
        """Return the offset after a finished event.

        Raises:
            HistoriesDiffer: the log has not finished it.
            LogDamaged: later events were deleted.
        """
        return self._offset_after(seqno, self._position())

    def latest(self, before: LogOffset | None = None, most: int = 0) -> LogOffset:
        """Return the offset after the last finished event.

        Args:
            before: the offset up to which the log was read.
            most: maximum number of events after it; 0: unlimited.

        Raises:
            HistoriesDiffer: `before` belongs to another log.
        """
        record = self._position()
        last = record.last_finished
        if before is not None:
            if last < before.seqno or self._known(record).log_id != before.log_id:
                raise HistoriesDiffer(
                    "the log was re-created or lost events since it was read",
                    hint="start with a new checkpoint, and compute the query's results again",
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
        """Check that an offset lies on the log's history, and that the log still has all later events.

        Raises:
            HistoriesDiffer: the offset belongs to another log or history, or later events were deleted.
        """
        handshake(self._config, offset.position(self._config.service))

    def ranges(self, start: LogOffset, end: LogOffset, split: int) -> list[OffsetRange]:
        """Cut the log between two offsets into ranges of `split` Kafka offsets.

        Raises:
            LogDamaged: events between them were deleted.
        """
        found = []
        record = self._position()
        history = self._known(record)
        for number, until in end.partitions.items():
            begin = start.partitions.get(number)
            if begin is None:
                raise LogDamaged("the event topic has more partitions than it had", hint=REPARTITIONED)
            if begin.tail == until.tail:
                continue
            span = self._log.bounds(number)
            first = begin.offset
            if first <= span[0]:  # nothing is left before it
                left = self._log.retained(number, span, history, record)
                self._check_deleted(number, start.seqno, left.incomplete)
                first = left.offset
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
                        trapped=history.trapped,
                    )
                )
        return found

    def _check_deleted(self, partition: int, seqno: Seqno, deleted: Seqno) -> None:
        """Check that the last event of a partition of which messages are deleted is not after one that was read."""
        if deleted > seqno:
            raise LogDamaged(
                "the topic's retention has deleted later events",
                hint="start with startingOffsets=earliest",
                partition=f"{self._config.topic}-{partition}",
                seqno=seqno + 1,
                deleted=deleted,
            )

    def _position(self) -> PositionRecord:
        record = self._log.position() if self._log.partitions(self._config.position_topic) else None
        if record is None:
            raise log_missing(self._config)
        return record

    def _partitions(self) -> range:
        return range(self._log.partitions(self._config.topic))

    def _offset_after(self, seqno: Seqno, record: PositionRecord) -> LogOffset:
        history = self._known(record)
        epoch = NO_EPOCH if seqno == NO_SEQNO else history.covering(seqno).epoch
        partitions = {}
        for number in self._partitions():
            offset, tail = self._log.after(number, seqno, history, record)
            self._check_deleted(number, seqno, tail)
            partitions[number] = PartitionOffset(offset, tail)
        return LogOffset(history.log_id, seqno, epoch, partitions)

    def _known(self, record: PositionRecord) -> History:
        """Return the log's history up to a position; read the control topic again if there is a newer epoch."""
        history = self._history
        newest = record.finished.epoch if record.finished else NO_EPOCH
        if history is None or newest > history.epochs[-1].epoch:
            # Read after the position, so it includes the position's epoch; a newer epoch has no finished events yet.
            control, record = self._log.control(), self._position()
            history = History.of(control, record.last_finished)
        elif record.last_finished > history.last_finished:
            history = History(history.log_id, history.epochs, record.last_finished)
        self._history = history
        return history
