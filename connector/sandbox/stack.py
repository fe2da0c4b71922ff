"""Several servers in one folder, started together and found again by a later process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox import state
from connector.sandbox.fetching.cache import locked
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.server import Server
from connector.sandbox.state import RunningServer

ALWAYS = ("mysql", "kafka")
ON_REQUEST = ("postgres", "mariadb")


class Stack:
    """MySQL and Kafka, and on request PostgreSQL and MariaDB.

    What `up` starts outlives this process; `down`, here or in another process, ends it. Data stays in the
    folder, and so do the ports: a stack that comes up again has the same addresses.

    Args:
        folder: one subfolder a server, and the record of what runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def up(self, also: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None) -> list[RunningServer]:
        """Start what does not run yet.

        Args:
            also: names out of `ON_REQUEST`.
            tell: is given what is being waited for.

        Raises:
            SandboxError: when one does not start; those before it run and are recorded.
        """
        with locked(self.folder / ".lock"):
            known = {server.name: server for server in state.load(self.folder)}
            names = list(dict.fromkeys([*ALWAYS, *also]))
            for number, name in enumerate(names, start=1):
                before = known.get(name)
                if before is None or not before.process.running:
                    tell(f"{name} ({number} of {len(names)}): fetching its programs, where they are not there yet")
                    server, address = self._make(name, before.port if before else None)
                    tell(f"{name} ({number} of {len(names)}): starting")
                    known[name] = self._start(name, server, address)
                    state.save(self.folder, list(known.values()))
            return list(known.values())

    def down(self) -> list[str]:
        """End every recorded server that still runs; return their names."""
        with locked(self.folder / ".lock"):
            return [server.name for server in state.load(self.folder) if server.stop()]

    def status(self) -> list[tuple[RunningServer, bool]]:
        """Every recorded server, and whether it runs."""
        return [(server, server.process.running) for server in state.load(self.folder)]

    def _start(self, name: str, server: Server, address: str) -> RunningServer:
        try:
            server.start()
        except BaseException:  # an interrupt too: what is not recorded must not run on
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
            case "postgres":
                postgres = PostgresServer(folder, port)
                return postgres, postgres.dsn
            case "mariadb":
                mariadb = MariaDbServer(folder, port)
                return mariadb, mariadb.dsn
            case _:
                raise SandboxError(f"there is no server called {name!r}")
