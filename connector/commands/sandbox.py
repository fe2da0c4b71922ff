"""`thl sandbox up|down|status`: disposable servers on this machine, to try things on."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import click

from connector.commands.grammar.command import JSON, Command, option
from connector.commands.grammar.options import text_or_json
from connector.sandbox.settings import TARGETS

_folder = option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("sandbox-data"),
    show_default=True,
    help="Folder for data, logs and the list of running servers.",
)


@click.group()
def sandbox() -> None:
    """Start and stop disposable MySQL and Kafka on this machine, without docker and without root."""


@sandbox.command(cls=Command, earlier={"--with": "--target"})
@_folder
@option(
    "--target",
    type=click.Choice(list(TARGETS)),
    default="sqlite",
    show_default=True,
    help="The target that thl.yaml names; its server is started, too.",
)
def up(folder: Path, target: str) -> None:
    """Start the servers that do not run yet, print their addresses, and write a thl.yaml for them.

    The programs that a server needs are fetched the first time.
    """
    from rich.console import Console

    from connector.sandbox import first_steps
    from connector.sandbox.stack import Stack

    stack = Stack(folder)
    with Console(stderr=True).status("looking for what runs") as line:
        servers = stack.up(filter(None, [TARGETS[target]]), progress=line.update)
    for server in servers:
        click.echo(f"{server.name:<12} {server.where}")
    first_steps.write(stack.folder, servers, target)
    click.echo(f"\n{folder / first_steps.CONFIGURATION} is for them. Next, the last two in terminals of their own:\n")
    for command in first_steps.commands(stack.folder):
        click.echo(f"  {command}")


@sandbox.command(cls=Command)
@_folder
@option("--delete", is_flag=True, help="Delete their data, too.")
def down(folder: Path, delete: bool) -> None:
    """Stop the servers."""
    from connector.sandbox.stack import Stack

    stack = Stack(folder)
    recorded = stack.status()
    for name in stack.down():
        click.echo(f"{name:<12} ended")
    if delete and recorded:
        shutil.rmtree(stack.folder)


@sandbox.command(cls=Command, earlier=JSON)
@_folder
@text_or_json("One JSON array with everything that is recorded, instead of text.")
def status(folder: Path, as_json: bool) -> None:
    """Print which servers run, their addresses and their log files."""
    from connector.sandbox.stack import Stack

    servers = Stack(folder).status()
    if as_json:
        click.echo(json.dumps([{**asdict(server), "running": runs} for server, runs in servers], indent=2))
        return
    for server, runs in servers:
        state = f"pid {server.process.pid}" if runs else "ended"
        click.echo(f"{server.name:<12} {state:<12} {server.address}  {server.log}")
    if not servers:
        click.echo(f"nothing was started in {folder}")
