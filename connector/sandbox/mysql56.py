"""A disposable MySQL 5.6 server. MariaDB's client speaks to it: MySQL's own no longer knows its passwords."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.errors import SandboxError
from connector.sandbox.mariadb_programs import mariadb_folder
from connector.sandbox.mysql56_programs import mysql56_folder
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program
from connector.sandbox.settings import HOST, MYSQL56_SETTINGS, MYSQL_ADMIN
from connector.sandbox.waiting import exchange, wait_until

_START_TIMEOUT = 120.0
_GREETING = b"\x0a"  # protocol version 10


class MySql56Server:
    """MySQL 5.6 with whole row images, no GTIDs, and an administrator without a password.

    Args:
        folder: data, configuration, log; what is there is used again.
        port: default a free one, chosen once for the life of this object.
        settings: over those of `settings.MYSQL56_SETTINGS`, e.g. `MYSQL56_GTIDS`.
        die_with_parent: see `Program`.
    """

    name = "mysql-5.6"
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
        self.settings = {**MYSQL56_SETTINGS, **(settings or {})}
        self.data = self.folder / "data"
        self._configuration = self.folder / "my.cnf"
        # A socket's path must be short (108 bytes), which a test's folder may not be.
        self.socket = Path(tempfile.gettempdir(), f"thl-mysql56-{self.port}.sock")
        self._programs = mysql56_folder()
        self.program = Program(
            self.name,
            [str(self._programs / "mysqld"), f"--defaults-file={self._configuration}"],
            log=self.folder / "mysql.log",
            environment={"LD_LIBRARY_PATH": str(self._programs)},
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
        if not (self.data / "mysql").exists():
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
        """Run statements as the administrator by MariaDB's `mysql` client; return its tab-separated output.

        Raises:
            SandboxError: with the client's message.
        """
        connect = ["--no-defaults", f"--host={self.host}", f"--port={self.port}", f"--user={self.user}"]
        client = [str(mariadb_folder() / "bin" / "mariadb"), *connect, "--protocol=TCP", "--batch", "--raw"]
        command = [*client, "--default-character-set=utf8mb4", *([database] if database else [])]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"MySQL 5.6 refused: {done.stderr.strip()}", port=self.port)
        return done.stdout

    def _answers(self) -> bool:
        return exchange(self.host, self.port, b"", answer_bytes=5)[4:] == _GREETING

    def _initialise(self) -> None:
        """Copy the data folder that came with it, which is empty, but not the server's UUID."""
        shutil.copytree(self._programs / "data" / "mysql", self.data, ignore=shutil.ignore_patterns("auto.cnf"))

    def _options(self) -> str:
        options = {
            "basedir": self._programs,
            "lc_messages_dir": self._programs / "share",
            "character_sets_dir": self._programs / "share" / "charsets",
            "datadir": self.data,
            "socket": self.socket,
            "pid_file": self.folder / "mysqld.pid",
            "port": self.port,
            "bind_address": self.host,
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
