"""A disposable MySQL server."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.errors import SandboxError
from connector.sandbox.mysql_programs import mysql_programs
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program
from connector.sandbox.settings import HOST, MYSQL_ADMIN, MYSQL_SETTINGS
from connector.sandbox.waiting import exchange, wait_until

_START_TIMEOUT = 120.0
_GREETING = b"\x0a"  # protocol version 10, the fifth byte a ready server sends (after length and sequence)


class MySqlServer:
    """MySQL with row images whole, GTIDs on and an administrator without a password.

    Args:
        folder: data, configuration, log; what is there is used again.
        port: default a free one, chosen once for the life of this object.
        settings: over those of `settings.MYSQL_SETTINGS`, e.g. `MYSQL_FAST`; they may change between starts.
        die_with_parent: see `Program`.
    """

    name = "mysql"
    host = HOST
    user, password = MYSQL_ADMIN.user, MYSQL_ADMIN.password

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        die_with_parent: bool = False,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self.settings = {**MYSQL_SETTINGS, **(settings or {})}
        self.data = self.folder / "data"
        self._configuration = self.folder / "my.cnf"
        # A socket's path must be short (108 bytes), which a test's folder may not be.
        self.socket = Path(tempfile.gettempdir(), f"thl-mysql-{self.port}.sock")
        self.program = Program(
            self.name,
            [*mysql_programs().command("mysqld"), f"--defaults-file={self._configuration}"],
            log=self.folder / "mysql.log",
            die_with_parent=die_with_parent,
        )

    @property
    def pid(self) -> int | None:
        """The server's process id."""
        return self.program.pid

    @property
    def dsn(self) -> str:
        """The administrator's address."""
        return f"mysql://{self.user}@{self.host}:{self.port}"

    def start(self) -> None:
        """Start it, making its data folder the first time, and wait until it accepts connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._configuration.write_text(self._options())
        if not (self.data / "mysql.ibd").exists():
            self._initialise()
        self.program.start()
        wait_until(self.program, self._answers, timeout=_START_TIMEOUT)

    def stop(self) -> None:
        """Shut it down cleanly."""
        self.program.stop(timeout=60)

    def kill(self) -> None:
        """`kill -9`."""
        self.program.kill()

    def run_sql(self, sql: str, *, database: str = "") -> str:
        """Run statements as the administrator by the `mysql` client; return its tab-separated output.

        Raises:
            SandboxError: with the client's message.
        """
        client = [*self.client("mysql"), "--batch", "--raw", "--default-character-set=utf8mb4"]
        command = [*client, database] if database else client
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"mysql refused: {done.stderr.strip()}", port=self.port)
        return done.stdout

    def client(self, program: str) -> list[str]:
        """A command of one of MySQL's programs that connects here as the administrator."""
        connect = ["--no-defaults", f"--host={self.host}", f"--port={self.port}", f"--user={self.user}"]
        return [*mysql_programs().command(program), *connect, "--protocol=TCP"]

    def create_user(self, user: str, password: str, privileges: Sequence[str] = ("ALL",)) -> None:
        """Create an account that may come from anywhere, with privileges on everything."""
        account, secret = f"'{user}'@'%'", password.replace("\\", "\\\\").replace("'", "''")
        self.run_sql(
            f"CREATE USER {account} IDENTIFIED BY '{secret}'; GRANT {', '.join(privileges)} ON *.* TO {account}"
        )

    def _answers(self) -> bool:
        return exchange(self.host, self.port, b"", answer_bytes=5)[4:] == _GREETING

    def _initialise(self) -> None:
        command = [*mysql_programs().command("mysqld"), f"--defaults-file={self._configuration}"]
        done = subprocess.run(
            [*command, "--initialize-insecure"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SandboxError(f"mysqld could not make its data folder\n{done.stdout}", folder=self.data)

    def _options(self) -> str:
        options = {
            **mysql_programs().options,
            "datadir": self.data,
            "socket": self.socket,
            "pid_file": self.folder / "mysqld.pid",
            "port": self.port,
            "bind_address": self.host,
            "secure_file_priv": "",
            **self.settings,
        }
        if os.geteuid() == 0:  # mysqld refuses root unless told
            options["user"] = "root"
        return "[mysqld]\n" + "".join(f"{name}={value}\n" for name, value in options.items())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
