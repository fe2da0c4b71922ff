"""Starts several servers in one folder; a later process can find and stop them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching.cache import locked
from connector.sandbox import state
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.server import Server
from connector.sandbox.state import RunningServer

ALWAYS = ("mysql", "kafka")
_TARGET_SERVER_ID = {"server_id": "3"}  # a server that shows the source's id would ignore the source's events


class Stack:
    """Starts and stops MySQL and Kafka, and on request a server for the target.

    Servers that `up` starts outlive this process; `down` ends them, also from another process. Data and ports stay in
    the folder: a stack that is started again has the same addresses.

    Args:
        folder: folder with a subfolder for each server, and the record of the running servers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def up(self, also: Iterable[str] = (), progress: Callable[[str], None] = lambda _: None) -> list[RunningServer]:
        """Start the servers that do not run yet: MySQL, Kafka, and those that this folder has had before.

        Args:
            also: others to start, of those of `settings.TARGETS`.
            progress: called with a line about the current step.

        Raises:
            SandboxError: a server does not start; those started before it run and are recorded.
        """
        with locked(self.folder / ".lock"):
            known = {server.name: server for server in state.load(self.folder)}
            names = list(dict.fromkeys([*ALWAYS, *known, *also]))
            for number, name in enumerate(names, start=1):
                before = known.get(name)
                if before is None or not before.process.running:
                    progress(f"{name} ({number} of {len(names)}): fetching its programs, if they are missing")
                    server, address = self._make(name, before.port if before else None)
                    progress(f"{name} ({number} of {len(names)}): starting")
                    known[name] = self._start(name, server, address)
                    state.save(self.folder, list(known.values()))
            return list(known.values())

    def down(self) -> list[str]:
        """Stop every recorded server that still runs; return their names."""
        with locked(self.folder / ".lock"):
            return [server.name for server in state.load(self.folder) if server.stop()]

    def status(self) -> list[tuple[RunningServer, bool]]:
        """Return every recorded server, and True if it runs."""
        return [(server, server.process.running) for server in state.load(self.folder)]

    def _start(self, name: str, server: Server, address: str) -> RunningServer:
        try:
            server.start()
        except BaseException:  # also on an interrupt: a server that is not recorded must not stay running
            server.kill()
            raise
        return RunningServer(
            name=name,
            process=server.program.process,
            address=address,
            port=server.port,
            folder=str(server.folder),
            log=str(server.program.log),
            stop_signal=signal.SIGINT if name == "postgres" else signal.SIGTERM,
        )

    def _make(self, name: str, port: int | None) -> tuple[Server, str]:
        folder = self.folder / name
        match name:
            case "mysql":
                mysql = MySqlServer(folder, port)
                return mysql, mysql.dsn
            case "kafka":
                kafka = KafkaBroker(folder, port)
                return kafka, kafka.bootstrap
            case "mysql-target":
                other = MySqlServer(folder, port, _TARGET_SERVER_ID)
                return other, other.dsn
            case "postgres":
                postgres = PostgresServer(folder, port)
                return postgres, postgres.dsn
            case "mariadb":
                mariadb = MariaDbServer(folder, port)
                return mariadb, mariadb.dsn
            case _:
                raise SandboxError(f"there is no server called {name!r}")
