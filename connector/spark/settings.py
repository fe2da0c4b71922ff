"""Spark's settings, each with its reason. The user's settings (`apply.spark`) override them.

One session serves both modes (`connector.spark.stream.stream`). Gains in parentheses refer to a micro-batch's 39 ms at
200 transactions a second, or to a full batch's 4.4 CPU seconds per million rows, on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connector.redaction import SPARK_NAMES

_QUEUE: Final = "16"  # approximate number of messages that continuous mode queues in the JVM
_QUEUED: Final = 36  # messages of each partition in the heap: queued, unpacked by a poll, and being copied
_OWN: Final = 96 << 20  # approximate bytes of the heap that Spark itself needs
_OLD: Final = 2 / 3  # fraction of the heap for long-lived objects

SETTINGS: Final[Mapping[str, str]] = {
    # The web UI is not needed, and costs memory and a port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Each batch's plan is described for the web UI: in one line (-4 ms).
    "spark.sql.ui.explainMode": "simple",
    # Speculation would read twice without gain, because the driver waits for all tasks anyway.
    "spark.speculation": "false",
    # A plan without a shuffle has nothing to adapt, but would be planned twice.
    "spark.sql.adaptive.enabled": "false",
    # A single projection cannot be optimised further (-3 ms).
    "spark.sql.optimizer.maxIterations": "1",
    # Code generation costs more than it saves for a projection of three columns in batches of a few rows (-25 ms).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A task's result goes directly to the driver, not through the block manager and its sockets (-0.6 CPU s).
    "spark.task.maxDirectResultSize": "128m",
    # A batch passes through the driver's heap: a larger one is refused, and read again in smaller batches.
    # (Otherwise an OutOfMemoryError would end the JVM.)
    "spark.driver.maxResultSize": "192m",
    # A batch without data changes nothing on the target.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The delay before the next check for new offsets after an empty one (-6 ms, p99 -44 ms).
    "spark.sql.streaming.pollingDelay": "1ms",
    # The admin client asks for the log's end. A consumer needs one round trip instead of two (-6 ms), but waits forever
    # and silently for unavailable brokers, and for the coordinator of a group that is not needed.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    # Progress reports are kept in memory, and never read.
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    # Continuous mode: each row goes to the worker at once instead of waiting for a hundred rows or 64 KiB.
    # (Micro-batches hardly use this buffer: their tasks' results are in files, or few and large.)
    "spark.sql.execution.python.udf.maxRecordsPerBatch": "1",
    "spark.buffer.size": "2",
    # Messages that are read and not sent yet: few, because a message may be as large as a row.
    "spark.sql.streaming.continuous.executorQueueSize": _QUEUE,
    # Names whose values are hidden in event logs, the web UI and plans; Spark's own list lacks Kafka's names.
    "spark.redaction.regex": SPARK_NAMES,
    "spark.sql.redaction.options.regex": SPARK_NAMES,
    # This process handles SIGTERM: it stops the query between two batches.
    "spark.sql.streaming.stopTimeout": "10s",
}

# The query's own log of offsets is never read, so it is kept in memory, except for the first batch and at long
# intervals. (Two files per batch, each with a chmod process if Hadoop has no native library, cost 10 ms.) Spark allows
# this only for sinks that tolerate repeated rows; here the target's own offsets decide where to continue.
NO_LOG: Final[Mapping[str, str]] = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "86400000",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}

OPTIONS: Final[Mapping[str, str]] = {
    # Only committed messages.
    "kafka.isolation.level": "read_committed",
    # A hole is an error, never skipped.
    "failOnDataLoss": "true",
    # Maximum wait of a fetch at the log's end (-5 ms; by default a batch at the end would wait for seconds).
    "kafka.fetch.max.wait.ms": "1",
    # Fragments have 64 KiB: many per fetch, but not too many, because messages beyond a task's range are dropped.
    "kafka.max.partition.fetch.bytes": str(2 << 20),
    # The system's default, which grows; Kafka's 64 KiB does not.
    "kafka.receive.buffer.bytes": "-1",
    # A task that cannot read its range fails, and this connector restarts the query with a log line.
    "kafkaConsumer.pollTimeoutMs": "30000",
    "kafka.request.timeout.ms": "15000",
    "kafka.default.api.timeout.ms": "20000",
}

CONTINUOUS: Final[Mapping[str, str]] = {
    # A fetch waits at the log's end, but not long: after each fetch Spark asks for the log's ends on the same
    # connection, and the answer comes only after the next fetch, which is already sent.
    "kafka.fetch.max.wait.ms": "5",
    # A poll cannot be interrupted, so stopping a query may take this long.
    "kafkaConsumer.pollTimeoutMs": "250",
    # Unpacked messages of a poll are in the heap, even if they were small on the wire: as few as are queued.
    "kafka.max.poll.records": _QUEUE,
}
# At the end of an epoch Spark writes its offsets, which are never read, and starts new tasks.
EPOCH: Final = "24 hours"

# Starts faster and has fewer threads; the optimising compiler costs more CPU than it saves in five million rows.
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
# A task that ends while its session stops.
logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl
logger.scheduler.level = error
logger.scheduler.filter.stopping.type = RegexFilter
logger.scheduler.filter.stopping.regex = Exception in statusUpdate
logger.scheduler.filter.stopping.onMatch = DENY
logger.scheduler.filter.stopping.onMismatch = NEUTRAL
logger.task.name = org.apache.spark.TaskContextImpl
logger.task.level = error
logger.task.filter.stopping.type = RegexFilter
logger.task.filter.stopping.regex = Error in TaskCompletionListener
logger.task.filter.stopping.onMatch = DENY
logger.task.filter.stopping.onMismatch = NEUTRAL
# The stack of an application that the cluster ended; its reason is another message.
logger.inbox.name = org.apache.spark.rpc.netty.Inbox
logger.inbox.level = off
logger.py4j.name = py4j
logger.py4j.level = off
"""


def continuous_heap(partitions: int, largest: int) -> int:
    """Return the bytes of heap that continuous mode needs.

    Args:
        partitions: number of partitions of the topic.
        largest: maximum bytes of a message.
    """
    return int((_QUEUED * partitions * largest + _OWN) / _OLD)


def jvm_options(log4j: Path, folder: Path) -> str:
    """Return the options of the driver's JVM, which only the process that starts it can set.

    Args:
        log4j: a file with `LOG4J`.
        folder: folder for unpacked native libraries, and the JVM's working directory, in which Spark creates a folder
            for classes; no other user may write to it.
    """
    options = (*_JVM, f"{_LOGGING}{log4j}", f"-Djava.io.tmpdir={folder}", f"-Duser.dir={folder}")
    return " ".join(map(quoted, options))


def quoted(option: str) -> str:
    """Return an option of the JVM, quoted as Spark's launcher expects it."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
