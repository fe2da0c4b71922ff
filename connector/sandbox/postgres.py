"""A disposable PostgreSQL server."""

from __future__ import annotations

import signal
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from connector.errors import SandboxError
from connector.fetching.postgres_programs import as_ordinary_user, give_to_ordinary_user, postgres_folder
from connector.sandbox.process import kill_all, working_in
from connector.sandbox.program import Program, exchange
from connector.sandbox.server import Server
from connector.sandbox.settings import POSTGRES_ADMIN, POSTGRES_DATABASE, POSTGRES_SETTINGS

_PROTOCOL_3_0 = 196_608


class PostgresServer(Server):
    """PostgreSQL with one superuser, UTF-8, the C collation and no Unix socket.

    Args:
        folder, port: see `Server`.
        settings: server settings that override `settings.POSTGRES_SETTINGS`.
        die_with_parent: the server ends with this process; see `Program`.
    """

    name = "postgres"
    start_timeout = 60.0
    user, password, database = POSTGRES_ADMIN.user, POSTGRES_ADMIN.password, POSTGRES_DATABASE

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        die_with_parent: bool = False,
    ) -> None:
        super().__init__(folder, port)
        self.data = self.folder / "data"
        self._programs = postgres_folder() / "bin"
        options = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            **POSTGRES_SETTINGS,
            **(settings or {}),
        }
        words = [word for option, value in options.items() for word in ("-c", f"{option}={value}")]
        self.program = Program(
            self.name,
            as_ordinary_user(
                [str(self._programs / "postgres"), "-D", str(self.data), *words],
                die_with_parent=die_with_parent,
            ),
            log=self.folder / "postgres.log",
            die_with_parent=die_with_parent,
        )

    @property
    def dsn(self) -> str:
        """The superuser's address, for libpq."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def prepare(self) -> None:
        """End what is left of a killed postmaster; the first time, create the data folder."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        if not self.program.running:
            self._end_orphans()

    def stop(self) -> None:
        """Shut the server down cleanly without waiting for clients (fast shutdown, SIGINT)."""
        self.program.stop(signal.SIGINT)

    def kill(self) -> None:
        """Send SIGKILL to the postmaster and its backends."""
        self.program.kill()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End the backends of a killed postmaster: a busy one does not notice, and blocks the next postmaster."""
        kill_all(working_in(self.data))

    def answers(self) -> bool:
        """Send a startup message; the server answers R (authentication) when ready, E while it starts or recovers."""
        body = struct.pack(">i", _PROTOCOL_3_0) + f"user\0{self.user}\0database\0{self.database}\0\0".encode()
        return exchange(self.host, self.port, struct.pack(">i", len(body) + 4) + body) == b"R"

    def _initialise(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        give_to_ordinary_user(self.data)
        with TemporaryDirectory() as work:
            secret = Path(work, "password")
            secret.write_text(self.password)
            command = [str(self._programs / "initdb"), "-D", str(self.data), "-U", self.user]
            command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C"]
            done = subprocess.run(
                as_ordinary_user(command),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        if done.returncode:
            raise SandboxError(f"initdb failed\n{done.stdout}", folder=self.data)
