"""The event topic as a stream of Spark's Kafka source: the feed of the applier."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, length, when

from connector.config.kafka import Kafka
from connector.kafka.large_messages import LARGE
from connector.spark import settings as spark_settings
from connector.spark.session import SparkRun


def messages(
    session: SparkRun, kafka: Kafka, *, topic: str, offsets: Mapping[int, int], options: Mapping[str, str]
) -> DataFrame:
    """Return the messages of one topic as a stream with the columns partition, offset, value.

    Args:
        session: the session that reads it.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST for its beginning.
        options: further options of Spark's Kafka source.

    Returns:
        The stream; the value is null for a message larger than LARGE.
    """
    chosen = {
        **spark_settings.OPTIONS,
        **options,
        **{f"kafka.{name.removeprefix('kafka.')}": value for name, value in kafka.spark_properties.items()},
        "kafka.bootstrap.servers": kafka.bootstrap,
        "assign": json.dumps({topic: sorted(offsets)}),
        "startingOffsets": json.dumps({topic: {str(number): at for number, at in offsets.items()}}),
    }
    carried = when(length("value") <= LARGE, col("value")).alias("value")
    return session.spark.readStream.format("kafka").options(**chosen).load().select("partition", "offset", carried)
