"""`thl index`: prints the offsets at which the log's events are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command, option
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config


@command(
    earlier={**JSON, "-json": "--format json", "--every": "--segment-size"},
    examples={"thl index --segment-size 1000": ""},
)
@configured("kafka")
@option(
    "--segment-size",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="OFFSETS",
    help="Offsets per segment, about.",
)
@text_or_json("One JSON object per line instead of text.")
def index(config: Config, segment_size: int, as_json: bool) -> None:
    """Print the seqnos and offsets of each segment of the log, by partition and epoch.

    Exits with 5 if a partition has lost its tail.
    """
    from connector.inspect.index import as_line, as_object, index_entries

    for entry in index_entries(config, segment_size):
        click.echo(json.dumps(as_object(entry)) if as_json else as_line(entry))
