"""`thl sandbox up|down|status`: real servers to try things on, by hand."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import click

# The stack is imported inside the commands: `thl --help` must not wait for what it does not use.

_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("sandbox-data"),
    show_default=True,
    help="Where data, logs and the record of what runs are kept.",
)


@click.group()
def sandbox() -> None:
    """Disposable MySQL and Kafka on this machine, without docker and without root."""


@sandbox.command()
@_folder
@click.option(
    "--with",
    "also",
    type=click.Choice(["postgres", "mariadb"]),
    multiple=True,
    help="Start this one too; can be repeated.",
)
def up(folder: Path, also: tuple[str, ...]) -> None:
    """Start the servers that do not run yet, and print where they are."""
    from connector.sandbox.stack import Stack  # noqa: PLC0415

    for server in Stack(folder).up(also):
        click.echo(f"{server.name:<9} {server.where}")


@sandbox.command()
@_folder
@click.option("--delete", is_flag=True, help="Delete their data too.")
def down(folder: Path, delete: bool) -> None:
    """End the servers."""
    from connector.sandbox.stack import Stack  # noqa: PLC0415

    stack = Stack(folder)
    recorded = stack.status()
    for name in stack.down():
        click.echo(f"{name:<9} ended")
    if delete and recorded:
        shutil.rmtree(stack.folder)


@sandbox.command()
@_folder
@click.option("--json", "as_json", is_flag=True, help="Everything that is recorded, as JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Say what runs, where, and where it logs."""
    from connector.sandbox.stack import Stack  # noqa: PLC0415

    servers = Stack(folder).status()
    if as_json:
        click.echo(json.dumps([{**asdict(server), "running": runs} for server, runs in servers], indent=2))
        return
    for server, runs in servers:
        state = f"pid {server.process.pid}" if runs else "ended"
        click.echo(f"{server.name:<9} {state:<12} {server.address}  {server.log}")
    if not servers:
        click.echo(f"nothing was started in {folder}")
