"""`thl heartbeat`: writes a heartbeat row on the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.options import configured
from connector.logs import echo

if TYPE_CHECKING:
    from connector.config.model import Config


@command(
    examples={
        "thl heartbeat deploy-7": "Write a heartbeat.",
        "thl heartbeat deploy-7 --wait --timeout 60": "And wait until the target has applied it.",
    }
)
@configured("source")
@click.argument("name", default="manual")
@option("--wait", "until_applied", is_flag=True, help="Wait until the target has this event and all before it.")
@option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Exit with 12 when it takes longer.")
def heartbeat(config: Config, name: str, until_applied: bool, timeout: float | None) -> None:
    """Write a heartbeat row to source.heartbeat_table; its event's metadata has NAME as `heartbeat`.

    `thl wait --to-heartbeat NAME` and `thl apply --to-heartbeat NAME` refer to it.
    """
    from connector.clock import SystemClock
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.mysql.server.heartbeat_table import write_heartbeat
    from connector.status.waiting import EventReached, wait_for
    from connector.targets.open import read_position

    if until_applied:
        warn_of_unverified(config, "target")
    gtids = write_heartbeat(config.source, config.service, name)
    if not until_applied:
        return
    if gtids is None:
        raise ConfigError(
            "--wait needs GTIDs, which the source does not have",
            hint="thl wait --to-heartbeat NAME --from-time TIME",
        )
    url = config.target.url.get_secret_value()
    row = wait_for(EventReached.parse(gtids), lambda: read_position(url, config.service), SystemClock(), timeout)
    echo(f"applied {row.seqno} ({row.event_id})")
