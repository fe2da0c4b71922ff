"""Micro-batch mode: Spark reads the log in micro-batches, each with as many messages as there are.

`foreachBatch` calls back in a thread of py4j in this process; that thread collects the batch as Arrow and hands it
over, so that Spark reads the next one while this one is applied. Executors run no Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from connector.config.model import Kafka
from connector.errors import BrokerUnavailable
from connector.spark import settings as spark_settings
from connector.spark.session import Query, Session, answering, gone, messages, root_cause
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.handover import Closed, Handover

HANDOVER_BYTES: Final = 64 << 20  # batches that wait hold no more than this, together


class TooLarge(Exception):
    """A batch does not fit into Spark's memory: it is read again in smaller ones."""


class Reported(Exception):
    """Ends a query whose error the applier has already."""


class MicroBatches:
    """The messages of one topic from given offsets on, batch by batch in the log's order.

    Args:
        session: where it runs.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST where there is none.
        max_messages: of a batch.
        poll_messages: of one poll of the brokers, at most.
        queue_batches: batches that wait for the applier, at most.

    Raises:
        ConfigError: Spark refuses the query.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: Session,
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
        self._query = Query(session, writer)

    def next(self, timeout: float) -> pa.Table | None:
        """The next batch, with columns partition, offset, value; None when there is none within `timeout` seconds.

        Raises:
            TooLarge: a batch does not fit.
            BrokerUnavailable: Spark could not read.
            SparkGone: its JVM has ended.
        """
        batch = self._handover.get(timeout)
        if batch is None:
            self._query.check()
        return batch

    def sized_as(self, sizer: BatchSizer) -> bool:
        """True while its batches and polls have the present sizes."""
        return (self.max_messages, self._poll_messages) == (sizer.messages, sizer.poll)

    def stop(self) -> None:
        """End the query; a batch that waits for room is dropped."""
        self._handover.close()
        self._query.stop()

    def _accept(self, frame: DataFrame, _number: int) -> None:
        """Hand a batch over: Spark calls this in a thread of its own, and an exception ends the query."""
        try:
            batch = frame.toArrow()
            if batch.num_rows:
                self._handover.put(batch)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 (the applier gets it in full)
            self._handover.fail(_failure(error))
            # Spark searches the text of a query's last error with a regular expression that needs stack for each
            # character: a long text overflows the stack, which is a thousand lines on the terminal.
            raise Reported from None


def _failure(error: BaseException) -> BaseException:
    """The error of this connector for one that ended a batch."""
    if isinstance(error, Py4JNetworkError | OSError):
        return gone()
    if "spark.driver.maxResultSize" in str(error):
        return TooLarge()
    if isinstance(error, Py4JError | PySparkException):
        failure = BrokerUnavailable(
            f"Spark could not read a batch: {root_cause(error)}",
            hint="are the brokers of kafka.bootstrap up? does the batch fit (apply.batch_messages, apply.heap)?",
        )
        failure.__cause__ = error
        return failure
    return error
