"""The catch-up profile: Spark reads the log in micro-batches, each as large as there is something to read.

`foreachBatch` calls back in a thread of py4j in this process; there the batch is collected as Arrow and handed over,
so that Spark reads the next one while this one is applied. Executors run no Python.
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
from connector.spark import settings as profile
from connector.spark.session import Query, Session, answering, gone, messages, root_cause
from connector.spark.stream.handover import Closed, Handover

HANDOVER_BYTES: Final = 64 << 20  # batches that wait hold no more than this, together


class TooLarge(Exception):
    """A batch does not fit into Spark's memory: fewer messages are to be read at once."""


class Told(Exception):
    """Ends a query; why is told to the applier already."""


class MicroBatches:
    """The messages of one topic from given offsets on, batch by batch in the log's order.

    Args:
        session: where it runs.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST where there is none.
        most: how many messages at once, at most.
        poll: how many of them are asked of the brokers at a time.
        waiting: how many batches wait at most.

    Raises:
        ConfigError: Spark refuses it.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: Session,
        kafka: Kafka,
        *,
        topic: str,
        offsets: Mapping[int, int],
        most: int,
        poll: int,
        waiting: int,
    ) -> None:
        self.most = most
        self.poll = poll
        self._handover = Handover(waiting, HANDOVER_BYTES)
        with answering():
            frame = messages(session, kafka, topic=topic, offsets=offsets, options=profile.batching(most, poll))
            writer = frame.writeStream.options(**profile.NO_LOG).foreachBatch(self._take)
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

    def stop(self) -> None:
        """End it; a batch that waits for room is dropped."""
        self._handover.close()
        self._query.stop()

    def _take(self, frame: DataFrame, _number: int) -> None:
        """Called by Spark, in a thread of its own: an exception here ends the query."""
        try:
            batch = frame.toArrow()
            if batch.num_rows:
                self._handover.put(batch)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 (it is told in full to the applier)
            self._handover.fail(_told(error))
            # Spark looks through the text of what ends a query with an expression that needs stack for each
            # character of it: a long text overflows it, which is a thousand lines on the terminal.
            raise Told from None


def _told(error: BaseException) -> BaseException:
    """What the applier is to raise for what ended a batch."""
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
