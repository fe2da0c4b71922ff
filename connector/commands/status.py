"""`thl status`: prints how far producer and applier are, for people and for monitoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command, option
from connector.commands.grammar.options import configured, one_end, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config

UNWELL = 1
LIMITS = "Limits"


@command(
    earlier=JSON,
    examples={
        "thl status": "",
        "thl status --format json --max-behind 300": "For monitoring.",
        "thl status --target": "The applier's part, without asking the source.",
    },
)
@configured()
@one_end("Only the target and its applier.", "Only the source and its producer.", default=None)
@option(
    "--max-behind",
    section=LIMITS,
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Report a problem when producer or applier lags by more.",
)
@option(
    "--min-purge",
    section=LIMITS,
    type=float,
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Report a problem when the source may purge the next binary log file sooner.",
)
@text_or_json("One JSON object instead of text; with both ends it has the names of `trepctl status`, too.")
@click.pass_context
def status(
    ctx: click.Context, config: Config, *, end: str | None, max_behind: float, min_purge: float, as_json: bool
) -> None:
    """Print how far producer and applier are, under Tungsten's names.

    Exits with 1 when a server does not answer or a limit is exceeded.
    """
    from connector.clock import SystemClock
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.status.collect import collect
    from connector.status.report import End, LagLimits, as_object, as_text
    from connector.status.trepctl import tungsten_names

    ends = frozenset(End) if end is None else frozenset((End(end),))
    warn_of_unverified(config, "kafka")
    if End.PRODUCER in ends:
        warn_of_unverified(config, "source", "replicas")
    if End.TARGET in ends:
        warn_of_unverified(config, "target")
    found = collect(config, LagLimits(max_behind, min_purge), ends=ends)
    if as_json:
        # Tungsten's names are of one replicator, which has both ends.
        names = tungsten_names(found, config, SystemClock().now()) if end is None else {}
        click.echo(json.dumps({**names, **as_object(found)}, indent=2))
    else:
        click.echo(as_text(found))
    ctx.exit(UNWELL if found.problems else 0)
