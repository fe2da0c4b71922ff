"""`python -m connector.spark.training CLASS_PATH OPTION…`: what `thl apply` does until its first row, without Kafka.

Its JVM loads the same classes, and gets the options by which it archives them as it ends
(`connector.fetching.class_archive`). A stream of Spark's own is read in micro-batches. Kafka's source finds no broker,
which loads most of its classes; those that only a broker's answer would load are named here.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, length, when

from connector.config.apply import Apply
from connector.errors import SparkGone
from connector.spark import settings as spark_settings
from connector.spark.session import SparkRun

_SECONDS: Final = 60.0
_TIMEOUTS: Final = {"kafka.request.timeout.ms": "300", "kafka.default.api.timeout.ms": "400"}
_AFTER_AN_ANSWER: Final = re.compile(
    r"org/apache/spark/sql/kafka010/.*"
    r"|org/apache/kafka/clients/consumer/internals/.*"
    r"|org/apache/kafka/common/(record|protocol|serialization)/.*"
    r"|org/apache/kafka/common/(requests|message)/(Abstract|ApiVersions|Fetch|ListOffsets|Metadata|DescribeTopic).*"
)


def train(class_path: str, options: tuple[str, ...]) -> None:
    """Start Spark with these JVM options, run the queries, and end the JVM.

    Raises:
        SparkGone: Spark did not run the query.
    """
    jars = tuple(map(Path, class_path.split(os.pathsep)))
    with SparkRun(Apply(), "thl-training", jars=jars, jvm_options=lambda _: options) as session:
        _read_batches(session)
        for name in _named(jars):
            with suppress(Py4JError):  # one of an optional library
                _jvm(session).java.lang.Class.forName(name)
        _find_no_broker(session)
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    process.wait()


def _read_batches(session: SparkRun) -> None:
    came = Event()

    def accept(frame: DataFrame, number: int) -> None:
        plan: Any = frame._jdf.queryExecution().toRdd()
        tasks = session.spark.sparkContext.parallelize([[number]], 1)
        if len(plan.partitions()) and tasks.mapPartitions(list).collect() and number:
            came.set()

    source = session.spark.readStream.format("rate-micro-batch").options(rowsPerBatch="10", numPartitions="1").load()
    value = source["value"].cast("string").cast("binary")
    frame = source.select("timestamp", when(length(value) <= 1, value).alias("value"))
    query = frame.writeStream.options(**spark_settings.NO_LOG).foreachBatch(accept)
    running = query.option("checkpointLocation", str(session.folder / "training")).start()
    try:
        if not came.wait(_SECONDS):
            raise SparkGone(f"Spark ran no query in {_SECONDS:.0f} s", cause=running.exception())
    finally:
        running.stop()


def _find_no_broker(session: SparkRun) -> None:
    """Let Kafka's source and a consumer ask a port at which no program listens."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{bound.getsockname()[1]}"
        options = {
            **spark_settings.OPTIONS, "maxOffsetsPerTrigger": "1000", **_TIMEOUTS,
            "kafka.bootstrap.servers": server, "assign": '{"t":[0]}', "startingOffsets": '{"t":{"0":-2}}',
        }  # fmt: skip
        frame = session.spark.readStream.format("kafka").options(**options).load()
        carried = frame.select("partition", "offset", when(length("value") <= 1, col("value")).alias("value"))
        query = carried.writeStream.foreachBatch(lambda _, number: None)
        running = query.option("checkpointLocation", str(session.folder / "unanswered")).start()
        with suppress(PySparkException):
            running.awaitTermination(20)
        running.stop()
        _poll(_jvm(session), server)


def _poll(jvm: Any, server: str) -> None:
    settings = jvm.java.util.HashMap()
    settings["bootstrap.servers"] = server
    for part in ("key", "value"):
        settings[f"{part}.deserializer"] = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    partitions = jvm.java.util.ArrayList()
    partitions.append(jvm.org.apache.kafka.common.TopicPartition("t", 0))
    consumer.assign(partitions)
    consumer.seekToBeginning(partitions)
    consumer.poll(jvm.java.time.Duration.ofMillis(300))
    consumer.close(jvm.java.time.Duration.ZERO)


def _named(jars: Iterable[Path]) -> Iterator[str]:
    for jar in jars:
        with zipfile.ZipFile(jar) as opened:
            for entry in opened.namelist():
                if entry.endswith(".class") and _AFTER_AN_ANSWER.fullmatch(entry):
                    yield entry.removesuffix(".class").replace("/", ".")


def _jvm(session: SparkRun) -> Any:
    return session.spark.sparkContext._jvm


if __name__ == "__main__":
    train(sys.argv[1], tuple(sys.argv[2:]))
