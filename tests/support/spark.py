"""The Spark session of the tests, and readers in each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from connector.clock import SystemClock
from connector.config.apply import Apply
from connector.config.kafka import Kafka
from connector.fetching.jars import spark_kafka_jars
from connector.spark.session import SparkRun
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.continuous import Continuous
from connector.spark.stream.micro_batches import MicroBatches
from connector.spark.stream.range_task import MESSAGES
from tests.support.clock import PATIENCE

QUEUE_BATCHES = 2
Reader = Callable[[SparkRun, Kafka, str, Mapping[int, int]], MicroBatches | Continuous]


def session(folder: Path, **settings: Any) -> SparkRun:
    """A small session with the settings of `apply`."""
    apply = Apply(checkpoint_dir=folder, heap="512m", **settings)
    return SparkRun(apply, "tests", jars=tuple(spark_kafka_jars()))


def end_jvm() -> None:
    """End this process's JVM, if it has one: later sessions would inherit its settings."""
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE)
        SparkContext._gateway = SparkContext._jvm = None


def in_batches(spark: SparkRun, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> MicroBatches:
    sizer = BatchSizer(50, 1 << 20)
    return MicroBatches(
        spark,
        kafka,
        topic=topic,
        offsets=offsets,
        sizer=sizer,
        queue_batches=QUEUE_BATCHES,
        interleaved=False,
        compaction=MESSAGES,
    )


def continuously(spark: SparkRun, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> Continuous:
    return Continuous(spark, kafka, topic=topic, offsets=offsets, clock=SystemClock())


READERS: list[Reader] = [in_batches, continuously]
