"""Spark's settings, each with its reason. The user's own (`apply.spark`) win over all of them.

One session serves both modes (`connector.spark.stream.stream`). Gains are of a micro-batch's 39 ms at 200
transactions a second, or of a full one's 4.4 CPU seconds per million rows, on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connector.redaction import SPARK_NAMES

_QUEUE: Final = "16"  # messages that continuous mode holds in the JVM, about
_HELD: Final = 36  # of each partition: those that wait, as many that a poll has unpacked, and what is being copied
_OWN: Final = 96 << 20  # bytes of the heap that Spark itself holds, about
_OLD: Final = 2 / 3  # of the heap is for objects that stay in it

SETTINGS: Final[Mapping[str, str]] = {
    # The web page has no reader, and costs memory and a port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Each batch's plan is described for that page: in one line (-4 ms).
    "spark.sql.ui.explainMode": "simple",
    # Speculation would read twice; nothing is gained, since the driver waits for all tasks anyway.
    "spark.speculation": "false",
    # One plan, no shuffle: nothing to adapt, but planning would be done twice.
    "spark.sql.adaptive.enabled": "false",
    # One projection has nothing that a second look at it would improve (-3 ms).
    "spark.sql.optimizer.maxIterations": "1",
    # Generated code never pays in batches of a few rows (-25 ms), nor does a projection of three columns need it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # An Arrow batch's binary column has 32-bit offsets: few messages a batch keep it far from 2 GiB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
    # A task's result goes straight to the driver, not by the block manager and its sockets (-0.6 CPU s).
    "spark.task.maxDirectResultSize": "128m",
    # A batch passes through the driver's heap: a larger one is refused, and read again in smaller ones. (Without this,
    # an OutOfMemoryError would end the JVM.)
    "spark.driver.maxResultSize": "192m",
    # A batch without data has nothing for the target.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # How soon a new offset is looked for after a batch without one (-6 ms, p99 -44 ms).
    "spark.sql.streaming.pollingDelay": "1ms",
    # The log's end is asked of the admin client. A consumer needs one round trip instead of two (-6 ms), but waits for
    # ever, and silently, for brokers that are gone and for the coordinator of a group that is not needed.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    # Progress reports are kept in memory, and never read.
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    # Continuous mode: a row goes to the worker by itself instead of waiting for a hundred, or for 64 KiB. (Nothing
    # else writes by this buffer: micro-batches have no workers and few files.)
    "spark.sql.execution.python.udf.maxRecordsPerBatch": "1",
    "spark.buffer.size": "2",
    # Messages that are read and not sent yet: few, for a message may be as large as a row.
    "spark.sql.streaming.continuous.executorQueueSize": _QUEUE,
    # Names whose values event logs, pages and plans hide; Spark's own lists lack those of Kafka.
    "spark.redaction.regex": SPARK_NAMES,
    "spark.sql.redaction.options.regex": SPARK_NAMES,
    # SIGTERM is handled here: a query is stopped, not interrupted in the middle of handing a batch over.
    "spark.sql.streaming.stopTimeout": "10s",
}

# The query's own log of offsets is never read: it is kept in memory, but for the first batch and once in so long.
# (Two files a batch, each with a chmod process where Hadoop has no native library, are 10 ms.) Spark knows only sinks
# whose repeated rows do no harm, and asks whether this is one: the target's own offsets say where to go on.
NO_LOG: Final[Mapping[str, str]] = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "86400000",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}

OPTIONS: Final[Mapping[str, str]] = {
    # Only what a Kafka transaction has committed.
    "kafka.isolation.level": "read_committed",
    # A hole is an error, never skipped.
    "failOnDataLoss": "true",
    # A fetch that reaches the log's end waits this long for more (-5 ms; a batch at the end would wait seconds).
    "kafka.fetch.max.wait.ms": "1",
    # Fragments are 64 KiB: many a fetch. Not too many: what a task has fetched beyond its range is thrown away.
    "kafka.max.partition.fetch.bytes": str(2 << 20),
    # The system's own, which grows; Kafka's 64 KiB does not.
    "kafka.receive.buffer.bytes": "-1",
    # A task that cannot get a range gives up, and this connector starts the query again, with a log line.
    "kafkaConsumer.pollTimeoutMs": "30000",
    "kafka.request.timeout.ms": "15000",
    "kafka.default.api.timeout.ms": "20000",
}

CONTINUOUS: Final[Mapping[str, str]] = {
    # A fetch waits at the log's end. Not long: Spark asks for the log's ends after each, on the same connection, and
    # that is answered after the next fetch, which is on its way already.
    "kafka.fetch.max.wait.ms": "5",
    # A poll cannot be interrupted, so this is how long the end of a query may take.
    "kafkaConsumer.pollTimeoutMs": "250",
    # What a poll has unpacked is in the heap, however little it was on the wire: as few as wait to be sent.
    "kafka.max.poll.records": _QUEUE,
}
# At the end of an epoch Spark writes its offsets, which are never read, and gives its workers new tasks.
EPOCH: Final = "24 hours"

_TASKS: Final = 4  # of a full batch, each for a range of a partition
_FEW: Final = 250  # messages, that are not worth two tasks

# Starts faster, has no threads that compete; the optimising compiler wants more CPU than it saves in five million rows.
_JVM: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING: Final = "-Dlog4j2.configurationFile="

LOG4J: Final = """rootLogger.level = error
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} spark %p %c{1}: %m%n
# Of the same level as the root, or Spark would set the root to its own.
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = error
# The connector reports the error of a query once; these would report it three times more.
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.py4j.name = py4j
logger.py4j.level = off
"""


def continuous_heap(partitions: int, largest: int) -> int:
    """Bytes of heap that continuous mode needs.

    Args:
        partitions: of the topic.
        largest: bytes that a message may have.
    """
    return int((_HELD * partitions * largest + _OWN) / _OLD)


def batching(messages: int, poll: int) -> dict[str, str]:
    """Options of Kafka's source for batches of at most so many messages, polled so many at a time."""
    return {
        "kafka.max.poll.records": str(poll),
        "maxOffsetsPerTrigger": str(messages),
        "maxRecordsPerPartition": str(max(_FEW, -(-messages // _TASKS))),
    }


def jvm_options(log4j: Path, folder: Path) -> str:
    """Options of the driver's JVM, which only the process that starts it can set.

    Args:
        log4j: a file with `LOG4J`.
        folder: for unpacked native libraries; also the JVM's working directory, in which Spark makes a folder for
            classes, which no other user may write to.
    """
    options = (*_JVM, f"{_LOGGING}{log4j}", f"-Djava.io.tmpdir={folder}", f"-Duser.dir={folder}")
    # Quoted as Spark's launcher reads it.
    return " ".join('"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"' for option in options)
