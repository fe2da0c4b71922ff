"""`thl heartbeat`: something on the source to be seen at the other end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured("source")
@click.argument("name", default="manual")
@click.option("--wait", "until_applied", is_flag=True, help="Until the target has it, and all that was before it.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait no longer.")
def heartbeat(config: Config, name: str, until_applied: bool, timeout: float | None) -> None:
    """Write a heartbeat into source.heartbeat_table; its event has NAME as `heartbeat` in its metadata.

    With --wait it exits with 12 when it takes too long.
    """
    from connector.clock import SystemClock
    from connector.commands.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.mysql.server.heartbeat_table import write_heartbeat
    from connector.status.target import read_target
    from connector.status.waiting import Wanted, wait_for

    if until_applied:
        warn_of_unverified(config, "target")
    gtids = write_heartbeat(config.source, config.service, name)
    if not until_applied:
        return
    if gtids is None:
        raise ConfigError("the source has no GTIDs, by which a heartbeat could be waited for")
    url = config.target.url.get_secret_value()
    row = wait_for(Wanted.parse(gtids), lambda: read_target(url, config.service), SystemClock(), timeout)
    click.echo(f"applied {row.seqno} ({row.event_id})", err=True)
