"""`thl wait`: until a target has an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config
    from connector.status.waiting import Wanted


def applied_option(_: click.Context, option: click.Parameter, value: str) -> Wanted:
    """A seqno or GTIDs."""
    from connector.errors import Unsupported
    from connector.status.waiting import Wanted

    try:
        return Wanted.parse(value)
    except Unsupported as error:
        raise click.BadParameter(f"{value!r} is neither a seqno nor a GTID", param=option) from error


@click.command()
@configured
@click.option(
    "-applied", "--applied", callback=applied_option, required=True, metavar="SEQNO|GTID", help="An event, or several."
)
@click.option("-limit", "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait no longer.")
def wait(config: Config, applied: Wanted, timeout: float | None) -> None:
    """Wait until the target has an event, and all that were before it; exits with 12 when it takes too long."""
    from connector.clock import SystemClock
    from connector.status.target import read_target
    from connector.status.waiting import wait_for

    url = config.target.url.get_secret_value()
    row = wait_for(applied, lambda: read_target(url, config.service), SystemClock(), timeout)
    click.echo(f"applied {row.seqno} ({row.event_id})", err=True)
