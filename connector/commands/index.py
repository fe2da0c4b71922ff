"""`thl index`: prints the offsets at which the log's events are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, OPTIONS, command, option
from connector.commands.grammar.options import configured, relay_folder, relay_option, text_or_json

if TYPE_CHECKING:
    from pathlib import Path

    from connector.config.model import Config


@command(
    earlier={**JSON, "-json": "--format json", "--every": "--segment-size", "--file": "--relay"},
    examples={"thl index --segment-size 1000": "", "thl index --relay /var/lib/thl/relay": ""},
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
@relay_option("Print a relay's files and their events instead.", OPTIONS)
@text_or_json("One JSON object per line instead of text.")
def index(config: Config, segment_size: int, as_json: bool, relay: Path | None) -> None:
    """Print the seqnos and offsets of each segment of the log, by partition and epoch.

    Exits with 5 if a partition has lost its tail, or a file of a relay is damaged.
    """
    from connector.inspect.index import as_line, as_object, index_entries
    from connector.inspect.relay import relay_entries

    if relay is not None:
        for file in relay_entries(relay_folder(config, relay)):
            click.echo(json.dumps(file.as_object()) if as_json else file.as_line())
        return
    for entry in index_entries(config, segment_size):
        click.echo(json.dumps(as_object(entry)) if as_json else as_line(entry))
