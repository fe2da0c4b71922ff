"""`thl apply`: the log from Kafka into the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config


@click.command()
@configured
@click.option("--until-seqno", type=click.IntRange(min=0), metavar="N", help="End once event N is on the target.")
@click.option("--submitted", is_flag=True, help="Use the Spark that spark-submit has started: its master, its memory.")
def apply(config: Config, until_seqno: int | None, submitted: bool) -> None:
    """Apply the log from Kafka to the target, by Spark, until SIGTERM."""
    from connector.pipeline.apply import run
    from connector.thl.words import Seqno

    run(config, own=not submitted, until=None if until_seqno is None else Seqno(until_seqno))
