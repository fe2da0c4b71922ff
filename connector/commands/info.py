"""`thl info`: prints what the log contains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command, option
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config


@command(
    earlier={**JSON, "-json": "--format json"},
    examples={"thl info": "", "thl info --source": "With the source's binary log files."},
)
@configured("kafka")
@option(
    "--source",
    is_flag=True,
    help="Also print the source's binary log files: how far producer and archive have read them, which is purged next.",
)
@text_or_json()
def info(config: Config, source: bool, as_json: bool) -> None:
    """Print what the log contains: seqnos, times, partitions, approximate size, epochs.

    Exits with 5 if a partition has lost its tail.
    """
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.inspect import source_files
    from connector.inspect.info import as_lines, as_object, log_info

    if source:
        warn_of_unverified(config, "source")
    found = log_info(config)
    files = source_files.source_files(config) if source else None
    if as_json:
        shown = as_object(found) | ({"source": source_files.as_object(files)} if files else {})
        click.echo(json.dumps(shown, indent=2))
    else:
        click.echo("\n".join([*as_lines(found), *(source_files.as_lines(files) if files else ())]))
    if found.lost is not None:
        raise found.lost
