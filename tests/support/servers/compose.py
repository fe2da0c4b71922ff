"""The servers of docker/compose.yaml, with the same shape as the sandbox's own.

They have the names, users and ports of `settings.py`; docker starts, stops and kills them.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.errors import SandboxError
from connector.sandbox.settings import HOST, MARIADB_ADMIN, MYSQL_ADMIN, POSTGRES_ADMIN, POSTGRES_DATABASE, Account
from tests.support.servers.settings import COMPOSE_PASSWORD, COMPOSE_PORTS

FILE = Path(__file__).parents[3] / "docker" / "compose.yaml"


@dataclass(frozen=True, slots=True)
class ComposeServer:
    """One service of the compose file, listening on a fixed port of this machine."""

    name: str
    account: Account
    database: str = ""

    @property
    def host(self) -> str:
        """The address on which its port is published."""
        return HOST

    @property
    def port(self) -> int:
        """The published port."""
        return COMPOSE_PORTS[self.name]

    @property
    def user(self) -> str:
        """The administrator's name."""
        return self.account.user

    @property
    def password(self) -> str:
        """The administrator's password."""
        return self.account.password or os.environ.get(*COMPOSE_PASSWORD)

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def dsn(self) -> str:
        """The administrator's address, for MySQL and MariaDB without the password."""
        if self.name == "postgres":
            return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"
        return f"mysql://{self.user}@{self.host}:{self.port}"

    def start(self) -> None:
        """Start the service and wait until its health check passes."""
        _compose("up", "--detach", "--wait", self.name)

    def stop(self) -> None:
        """Stop it cleanly."""
        _compose("stop", self.name)

    def kill(self) -> None:
        """`kill -9`."""
        _compose("kill", "--signal=SIGKILL", self.name)

    def run_sql(self, sql: str, *, database: str = "") -> str:
        """Run statements as the administrator by the client inside the service's container."""
        client = "mariadb" if self.name == "mariadb" else "mysql"
        # The container's own environment has the password, by which no command line has it.
        login = ["sh", "-c", f'MYSQL_PWD="${self.name.upper()}_ROOT_PASSWORD" exec {client} "$@"', client]
        options = [f"--user={self.user}", "--batch", "--raw", "--default-character-set=utf8mb4"]
        return _compose("exec", "--no-TTY", self.name, *login, *options, *([database] if database else []), given=sql)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it running: it was not started here."""


MYSQL = ComposeServer("mysql", MYSQL_ADMIN)
MARIADB = ComposeServer("mariadb", MARIADB_ADMIN)
POSTGRES = ComposeServer("postgres", POSTGRES_ADMIN, POSTGRES_DATABASE)
KAFKA = ComposeServer("kafka", Account(""))


def _compose(*words: str, given: str = "") -> str:
    command = ["docker", "compose", "--file", str(FILE), *words]
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SandboxError(f"docker could not be started: {error}") from error
    if done.returncode:
        raise SandboxError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
