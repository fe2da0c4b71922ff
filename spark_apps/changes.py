"""`spark-submit spark_apps/changes.py --config FILE [--table shop.orders] [--from 0] [--to 41] [--out FOLDER]`.

The row changes of a log, printed or written as Parquet; with `--follow` as a stream, whose checkpoint is in the folder.
An example of `connector.spark` as much as a tool: whoever wants something else of the log begins here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession

from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.spark import layout_of, read_thl, stream_thl, typed


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="Configuration in YAML: service and kafka.")
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set one field, over the file.")
@click.option("--table", metavar="SCHEMA.TABLE", help="Only this one, its images as columns of its own types.")
@click.option("--from", "first", type=int, help="The first seqno; else the log's beginning.")
@click.option("--to", "last", type=int, help="The last seqno; else the log's end.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder of Parquet; else they are printed.")
@click.option("--follow", is_flag=True, help="Go on as the log grows, and where the folder's checkpoint says.")
def changes(
    *,
    file: Path | None,
    sets: tuple[str, ...],
    table: str | None,
    first: int | None,
    last: int | None,
    out: Path | None,
    follow: bool,
) -> None:
    """Read a log's row changes by Spark."""
    config = load(file, sets=sets)
    spark = SparkSession.builder.appName(f"thl changes {config.service}").getOrCreate()
    options: dict[str, Any] = {} if first is None else {"startingSeqno": first}
    if follow:
        if out is None or last is not None:
            raise click.UsageError("--follow wants --out, and no --to")
        _follow(_table(stream_thl(spark, config, **options), config, table), out)
        return
    if last is not None:
        options["endingSeqno"] = last
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
    """Parquet's sink keeps what a micro-batch wrote and its offset together: each transaction is there once."""
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(out / "_checkpoint"))
    writer.start(str(out / "changes")).awaitTermination()


if __name__ == "__main__":
    try:
        changes.main(standalone_mode=True)
    except ConnectorError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
