"""`thl records info|verify|rebuild`: the record store of `thl produce`, while no producer has it open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import Command
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config


@click.group()
def records() -> None:
    """Look at the record store of source.records.dir, or begin it again, while no producer has it open."""


@records.command(cls=Command)
@configured()
@text_or_json("One JSON object instead of text.")
def info(config: Config, as_json: bool) -> None:
    """Print the log and the event that the store is at, and its tables with their rows, which are counted."""
    from connector.producer.records.report import report

    found = report(config)
    for line in [json.dumps(found.as_object())] if as_json else found.as_lines():
        click.echo(line)


@records.command(cls=Command)
@configured()
def verify(config: Config) -> None:
    """Read the whole store, so that every sum in it is checked. Exits with 5 if it is damaged."""
    from connector.producer.records.report import verify_store

    newest, replaced = verify_store(config)
    click.echo(f"{newest} newest and {replaced} replaced versions were read")


@records.command(cls=Command)
@configured("kafka")
def rebuild(config: Config) -> None:
    """Delete the store, and begin it again from the events that the log still has.

    Rows that are older than these are not known until their tables are loaded (`thl load`).
    """
    from connector.producer.records.report import rebuild_store

    click.echo(f"the store is at event {rebuild_store(config)}")
