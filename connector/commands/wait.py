"""`thl wait`: until a target has an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.arguments import moment
from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config
    from connector.status.waiting import Want, Wanted


def applied_option(_: click.Context, option: click.Parameter, value: str | None) -> Wanted | None:
    """A seqno or GTIDs."""
    from connector.errors import Unsupported
    from connector.status.waiting import Wanted

    if value is None:
        return None
    try:
        return Wanted.parse(value)
    except Unsupported as error:
        raise click.BadParameter(f"{value!r} is neither a seqno nor a GTID", param=option) from error


@click.command()
@configured("target")
@click.option("-applied", "--applied", callback=applied_option, metavar="SEQNO|GTID", help="An event, or several.")
@click.option("--heartbeat", metavar="NAME", help="A heartbeat: its row is in the target's copy of the source's table.")
@click.option(
    "--since",
    callback=moment,
    metavar="TIME",
    help="Not one that was written before (ISO, UTC): for a name that is used again.",
)
@click.option("-limit", "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait no longer.")
def wait(
    config: Config, applied: Wanted | None, heartbeat: str | None, since: int | None, timeout: float | None
) -> None:
    """Wait until the target has an event, and all that were before it; exits with 12 when it takes too long.

    The event is named by its seqno or GTID, or is the heartbeat that `thl heartbeat NAME` wrote.
    """
    from connector.clock import SystemClock
    from connector.status.target import read_target
    from connector.status.waiting import wait_for

    if (applied is None) == (heartbeat is None):
        raise click.UsageError("one of --applied, --heartbeat has to be given")
    if since is not None and heartbeat is None:
        raise click.UsageError("--since is about a heartbeat")
    url = config.target.url.get_secret_value()
    wanted: Want = applied if applied is not None else _of_heartbeat(config, heartbeat or "", since)
    row = wait_for(wanted, lambda: read_target(url, config.service), SystemClock(), timeout)
    click.echo(f"applied {row.seqno} ({row.event_id})", err=True)


def _of_heartbeat(config: Config, name: str, since: int | None) -> Want:
    from connector.mysql.server.heartbeat_table import heartbeat_table
    from connector.status.heartbeat import written
    from connector.status.waiting import WantedHeartbeat

    url, table = config.target.url.get_secret_value(), heartbeat_table(config.source)
    return WantedHeartbeat(name, since, lambda: written(url, config.service, table, name))
