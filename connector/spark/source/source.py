"""The format `thl`: Spark's Python data source, batch and streaming.

Spark calls `partitions` and the offsets in a process beside the driver, `read` in workers of executors; all of these
import this package. An offset is a `LogOffset`: only finished events are before it, so batches have whole transactions,
and none is missing. The offset of a checkpoint is verified against the log's history before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from connector.clock import SystemClock
from connector.errors import ConfigError, HistoriesDiffer
from connector.log.ids import Seqno
from connector.log.reading.offset_range import OffsetRange
from connector.spark.source.columns import spark_schema
from connector.spark.source.ends import Ends
from connector.spark.source.offset import LogOffset
from connector.spark.source.options import Options
from connector.spark.source.task import Task

NAME = "thl"


@dataclass
class OffsetRangePartition(InputPartition):
    """The offset range of one task."""

    bounds: OffsetRange


class LogSource(DataSource):
    """The format; its options are those of `connector.spark.source.options`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    def schema(self) -> str:
        """Return the columns as Spark DDL."""
        return spark_schema(layout=self._options.layout)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        return BatchReader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """Return the reader for `spark.readStream`."""
        return StreamReader(self._options)

    @property
    def _options(self) -> Options:
        return Options.read(dict(self.options))


class BatchReader(DataSourceReader):
    """Reads the log from one event to another.

    Args:
        options: the decoded options.
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return the offset ranges, one per task."""
        options = self._options
        with Ends(options.config, SystemClock()) as ends:
            start = _start(ends, options)
            end = ends.latest()
            if options.end is not None and options.end > end.seqno:
                raise HistoriesDiffer(
                    "the log has not finished endingSeqno", seqno=options.end, last_finished=end.seqno
                )
            if options.end is not None and options.end < end.seqno:
                end = ends.after(max(options.end, start.seqno))
            return [OffsetRangePartition(bounds) for bounds in ends.ranges(start, end, options.split)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read one range; Spark passes None if there are no ranges."""
        return _read(self._options, partition)


class StreamReader(DataSourceStreamReader):
    """Reads the log as a stream.

    Args:
        options: the decoded options.
    """

    def __init__(self, options: Options) -> None:
        if options.end is not None:
            raise ConfigError("a stream has no endingSeqno")
        self._options = options
        self._ends: Ends | None = None
        self._latest: LogOffset | None = None
        self._verified = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Return the offset at which a new query begins."""
        self._verified = True
        return _start(self._connected(), self._options).as_json()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Return the offset at which the next micro-batch ends."""
        # Spark calls this first, without the offset of a continued query, so only a new query's first micro-batch can
        # be bounded.
        if self._latest is None and self._options.new:
            self._latest = _start(self._connected(), self._options)
        self._latest = self._connected().latest(self._latest, self._options.most)
        return self._latest.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the offset ranges of a micro-batch."""
        begin, until = LogOffset.from_json(start), LogOffset.from_json(end)
        if until.seqno < begin.seqno:
            raise ConfigError("newQuery=true, but the query continues from a checkpoint")
        ends = self._connected()
        if not self._verified:
            ends.verify(begin)
            self._verified = True
        return [OffsetRangePartition(bounds) for bounds in ends.ranges(begin, until, self._options.split)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """End the connections."""
        if self._ends is not None:
            self._ends.close()

    def _connected(self) -> Ends:
        if self._ends is None:
            self._ends = Ends(self._options.config, SystemClock())
        return self._ends


def _start(ends: Ends, options: Options) -> LogOffset:
    match options.start:
        case LogOffset() as offset:
            ends.verify(offset)
            return offset
        case "earliest":
            return ends.earliest()
        case "latest":
            return ends.latest()
        case seqno:
            return ends.after(Seqno(int(seqno) - 1))


def _read(options: Options, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, OffsetRangePartition):
        return iter(())
    return Task(options.config, partition.bounds, SystemClock(), layout=options.layout).batches()
