"""`thl archive`: copies the source's binary log to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.ending import stop_at_signals
from connector.commands.grammar.options import configured
from connector.logs import echo

if TYPE_CHECKING:
    from connector.config.model import Config


@command(
    earlier={"--until-now": "--to-now"},
    examples={
        "thl archive /var/lib/thl/binlog": "Copy the binary log, and follow it.",
        "thl archive /var/lib/thl/binlog --verify": "Check the files that are there.",
    },
)
@configured()
@click.argument("folder", type=click.Path(path_type=Path))
@option("--to-now", is_flag=True, help="End at the current end of the binary log; do not wait for more.")
@option(
    "--server-id",
    type=click.IntRange(1, 2**32 - 1),
    help="Replica server ID of this connection; by default source.server_id + 1.",
)
@option("--verify", is_flag=True, help="Check the archive instead: checksums, positions, missing files.")
def archive(config: Config, folder: Path, to_now: bool, server_id: int | None, verify: bool) -> None:
    """Copy the source's binary log to FOLDER, byte for byte, until SIGTERM or SIGINT.

    Begins with the oldest file that the source has; when started again, continues where it ended. A file gets its name
    when it is complete and synced to disk. `thl binlog FOLDER` prints the archive, and with source.archive a producer
    reads from it what the source has purged.
    """

    from connector.clock import SystemClock
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.mysql.archive.archive import Archive
    from connector.mysql.archive.archiver import Archiver

    kept = Archive(folder)
    if verify:
        sizes = [size for _, size in kept.verify()]
        if not sizes:
            raise ConfigError("the folder has no binary log file", folder=folder)
        echo(f"{len(sizes)} files, {sum(sizes)} bytes: no damage")
        return
    stop = stop_at_signals()
    replica_id = server_id or config.source.server_id % (2**32 - 1) + 1
    config = config.model_copy(update={"source": config.source.model_copy(update={"server_id": replica_id})})
    warn_of_unverified(config, "source")
    end = Archiver(config, kept, SystemClock(), stop, follow=not to_now).run()
    echo(f"archived up to {end}" if end else "nothing was archived")
