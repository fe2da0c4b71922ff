"""`spark-submit spark_apps/rows.py --config FILE [--prefix shop]`: writes a log's rows as Debezium's messages.

Each table has a topic `<prefix>.<schema>.<table>`, with JSON and schemas for Connect's JsonConverter. Only committed
transactions are written, each message exactly once for consumers with `isolation.level=read_committed`.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from threading import Event

import click
from pyspark.sql import SparkSession

from connector.clock import SystemClock
from connector.commands.grammar.command import command, option
from connector.config.loading import load
from connector.errors import ConnectorError
from connector.logs import set_up_logs
from connector.spark.debezium.rows import EVENTS, EventRows, RowsOptions


@command(earlier={"--until-now": "--to-now"})
@option("--config", "file", type=click.Path(path_type=Path), help="Configuration file (YAML): service and kafka.")
@option("--set", "sets", multiple=True, metavar="SECTION.FIELD=VALUE", help="Set one field; overrides the file.")
@option("--prefix", help="Prefix of topic names; by default the service.")
@option("--partitions", default=1, show_default=True, help="Partitions of a topic that is created.")
@option("--events", default=EVENTS, show_default=True, help="Transactions of the source per Kafka transaction.")
@option("--tombstones/--no-tombstones", default=True, show_default=True, help="Write a tombstone after each delete.")
@option("--to-now", is_flag=True, help="Stop once all events that are in the log now are written.")
def rows(
    *,
    file: Path | None,
    sets: tuple[str, ...],
    prefix: str | None,
    partitions: int,
    events: int,
    tombstones: bool,
    to_now: bool,
) -> None:
    """Write a log's rows in Debezium's envelope."""
    set_up_logs("text")
    config = load(file, sets=sets)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    spark = SparkSession.builder.appName(f"thl rows {config.service}").getOrCreate()
    options = RowsOptions(prefix or config.service, tombstones, partitions, events, to_now)
    try:
        progress = EventRows(
            spark, config, options, folder=config.apply.checkpoint_dir, clock=SystemClock(), stop=stop
        ).run()
    finally:
        spark.stop()
    logging.getLogger("connector.spark").info("ended", extra={"seqno": progress.seqno if progress else None})


if __name__ == "__main__":
    try:
        rows.main(standalone_mode=False)
    except ConnectorError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
