"""`thl archive`: keep the source's binary log in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--until-now", is_flag=True, help="End where the log ends now, instead of waiting for more.")
@click.option("--server-id", type=click.IntRange(1, 2**32 - 1), help="Ours; by default source.server_id + 1.")
@click.option("--verify", is_flag=True, help="Read the archive through instead: checksums, places, missing files.")
def archive(config: Config, folder: Path, until_now: bool, server_id: int | None, verify: bool) -> None:
    """Keep the source's binary log in FOLDER, byte for byte, until SIGTERM or SIGINT.

    Begins with the oldest file that the source has, and goes on where it ended. A file gets its name when it is whole
    and safe on the disk; `thl binlog FOLDER` prints it, and `source.archive` lets a producer read from it what the
    source has purged.
    """
    import signal
    from threading import Event

    from connector.clock import SystemClock
    from connector.commands.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.mysql.archive.archive import Archive
    from connector.mysql.archive.archiver import Archiver

    kept = Archive(folder)
    if verify:
        sizes = [size for _, size in kept.verify()]
        if not sizes:
            raise ConfigError("there is no binary log file in the folder: nothing was read", folder=folder)
        click.echo(f"{len(sizes)} files, {sum(sizes)} bytes: nothing is wrong", err=True)
        return
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    ours = server_id or config.source.server_id % (2**32 - 1) + 1
    config = config.model_copy(update={"source": config.source.model_copy(update={"server_id": ours})})
    warn_of_unverified(config, "source")
    end = Archiver(config, kept, SystemClock(), stop, follow=not until_now).run()
    click.echo(f"archived up to {end}" if end else "nothing was archived", err=True)
