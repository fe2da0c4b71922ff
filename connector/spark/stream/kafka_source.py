"""The event topic as a stream of Spark's Kafka source: the feed of the applier.

In continuous mode the source reads the messages. In micro-batch mode it decides which offsets a batch has, and Python
workers read them (`range_task`): with librdkafka a message costs a tenth of what it costs in the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, length, when

from connector.config.kafka import Kafka
from connector.config.secret_files import present
from connector.kafka.large_messages import LARGE
from connector.spark import settings as spark_settings
from connector.spark.session import SparkRun
from connector.spark.stream.range_task import TaskRange


def offsets_stream(
    session: SparkRun, kafka: Kafka, *, topic: str, offsets: Mapping[int, int], options: Mapping[str, str]
) -> DataFrame:
    """Return one topic as a stream of Spark's own columns.

    Args:
        session: the session that reads it.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition to read; EARLIEST for its beginning.
        options: further options of Spark's Kafka source.
    """
    chosen = {
        **spark_settings.OPTIONS,
        **options,
        **{f"kafka.{name.removeprefix('kafka.')}": value for name, value in present(kafka.spark_properties).items()},
        "kafka.bootstrap.servers": kafka.bootstrap,
        "assign": json.dumps({topic: sorted(offsets)}),
        "startingOffsets": json.dumps({topic: {str(number): at for number, at in offsets.items()}}),
    }
    return session.spark.readStream.format("kafka").options(**chosen).load()


def messages(
    session: SparkRun, kafka: Kafka, *, topic: str, offsets: Mapping[int, int], options: Mapping[str, str]
) -> DataFrame:
    """Return the messages of one topic as a stream with the columns partition, offset, value.

    Args:
        session, kafka, topic, offsets, options: as for `offsets_stream`.

    Returns:
        The stream; the value is null for a message larger than LARGE.
    """
    carried = when(length("value") <= LARGE, col("value")).alias("value")
    stream = offsets_stream(session, kafka, topic=topic, offsets=offsets, options=options)
    return stream.select("partition", "offset", carried)


def task_ranges(batch: DataFrame) -> list[TaskRange]:
    """Return the offsets of a micro-batch of `offsets_stream`, without reading any message.

    They are in the plan's partitions (`KafkaBatchInputPartition` of the connector, Spark 4.0); there is no public way.
    """
    plan: Any = batch._jdf.queryExecution().toRdd()
    found = []
    for partition in plan.partitions():
        inputs = partition.inputPartitions()
        for index in range(inputs.size()):
            offsets = inputs.apply(index).offsetRange()
            number = offsets.topicPartition().partition()
            found.append(TaskRange(number, offsets.fromOffset(), offsets.untilOffset()))
    return found
