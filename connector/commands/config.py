"""`thl config`: prints the configuration in force, or its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.options import settings_options

if TYPE_CHECKING:
    from connector.config.loading import Settings


@command(examples={"thl config --set source.port=3307": "The configuration with a field changed."})
@settings_options
@option("--reference", "print_reference", is_flag=True, help="Print every field with its default, in Markdown.")
def config(settings: Settings, print_reference: bool) -> None:
    """Print the configuration in force as YAML, with the origin of each value; secrets are hidden."""
    from connector.config.reference import in_force, reference

    click.echo(reference() if print_reference else in_force(settings), nl=False)
