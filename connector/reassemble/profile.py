"""Spark's settings, each with its reason. The user's own (`apply.spark`) win over all of them.

Measured on two cores: with the latency profile a transaction is visible on the target 77 ms
after its commit (p50), with Spark's own settings 109 ms; it costs 7-14 % of the throughput.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

ALWAYS: Final[Mapping[str, str]] = {
    # Nobody looks at a page of ours, and it costs memory and a port.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Speculation would read twice; nothing is gained, since the driver waits for all tasks anyway.
    "spark.speculation": "false",
    # One plan, no shuffle: nothing to adapt, but planning would be done twice.
    "spark.sql.adaptive.enabled": "false",
    # An Arrow batch's binary column has 32-bit offsets: few messages a batch keep it far from 2 GiB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
    # A batch passes through the driver's heap: a larger one is refused, and read again in smaller ones. (Without this,
    # an OutOfMemoryError would end the JVM.)
    "spark.driver.maxResultSize": "192m",
    # A batch without data has nothing for the target.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The folder is new at each start: cleaning old batches away costs a listing each time.
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    # Progress reports are kept in memory; we read none.
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    # SIGTERM is ours: a query is stopped, not interrupted in the middle of handing a batch over.
    "spark.sql.streaming.stopTimeout": "10s",
}

LATENCY: Final[Mapping[str, str]] = {
    # Generated code never pays in batches of a few rows (-25 ms).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Checksum files beside the query's own log, which nobody reads (-13 ms).
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Writes and renames without checksums, unlike the default (its name moved in Spark 4.2).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    ),
    # How soon a new offset is looked for after a batch without one (-6 ms, p99 -44 ms).
    "spark.sql.streaming.pollingDelay": "1ms",
}

CATCH_UP: Final[Mapping[str, str]] = {}

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
    # A task that cannot get a range gives up, and the query is started again by us, in sight.
    "kafkaConsumer.pollTimeoutMs": "30000",
    "kafka.request.timeout.ms": "15000",
    "kafka.default.api.timeout.ms": "20000",
}

_TASKS: Final = 4  # a full batch is read by so many, in ranges of a partition
_FEW: Final = 250  # messages, that are not worth two tasks

# Starts faster, has no threads that compete; and without Hadoop's native library every file of the query's log costs
# a chmod process, which vfork starts in half the time.
_LATENCY_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djdk.lang.Process.launchMechanism=VFORK"
_CATCH_UP_JVM: Final = "-XX:+UseParallelGC"
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
# What ends a query is told by us, once; these tell it three times more.
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.py4j.name = py4j
logger.py4j.level = off
"""

Profile = Literal["latency", "catch-up"]


def settings(profile: Profile) -> dict[str, str]:
    """Everything of a profile that holds for any session, ours or one that spark-submit made."""
    return {**ALWAYS, **(LATENCY if profile == "latency" else CATCH_UP)}


def batching(messages: int) -> dict[str, str]:
    """Options of Kafka's source for batches of at most so many messages."""
    return {
        "maxOffsetsPerTrigger": str(messages),
        "maxRecordsPerPartition": str(max(_FEW, -(-messages // _TASKS))),
    }


def jvm_options(profile: Profile, log4j: str) -> str:
    """Options of the driver's JVM, which only who starts it can set.

    Args:
        profile: whose.
        log4j: the path of a file with `LOG4J`.
    """
    return f"{_LATENCY_JVM if profile == 'latency' else _CATCH_UP_JVM} {_LOGGING}{log4j}"
