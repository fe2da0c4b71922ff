"""`thl status`: how far producer and applier are, for people and for monitoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config

UNWELL = 1


@click.command()
@configured
@click.option("--max-behind", default=60.0, show_default=True, help="Seconds behind that are still well.")
@click.option("--min-purge", default=3600.0, show_default=True, help="Seconds until a purge that are still well.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(ctx: click.Context, config: Config, max_behind: float, min_purge: float, as_json: bool) -> None:
    """Say how far producer and applier are, under Tungsten's names.

    Exits with 0 when all is well and with 1 when something does not answer or is beyond its limit.
    """
    from connector.status.collect import collect
    from connector.status.report import Limits, as_object, as_text

    found = collect(config, Limits(max_behind, min_purge))
    click.echo(json.dumps(as_object(found), indent=2) if as_json else as_text(found))
    ctx.exit(UNWELL if found.problems else 0)
