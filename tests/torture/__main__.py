"""`python -m tests.torture`: many values three ways, in every setting; prints counts and differences."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from connector.fetching.versions import MARIADB_VERSION
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from tests.support.servers.settings import MARIADB_OLDER
from tests.torture.three_ways import MARIADB_SETTINGS, SETTINGS, compare


@click.command()
@click.option("--rows", default=400, show_default=True, help="Rows to insert in each setting.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--mariadb", type=click.Choice([MARIADB_VERSION, MARIADB_OLDER]), help="This MariaDB, instead of a MySQL."
)
def main(*, rows: int, seed: int, mariadb: str | None) -> None:
    """Compare; exit 1 if anything differs."""
    values = 0
    wrong: list[str] = []
    settings = MARIADB_SETTINGS if mariadb else SETTINGS
    if mariadb == MARIADB_OLDER:  # FULL_NODUP is 11.4's
        settings = tuple(setting for setting in settings if setting.row_image != "FULL_NODUP")
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder) / "server", mariadb) as server:
        for setting in settings:
            count = compare(server, setting, rows, seed)
            click.echo(f"{setting}: {count.values} values in {count.images} images, {len(count.wrong)} not equal")
            values += count.values
            wrong += [f"{setting}: {text}" for text in count.wrong]
    click.echo("\n".join(wrong[:20]) + ("\n" if wrong else "") + f"{values} values three ways, {len(wrong)} not equal")
    sys.exit(1 if wrong else 0)


def _server(folder: Path, mariadb: str | None) -> MySqlServer | MariaDbServer:
    return MariaDbServer(folder, version=mariadb) if mariadb else MySqlServer(folder)


if __name__ == "__main__":
    main()
