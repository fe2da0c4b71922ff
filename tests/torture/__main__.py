"""`python -m tests.torture`: many values three ways, in every setting; what was compared, and what was not equal."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from connector.sandbox.mysql import MySqlServer
from tests.torture.three_ways import SETTINGS, compare


@click.command()
@click.option("--rows", default=400, show_default=True, help="Rows to insert in each setting.")
@click.option("--seed", default=1, show_default=True)
def main(*, rows: int, seed: int) -> None:
    """Compare; exit 1 when anything is not equal."""
    values = 0
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, MySqlServer(Path(folder) / "mysql") as server:
        for setting in SETTINGS:
            count = compare(server, setting, rows, seed)
            click.echo(f"{setting}: {count.values} values in {count.images} images, {len(count.wrong)} not equal")
            values += count.values
            wrong += [f"{setting}: {text}" for text in count.wrong]
    click.echo("\n".join(wrong[:20]) + ("\n" if wrong else "") + f"{values} values three ways, {len(wrong)} not equal")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
