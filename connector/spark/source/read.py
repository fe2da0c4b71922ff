"""Reads the log as DataFrames: `read_thl` and `stream_thl`."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

from connector.config.model import Config
from connector.spark.source.options import as_options
from connector.spark.source.source import NAME, LogSource


def register(spark: SparkSession) -> None:
    """Register the format `thl` with a session."""
    if (spark.sparkContext.master or "").startswith("local"):
        # Workers on this machine import the same modules.
        spark.sparkContext.pythonExec = sys.executable
    spark.dataSource.register(LogSource)


def read_thl(spark: SparkSession, config: Config, **options: object) -> DataFrame:
    """Return the row changes of a log, from one event to another, as a DataFrame.

    Args:
        spark: the session; its executors import this package.
        config: service and brokers.
        options: options of the format, see `connector.spark.source.options`: `startingSeqno=0, endingSeqno=41`.

    Returns:
        One row for each changed row and each statement, of whole transactions only, in any order: sort by `seqno` and
        `change`.
    """
    register(spark)
    return spark.read.format(NAME).options(**as_options(config), **_texts(options)).load()


def stream_thl(spark: SparkSession, config: Config, **options: object) -> DataFrame:
    """Return the row changes of a log as a stream; each micro-batch has the next whole transactions.

    Args:
        spark: the session; its executors import this package.
        config: service and brokers.
        options: options of the format, see `connector.spark.source.options`: `maxEventsPerTrigger=100_000`.
    """
    register(spark)
    return spark.readStream.format(NAME).options(**as_options(config), **_texts(options)).load()


def _texts(options: dict[str, object]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
