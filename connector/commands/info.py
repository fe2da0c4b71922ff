"""`thl info`: what the log is and holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured("kafka")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def info(config: Config, as_json: bool) -> None:
    """Say what the log holds: seqnos, times, partitions, about how many bytes, and its epochs.

    Exits with 5 where a partition has lost its end.
    """
    from connector.inspect.info import as_lines, as_object, log_info

    found = log_info(config)
    click.echo(json.dumps(as_object(found), indent=2) if as_json else "\n".join(as_lines(found)))
    if found.lost is not None:
        raise found.lost
