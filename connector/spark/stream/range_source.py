"""The event topic as a stream of Spark whose tasks read and compact: the micro-batches of the applier.

Spark asks for offsets and ranges in a process beside the driver; tasks run in Python workers of the executors, which
import this package. An offset of the stream is the end of each partition's range. A row is a piece of a task's parcel
(`parcel`), or the path of one.

How much a micro-batch reads is in a file, which the applier replaces at any time (`Limits`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from connector.clock import Clock, SystemClock
from connector.config.kafka import Kafka
from connector.kafka.consumer import KafkaConsumer, OffsetMissing
from connector.log.compact.metadata_columns import metadata_columns
from connector.spark import worker
from connector.spark.stream.parcel import in_pieces, spooled
from connector.spark.stream.range_task import Bounds, RangeTask

NAME: Final = "thl_ranges"
EARLIEST: Final = -2
"""In place of an offset: that of a partition's first message. The number is Kafka's own."""

PLAN: Final = "plan"  # the option with `Plan` as JSON
KAFKA: Final = "kafka."  # prefix of librdkafka's properties among the options
FEW: Final = 2_000  # number of offsets below which a second task does not pay
LOOKS: Final = 10  # number of looks for new messages before Spark gets the same offset again
LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much the next micro-batches read.

    Args:
        messages: maximum number of offsets.
        left_out: partitions that are not read for now.
    """

    messages: int
    left_out: tuple[int, ...] = ()

    def write(self, file: Path) -> None:
        """Replace the file's content."""
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(file)

    @classmethod
    def read(cls, file: Path) -> Limits:
        """The file's content."""
        found = json.loads(file.read_text())
        return cls(messages=found["messages"], left_out=tuple(found["left_out"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is read, and how; an option of the source.

    Args:
        topic: the event topic.
        offsets: partition → first offset.
        compact: false: all messages stay messages.
        columns: the target's metadata columns, as pairs of a value and a name.
        events: true: segments have their events one by one.
        tasks: number of tasks that run at once.
        limits: the file of `Limits`.
        spool: the folder of parcels' files; "": parcels are in the rows.
    """

    topic: str
    offsets: Mapping[int, int]
    compact: bool
    columns: tuple[tuple[str, str], ...]
    events: bool
    tasks: int
    limits: str
    spool: str

    def options(self, kafka: Kafka) -> dict[str, str]:
        """The options of the source."""
        properties = {KAFKA + name: value for name, value in kafka.properties.items()}
        return {**properties, f"{KAFKA}bootstrap.servers": kafka.bootstrap, PLAN: json.dumps(asdict(self))}


@dataclass
class RangePartition(InputPartition):
    """The ranges of one task: one, or small ones of several partitions."""

    ranges: list[Bounds]


class RangeSource(DataSource):
    """The source; its options are those of `Plan.options`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def schema(self) -> str:
        """Return the columns as Spark DDL."""
        return "partition int, offset bigint, number int, bytes binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """Return the reader for `spark.readStream`."""
        given = dict(self.options)  # Spark's map ignores the case of names
        properties = {name.removeprefix(KAFKA): value for name, value in given.items() if name.startswith(KAFKA)}
        bootstrap = properties.pop("bootstrap.servers")
        found = json.loads(given[PLAN])
        found["offsets"] = {int(partition): offset for partition, offset in found["offsets"].items()}
        found["columns"] = tuple((value, name) for value, name in found["columns"])
        return RangeStreamReader(Kafka(bootstrap=bootstrap, properties=properties), Plan(**found), SystemClock())


class RangeStreamReader(DataSourceStreamReader):
    """Plans micro-batches, and reads their ranges.

    Args:
        kafka: the brokers and their properties.
        plan: what is read, and how.
        clock: the clock for waits.
    """

    def __init__(self, kafka: Kafka, plan: Plan, clock: Clock) -> None:
        self._kafka = kafka
        self._plan = plan
        self._clock = clock
        self._ends: KafkaConsumer | None = None
        self._begin: dict[int, int] = {}
        self._at: dict[int, int] = {}  # the newest end that Spark has got

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Return the offset at which the stream begins."""
        return _as_json(self._begun())

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Return the offset at which the next micro-batch ends; waits a little if there are no new messages.

        Spark calls this first, before it asks for the offset at which the stream begins.
        """
        self._begun()
        for look in range(LOOKS):
            if look:
                self._clock.sleep(LOOK_SECONDS)
            limits = Limits.read(Path(self._plan.limits))
            ends = {partition: self._end(partition) for partition in self._at if partition not in limits.left_out}
            if ends and any(end > self._at[partition] for partition, end in ends.items()):
                self._at = {**self._at, **_shared(self._at, ends, limits.messages)}
                break
        return _as_json(self._at)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the ranges of a micro-batch."""
        total = sum(end.values()) - sum(start.values())
        size = max(FEW, -(-total // self._plan.tasks))
        ranges = [
            Bounds(int(partition), at, min(at + size, until), first=at == self._begin[int(partition)])
            for partition, until in end.items()
            for at in range(start[partition], until, size)
        ]
        tasks: list[RangePartition] = []
        room = 0
        for bounds in ranges:
            if bounds.end - bounds.begin > room:
                tasks.append(RangePartition([]))
                room = size
            tasks[-1].ranges.append(bounds)
            room -= bounds.end - bounds.begin
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task."""
        if not isinstance(partition, RangePartition):
            raise TypeError(f"a range is expected, not {type(partition)}")
        worker.prepare()
        plan = self._plan
        columns = metadata_columns(plan.columns)
        task = RangeTask(self._kafka, plan.topic, plan.compact, columns, plan.events, self._clock)
        for bounds in partition.ranges:
            parts = task.parts(bounds)
            pieces = (spooled(Path(plan.spool), parts),) if plan.spool else in_pieces(parts)
            for number, piece in enumerate(pieces):
                place = pa.array([bounds.partition], pa.int32()), pa.array([bounds.begin], pa.int64())
                row = [*place, pa.array([number], pa.int32()), pa.array([piece], pa.binary())]
                yield pa.record_batch(row, ["partition", "offset", "number", "bytes"])

    def stop(self) -> None:
        """End the connection."""
        if self._ends is not None:
            self._ends.close()

    def _begun(self) -> dict[int, int]:
        """Return the offsets at which the stream begins."""
        if not self._begin:
            for partition, offset in self._plan.offsets.items():
                self._begin[partition] = self._bounds(partition)[0] if offset == EARLIEST else offset
            self._at = dict(self._begin)
        return self._begin

    def _end(self, partition: int) -> int:
        """Return the offset after a partition's last message."""
        end, at = self._bounds(partition)[1], self._at[partition]
        if end < at:
            raise OffsetMissing(
                "the log ends before the offset to read", partition=partition, topic=self._plan.topic, begin=at
            )
        return end

    def _bounds(self, partition: int) -> tuple[int, int]:
        if self._ends is None:
            self._ends = KafkaConsumer(self._kafka, f"{self._plan.topic}.end")
        return self._ends.bounds(self._plan.topic, partition)


def _shared(begins: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Share the offsets of a micro-batch among partitions, in proportion to what each has.

    Args:
        begins: partition → first offset.
        ends: partition → end.
        most: the number of offsets of all of them.

    Returns:
        Partition → end of its range; at least one range has offsets.
    """
    there = {partition: end - begins[partition] for partition, end in ends.items()}
    total = sum(there.values())
    if total <= most:
        return dict(ends)
    return {partition: begins[partition] + -(-count * most // total) for partition, count in there.items()}


def _as_json(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}
