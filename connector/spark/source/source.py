"""The format `thl`: Spark's Python data source, batch and streaming.

Spark calls `partitions` and the offsets in a process beside the driver, `read` in workers of executors; all of these
import this package. An offset is a `LogOffset`: only finished events lie before it, so a micro-batch, and a batch, has
whole transactions, and all of them. Where a query goes on from its checkpoint, that place has to lie on the log's
history before anything is read.
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
    """What one task reads."""

    bounds: OffsetRange


class LogSource(DataSource):
    """The format; its options are those of `connector.spark.source.options`."""

    @classmethod
    def name(cls) -> str:
        """As it is called in `format`."""
        return NAME

    def schema(self) -> str:
        """Its columns."""
        return spark_schema(layout=self._options.layout)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return BatchReader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """For `spark.readStream`."""
        return StreamReader(self._options)

    @property
    def _options(self) -> Options:
        return Options.read(dict(self.options))


class BatchReader(DataSourceReader):
    """The log from one event to another.

    Args:
        options: what is read.
    """

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """The portions."""
        options = self._options
        with Ends(options.config, SystemClock()) as ends:
            start = _start(ends, options)
            end = ends.latest()
            if options.end is not None and options.end > end.seqno:
                raise HistoriesDiffer(
                    "the log has not finished endingSeqno", seqno=options.end, last_finished=end.seqno
                )
            if options.end is not None and options.end < end.seqno:
                end = ends.behind(max(options.end, start.seqno))
            return [OffsetRangePartition(bounds) for bounds in ends.portions(start, end, options.split)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """One portion. Spark calls it without any where there is none."""
        return _read(self._options, partition)


class StreamReader(DataSourceStreamReader):
    """The log as it grows.

    Args:
        options: what is read.
    """

    def __init__(self, options: Options) -> None:
        if options.end is not None:
            raise ConfigError("a stream has no endingSeqno")
        self._options = options
        self._ends: Ends | None = None
        self._latest: LogOffset | None = None
        self._proven = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Where a new query begins."""
        self._proven = True
        return _start(self._there(), self._options).as_json()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Where the next micro-batch ends."""
        # Spark asks this before anything else, and does not tell where a query goes on: so only of a query that is new
        # there is something that a bound of its first micro-batch could count from.
        if self._latest is None and self._options.new:
            self._latest = _start(self._there(), self._options)
        self._latest = self._there().latest(self._latest, self._options.most)
        return self._latest.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The portions of a micro-batch."""
        begin, until = LogOffset.from_json(start), LogOffset.from_json(end)
        if until.seqno < begin.seqno:
            raise ConfigError("newQuery was said of a query that goes on from a checkpoint")
        ends = self._there()
        if not self._proven:
            ends.prove(begin)
            self._proven = True
        return [OffsetRangePartition(bounds) for bounds in ends.portions(begin, until, self._options.split)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One portion."""
        return _read(self._options, partition)

    def stop(self) -> None:
        """End the connections."""
        if self._ends is not None:
            self._ends.close()

    def _there(self) -> Ends:
        if self._ends is None:
            self._ends = Ends(self._options.config, SystemClock())
        return self._ends


def _start(ends: Ends, options: Options) -> LogOffset:
    match options.start:
        case LogOffset() as place:
            ends.prove(place)
            return place
        case "earliest":
            return ends.earliest()
        case "latest":
            return ends.latest()
        case seqno:
            return ends.behind(Seqno(int(seqno) - 1))


def _read(options: Options, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, OffsetRangePartition):
        return iter(())
    return Task(options.config, partition.bounds, SystemClock(), layout=options.layout).batches()
