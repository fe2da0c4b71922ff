"""Reads offset ranges, and reduces them to segments: in a Python worker of Spark, or in the driver while workers start.

A task may fail, or run twice: it changes nothing but files of its own in the session's folder (new ones, and some that
the driver has left to tasks), which count only if the driver gets their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.errors import ConfigError, ConnectorError, LogDamaged
from connector.kafka.range_reader import RangeReader
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.segment import Unread
from connector.relay.spool import RecordSpool
from connector.spark.stream import worker
from connector.spark.stream.foreign_loads import ForeignLoads
from connector.spark.stream.parts import Part, end_of, size_of
from connector.spark.stream.segment_builder import SegmentBuilder
from connector.spark.stream.task_result import FAILED, ResultPiece, failure_as_bytes, in_pieces, written

TASK_BYTES: Final = 128 << 20  # bytes of messages after which a task leaves the rest of its range to the driver
JVM_BYTES: Final = 32 << 20  # the same where its result goes through the heap of an executor

_readers: dict[str, RangeReader] = {}  # this worker's, by their brokers: a connection costs more than a range


class _Enough(Exception):
    """Raised when a task has read as many bytes as it may."""


@dataclass(frozen=True, slots=True)
class TaskRange:
    """A range of a partition's offsets.

    Args:
        partition: the partition.
        begin, end: the offsets, `end` not included.
        first: the stream begins here. The first message is then not compacted: from it the driver's sequencer learns
            the epoch.
        interval: see `SegmentBuilder`.
        large: messages may be large.
    """

    partition: int
    begin: int
    end: int
    first: bool = False
    interval: int = 0
    large: bool = False

    def __len__(self) -> int:
        """The number of offsets."""
        return self.end - self.begin

    def cut(self, count: int) -> tuple[TaskRange, TaskRange]:
        """Split into the first of `count` about equal parts and the rest; the first is empty only if the range is."""
        return self._part(0, 1, count), self._part(1, count, count)

    def divided(self, count: int) -> Iterator[TaskRange]:
        """Yield the range in `count` about equal parts; some may be empty, but the first only if the range is."""
        return (self._part(number, number + 1, count) for number in range(count))

    def _part(self, first: int, end: int, count: int) -> TaskRange:
        """Return the parts from `first` to before `end` of `count`, as one range."""
        begin, until = (self.begin + -(-len(self) * number // count) for number in (first, end))
        return replace(self, begin=begin, end=until, first=self.first and first == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The settings by which tasks compact, if they do.

    Args:
        compact: false: all messages stay messages, because the applier needs each event by itself.
        columns: the target's metadata columns; None if it has none.
        history: the tables that have a history on the target; None: there are none.
        events: true: segments have their events one by one, which the target writes down.
        target: the target's ID, as that of `load.for_others`: rows of loads for other targets are left out.
        records: true: segments have their messages as records of the relay. Needs a folder of results' files.
    """

    compact: bool = False
    columns: MetadataColumns | None = None
    history: HistoryTables | None = None
    events: bool = False
    target: str | None = None
    records: bool = False

    @property
    def shortens(self) -> str | None:
        """The target's ID if messages of loads for others are shortened: a relay has them whole. Else None."""
        return None if self.records else self.target


MESSAGES: Final = Compaction()  # tasks compact nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTask:
    """Reads ranges of one log; pickled on its way to the workers.

    Args:
        kafka: the brokers and their properties.
        topic: the event topic.
        compaction: what it makes of them.
        spool: the folder of results' files; None: results go through Spark.
    """

    kafka: Kafka
    topic: str
    compaction: Compaction
    spool: Path | None

    def __call__(self, tasks: Iterable[Sequence[TaskRange]]) -> Iterator[ResultPiece]:
        """Yield the pieces of the results of some tasks, an error among them; called by Spark in a worker."""
        worker.prepare()
        for task_range in (task_range for task in tasks for task_range in task):
            try:
                yield from self.pieces(task_range, self._reader())
            except ConnectorError as error:
                self._forget_reader()
                yield ResultPiece(task_range.partition, task_range.begin, FAILED, failure_as_bytes(error))
            except BaseException:
                self._forget_reader()
                raise

    def pieces(self, task_range: TaskRange, reader: RangeReader) -> Iterator[ResultPiece]:
        """Yield the pieces of a range's result.

        Args:
            task_range: the range.
            reader: reads it; whatever has happened to it after an error, it cannot be used again.

        Raises:
            BrokerUnavailable: the brokers do not answer, or no longer have the messages.
            ConfigError: the result cannot be stored.
        """
        target, before = self.compaction.shortens, 0
        others = None if target is None else ForeignLoads(target)
        for number, content in enumerate(self._contents(task_range, reader, others)):
            left_out = 0 if others is None else others.left_out
            yield ResultPiece(task_range.partition, task_range.begin, number, content, left_out - before)
            before = left_out

    def _contents(self, task_range: TaskRange, reader: RangeReader, others: ForeignLoads | None) -> Iterable[bytes]:
        """Return a result's pieces, or the path of its file."""
        if self.spool is None:
            return in_pieces(self._parts(task_range, reader, others))
        try:
            if not self.compaction.records:
                return (written(self.spool, self._parts(task_range, reader, others)),)
            with RecordSpool(self.spool) as records:
                return (written(self.spool, self._parts(task_range, reader, others, records)),)
        except OSError as error:
            raise ConfigError(
                f"what Spark's workers have read cannot be stored: {error.strerror}",
                hint="make room in the folder, or set apply.checkpoint_dir to another one",
                folder=str(self.spool),
            ) from error

    def _parts(
        self,
        task_range: TaskRange,
        reader: RangeReader,
        others: ForeignLoads | None,
        records: RecordSpool | None = None,
    ) -> Iterator[Part]:
        """Yield the parts of a range in the order of their offsets; errors as those of `pieces`."""
        made = task_range.begin  # the offset after the last part
        try:
            for part in self._read(task_range, reader, others, records):
                made = end_of(part)
                yield part
        except (_Enough, LogDamaged):
            # The driver reads the rest itself, and says what is wrong with it.
            yield Unread(task_range.partition, made, task_range.end, 0, 0)

    def _read(
        self, task_range: TaskRange, reader: RangeReader, others: ForeignLoads | None, records: RecordSpool | None
    ) -> Iterator[Part]:
        """Yield the parts of a range.

        Raises:
            _Enough: the rest of the range was not read.
            LogDamaged: the rest of the range has messages that are not of a log.
        """
        builder = SegmentBuilder(
            self.topic,
            task_range.partition,
            self.compaction.columns,
            history=self.compaction.history,
            events=self.compaction.events,
            records=records,
            interval=task_range.interval,
            target=self.compaction.target,
            others=others,
        )
        alone = task_range.first
        size, most = 0, TASK_BYTES if self.spool else JVM_BYTES
        bounds = task_range.partition, task_range.begin, task_range.end
        short = None if others is None else others.large
        for batch in reader.batches(*bounds, large=task_range.large, short=short):
            if size - (0 if others is None else others.left_out) > most:
                yield from builder.finish()
                raise _Enough
            size += size_of(batch)
            if not self.compaction.compact:
                yield builder.shortened(batch)
                continue
            builder.add(batch, alone=alone)
            alone = False
            yield from builder.drain()
        yield from builder.finish()

    @property
    def _brokers(self) -> str:
        return f"{self.topic} {self.kafka.bootstrap} {sorted(self.kafka.properties.items())}"

    def _reader(self) -> RangeReader:
        if self._brokers not in _readers:
            _readers[self._brokers] = RangeReader(self.kafka, self.topic, SystemClock())
        return _readers[self._brokers]

    def _forget_reader(self) -> None:
        """Let the next task begin with another reader."""
        reader = _readers.pop(self._brokers, None)
        if reader is not None:
            reader.close()


def shared(ranges: Iterable[TaskRange], most: int) -> list[list[TaskRange]]:
    """Share ranges among tasks.

    Args:
        ranges: the ranges; those of a partition in order.
        most: maximum number of offsets of a task.

    Returns:
        The ranges of each task; a small partition's range stays whole.
    """
    tasks: list[list[TaskRange]] = []
    room = 0
    for one in ranges:
        for part in one.divided(-(-len(one) // most) or 1):
            if not len(part):
                continue
            if len(part) > room:
                tasks.append([])
                room = most
            tasks[-1].append(part)
            room -= len(part)
    return tasks
