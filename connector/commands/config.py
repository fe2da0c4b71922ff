"""`thl config`: what is in force, or what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import settings_options

if TYPE_CHECKING:
    from connector.config.loading import Settings


@click.command()
@settings_options
@click.option("--reference", "print_reference", is_flag=True, help="Every field with its default, in Markdown.")
def config(settings: Settings, print_reference: bool) -> None:
    """Print the configuration in force as YAML, with where each value came from; secrets are hidden."""
    from connector.config.reference import in_force, reference

    click.echo(reference() if print_reference else in_force(settings), nl=False)
