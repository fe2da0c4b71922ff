"""`thl demo`: replication from an empty start, on real servers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from connector.commands.grammar.command import command, option

DIFFERENT = 1


@command(examples={"thl demo --seconds 20": "A shorter load."})
@option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder for servers, logs and target; by default a new one.",
)
@option("--seconds", type=float, default=35, show_default=True, help="Duration of the load.")
@option("--rows", type=int, default=200_000, show_default=True, help="Rows of the one huge transaction.")
def demo(folder: Path | None, seconds: float, rows: int) -> None:
    """Replicate a shop from MySQL to SQLite under load, kill processes, and compare source and target."""
    from rich.console import Console

    from connector.demo.scenario import Scale
    from connector.demo.screen import show

    folder = folder or Path(tempfile.mkdtemp(prefix="thl-demo-"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"--folder {folder} cannot be made: {error.strerror}") from error
    equal = show(folder, Scale(seconds=seconds, huge=rows), Console(highlight=False))
    sys.exit(0 if equal else DIFFERENT)
