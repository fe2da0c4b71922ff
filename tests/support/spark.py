"""A Spark of the tests' own, and what reads by it in each mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from connector.clock import SystemClock
from connector.config.model import Apply, Kafka
from connector.sandbox.fetching.jars import spark_kafka_jars
from connector.spark.session import Session
from connector.spark.stream.continuous import Continuous
from connector.spark.stream.micro_batches import MicroBatches

Reader = Callable[[Session, Kafka, str, Mapping[int, int]], MicroBatches | Continuous]


def session(folder: Path, **settings: Any) -> Session:
    """A small session; the settings are those of `apply`."""
    apply = Apply(checkpoint_dir=folder, heap="512m", **settings)
    return Session(apply, "tests", jars=tuple(spark_kafka_jars()))


def end_jvm() -> None:
    """End this process's JVM, if it has one: what it was started with is every later session's, too."""
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None


def in_batches(spark: Session, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> MicroBatches:
    return MicroBatches(spark, kafka, topic=topic, offsets=offsets, max_messages=50, poll_messages=20, queue_batches=2)


def continuously(spark: Session, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> Continuous:
    return Continuous(spark, kafka, topic=topic, offsets=offsets, clock=SystemClock())


READERS: list[Reader] = [in_batches, continuously]
