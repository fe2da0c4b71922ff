"""`thl status`: how far producer and applier are, for people and for monitoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config

UNWELL = 1


@click.command()
@configured("kafka", "source", "replicas", "target")
@click.option("--max-behind", default=60.0, show_default=True, help="Seconds behind that are still well.")
@click.option("--min-purge", default=3600.0, show_default=True, help="Seconds until a purge that are still well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(ctx: click.Context, config: Config, max_behind: float, min_purge: float, as_json: bool) -> None:
    """Say how far producer and applier are, under Tungsten's names.

    With --json the names of `trepctl status` are beside the two ends' own.

    Exits with 0 when all is well and with 1 when something does not answer or is beyond its limit.
    """
    from connector.clock import SystemClock
    from connector.status.collect import collect
    from connector.status.report import Limits, as_object, as_text
    from connector.status.trepctl import tungsten_names

    found = collect(config, Limits(max_behind, min_purge))
    if as_json:
        names = tungsten_names(found, config, SystemClock().now())
        click.echo(json.dumps({**names, **as_object(found)}, indent=2))
    else:
        click.echo(as_text(found))
    ctx.exit(UNWELL if found.problems else 0)
