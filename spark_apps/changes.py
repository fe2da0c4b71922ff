"""`spark-submit spark_apps/changes.py --config FILE [--table T] [--from-seqno N] [--to-seqno N] [--out FOLDER]`.

Prints a log's row changes, or writes them as Parquet; with `--follow` as a stream with its checkpoint in the folder.
A tool, and an example of `connector.spark`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession

from connector.commands.grammar.command import command, option
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.spark import layout_of, read_thl, stream_thl, typed


@command(earlier={"--from": "--from-seqno", "--to": "--to-seqno"})
@option("--config", "file", type=click.Path(path_type=Path), help="Configuration file (YAML): service and kafka.")
@option("--set", "sets", multiple=True, metavar="SECTION.FIELD=VALUE", help="Set one field; overrides the file.")
@option("--table", metavar="SCHEMA.TABLE", help="Only this table, its images as columns of their own types.")
@option("--from-seqno", type=int, metavar="N", help="First event; by default the log's first.")
@option("--to-seqno", type=int, metavar="N", help="Last event; by default the log's last.")
@option("--out", type=click.Path(path_type=Path), metavar="FOLDER", help="Write Parquet files; by default print.")
@option("--follow", is_flag=True, help="Continue as the log grows, from the checkpoint in the folder of --out.")
def changes(
    *,
    file: Path | None,
    sets: tuple[str, ...],
    table: str | None,
    from_seqno: int | None,
    to_seqno: int | None,
    out: Path | None,
    follow: bool,
) -> None:
    """Read a log's row changes with Spark."""
    config = load(file, sets=sets)
    spark = SparkSession.builder.appName(f"thl changes {config.service}").getOrCreate()
    options: dict[str, Any] = {} if from_seqno is None else {"startingSeqno": from_seqno}
    if follow:
        if out is None or to_seqno is not None:
            raise click.UsageError("--follow needs --out and excludes --to-seqno")
        _follow(_table(stream_thl(spark, config, **options), config, table), out)
        return
    if to_seqno is not None:
        options["endingSeqno"] = to_seqno
    found = _table(read_thl(spark, config, **options), config, table)
    if out is None:
        found.orderBy("seqno", "change").show(100, truncate=80)
    else:
        found.write.mode("error").parquet(str(out))


def _table(found: DataFrame, config: Config, table: str | None) -> DataFrame:
    if table is None:
        return found
    schema, _, name = table.partition(".")
    return typed(found, layout_of(config, schema, name))


def _follow(found: DataFrame, out: Path) -> None:
    """Follow the log: Parquet's sink commits a micro-batch with its offset, so each transaction is written once."""
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(out / "_checkpoint"))
    writer.start(str(out / "changes")).awaitTermination()


if __name__ == "__main__":
    try:
        changes.main(standalone_mode=True)
    except ConnectorError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
