"""Micro-batch mode: Spark reads the log in micro-batches of all messages available, up to a limit.

`foreachBatch` calls back in a thread of py4j in this process. That thread collects the batch as Arrow and queues it, so
that Spark reads the next batch while this one is applied. Executors run no Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.spark import settings as spark_settings
from connector.spark.session import RunningQuery, SparkRun, answering, gone, root_cause
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.handover import Closed, Handover
from connector.spark.stream.kafka_source import messages

HANDOVER_BYTES: Final = 64 << 20  # maximum bytes of queued batches


class TooLarge(Exception):
    """Raised when a batch does not fit into Spark's memory: it must be read again in smaller batches."""


class Reported(Exception):
    """Raised to end a query whose error the applier already has."""


class MicroBatches:
    """Reads the messages of one topic from given offsets on, batch by batch in the log's order.

    Args:
        session: the session.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST for its beginning.
        max_messages: maximum number of messages of a batch.
        poll_messages: maximum number of messages of one poll of the brokers.
        queue_batches: maximum number of batches that wait for the applier.

    Raises:
        ConfigError: Spark refuses the query.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: SparkRun,
        kafka: Kafka,
        *,
        topic: str,
        offsets: Mapping[int, int],
        max_messages: int,
        poll_messages: int,
        queue_batches: int,
    ) -> None:
        self.max_messages = max_messages
        self._poll_messages = poll_messages
        self._handover = Handover(queue_batches, HANDOVER_BYTES)
        options = spark_settings.batching(max_messages, poll_messages)
        with answering():
            frame = messages(session, kafka, topic=topic, offsets=offsets, options=options)
            writer = frame.writeStream.options(**spark_settings.NO_LOG).foreachBatch(self._accept)
        self._query = RunningQuery(session, writer)

    def next(self, timeout: float) -> pa.Table | None:
        """Return the next batch, with columns partition, offset, value; None if none comes within `timeout` seconds.

        Raises:
            TooLarge: a batch does not fit.
            BrokerUnavailable: Spark could not read.
            SparkGone: the session's JVM has ended.
        """
        batch = self._handover.get(timeout)
        if batch is None:
            self._query.check()
        return batch

    def sized_as(self, sizer: BatchSizer) -> bool:
        """Return True while batches and polls have the sizer's current sizes."""
        return (self.max_messages, self._poll_messages) == (sizer.messages, sizer.poll)

    def stop(self) -> None:
        """Stop the query; a batch that waits for room is dropped."""
        self._handover.close()
        self._query.stop()

    def _accept(self, frame: DataFrame, _number: int) -> None:
        """Queue a batch. Spark calls this in a thread of its own; an exception ends the query."""
        try:
            batch = frame.toArrow()
            if batch.num_rows:
                self._handover.put(batch)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 (the applier gets it in full)
            self._handover.fail(_failure(error))
            # Spark searches the text of a query's last error with a regular expression that needs stack for each
            # character: a long text overflows the stack, and prints a thousand lines on the terminal.
            raise Reported from None


def _failure(error: BaseException) -> BaseException:
    """Convert the error that ended a batch to an error of this connector."""
    if isinstance(error, Py4JNetworkError | OSError):
        return gone()
    if "spark.driver.maxResultSize" in str(error):
        return TooLarge()
    if isinstance(error, Py4JError | PySparkException):
        failure = BrokerUnavailable(
            "Spark could not read a batch",
            hint="are the brokers of kafka.bootstrap up? does the batch fit (apply.batch_messages, apply.heap)?",
            cause=root_cause(error),
        )
        failure.__cause__ = error
        return failure
    return error
