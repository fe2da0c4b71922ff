"""`thl info`: prints what the log contains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config


@command(earlier=JSON)
@configured("kafka")
@text_or_json()
def info(config: Config, as_json: bool) -> None:
    """Print what the log contains: seqnos, times, partitions, approximate size, epochs.

    Exits with 5 if a partition has lost its tail.
    """
    from connector.inspect.info import as_lines, as_object, log_info

    found = log_info(config)
    click.echo(json.dumps(as_object(found), indent=2) if as_json else "\n".join(as_lines(found)))
    if found.lost is not None:
        raise found.lost
