"""`thl index`: where in the log which events are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured("kafka")
@click.option("--every", type=click.IntRange(min=1), default=100_000, show_default=True, help="Offsets of a segment.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
def index(config: Config, every: int, as_json: bool) -> None:
    """Print the seqnos of each segment of the log: of each epoch, and of about so many offsets.

    Exits with 5 where a partition has lost its end.
    """
    from connector.inspect.segments import as_line, as_object, segments

    for segment in segments(config, every):
        click.echo(json.dumps(as_object(segment)) if as_json else as_line(segment))
