"""The common part of the MySQL and MariaDB servers: protocol, configuration, client, password."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from connector.errors import SandboxError
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program, exchange, wait_until
from connector.sandbox.settings import HOST

PASSWORD_FILE = "password"  # noqa: S105 - a name
_START_TIMEOUT = 120.0
_GREETING = b"\x0a"  # protocol version 10, the fifth byte a ready server sends (after length and sequence)


class Mysqld(ABC):
    """A server whose administrator has a random password of this data folder.

    `password` in the folder has it, and `client.cnf` what a command line client needs to connect; both are for the
    folder's owner alone. No command line has it: every user sees those.

    Args:
        folder: data, configuration, log; what is there is used again.
        port: default a free one, chosen once for the life of this object.
        settings: of its configuration; they may change between starts.
        server, client: the programs, with their first arguments.
        environment: added to ours for the server.
        die_with_parent: see `Program`.
    """

    name: ClassVar[str]
    host = HOST
    user: ClassVar[str]
    client_options: ClassVar[Sequence[str]] = ()  # what else its clients need, as lines of an option file
    group: ClassVar[str] = "mysqld"  # of the configuration
    made: ClassVar[str] = "mysql"  # is in the data folder once that is made

    def __init__(
        self,
        folder: Path,
        port: int | None,
        settings: Mapping[str, str],
        *,
        server: Sequence[str],
        client: Sequence[str],
        environment: Mapping[str, str] | None = None,
        die_with_parent: bool,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self.settings = dict(settings)
        self.data = self.folder / "data"
        self._temporary = self.folder / "tmp"  # its own: a MariaDB that starts deletes what others have in a shared one
        self.configuration = self.folder / "my.cnf"
        self.client_configuration = self.folder / "client.cnf"
        # A socket's path must be short (108 bytes), which a test's folder may not be.
        self.socket = Path(tempfile.gettempdir(), f"thl-{self.name}-{self.port}.sock")
        self.server = [*server, f"--defaults-file={self.configuration}"]
        self._client = list(client)
        self._environment = dict(environment or {})
        self.program = Program(
            self.name,
            self.server,
            log=self.folder / f"{self.name}.log",
            environment=self._environment,
            die_with_parent=die_with_parent,
        )

    @abstractmethod
    def initialise(self) -> None:
        """Make the data folder, and in it the administrator with his password, before anybody can connect.

        Raises:
            SandboxError: with what the server says.
        """

    @abstractmethod
    def places(self) -> Mapping[str, object]:
        """Options that say where the server's own files are, and what else is to be set before `settings`."""

    @property
    def pid(self) -> int | None:
        """The server's process id."""
        return self.program.pid

    @property
    def dsn(self) -> str:
        """The administrator's address, without the password."""
        return f"mysql://{self.user}@{self.host}:{self.port}"

    @property
    def password(self) -> str:
        """The administrator's password, made with the data folder.

        Raises:
            SandboxError: the data folder is there without one.
        """
        file = self.folder / PASSWORD_FILE
        if self._is_made and not file.exists():
            raise SandboxError(
                f"there is no password of {self.name}'s administrator: its file was deleted, or the data folder is "
                "of a version that gave none",
                file=file,
                hint="delete the folder: `thl sandbox down --delete`, or by hand",
            )
        return kept_password(file)

    def start(self) -> None:
        """Start it, making its data folder the first time, and wait until it accepts connections."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(self._options())
        write_private(self.client_configuration, self._client_options())
        if not self._is_made:
            self.initialise()
        self.program.start()
        wait_until(self.program, self._answers, timeout=_START_TIMEOUT)

    def stop(self) -> None:
        """Shut it down cleanly."""
        self.program.stop(timeout=60)

    def kill(self) -> None:
        """`kill -9`."""
        self.program.kill()

    def run_sql(self, sql: str, *, database: str = "") -> str:
        """Run statements as the administrator by the command line client; return its tab-separated output.

        Raises:
            SandboxError: with the client's message.
        """
        options = ["--batch", "--raw", "--default-character-set=utf8mb4"]
        command = [*self.connecting(self._client), *options, *([database] if database else [])]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"{self.name} refused: {done.stderr.strip()}", port=self.port)
        return done.stdout

    def connecting(self, program: Sequence[str]) -> list[str]:
        """A client's command with the arguments by which it connects here as the administrator."""
        return [*program, f"--defaults-file={self.client_configuration}"]

    @contextmanager
    def statements(self, sql: str) -> Iterator[Path]:
        """A file with statements for as long as the context lasts; nobody else may read it."""
        with tempfile.NamedTemporaryFile("w", dir=self._temporary, suffix=".sql") as file:
            file.write(sql)
            file.flush()
            yield Path(file.name)

    def make_data(self, command: Sequence[str], given: str = "") -> None:
        """Make the data folder by a command and what it reads.

        Raises:
            SandboxError: with what it says.
        """
        done = subprocess.run(
            command,
            input=given,
            env={**os.environ, **self._environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SandboxError(f"{self.name} could not make its data folder\n{done.stdout}", folder=self.data)

    @property
    def _is_made(self) -> bool:
        return (self.data / self.made).exists()

    def _answers(self) -> bool:
        return exchange(self.host, self.port, b"", answer_bytes=5)[4:] == _GREETING

    def _options(self) -> str:
        options = {
            "datadir": self.data,
            "tmpdir": self._temporary,
            "socket": self.socket,
            "pid_file": self.folder / f"{self.name}.pid",
            "port": self.port,
            "bind_address": self.host,
            **self.places(),
            **self.settings,
        }
        if os.geteuid() == 0:  # it refuses root unless told
            options["user"] = "root"
        return f"[{self.group}]\n" + "".join(f"{name}={value}\n" for name, value in options.items())

    def _client_options(self) -> str:
        where = [f"host={self.host}", f"port={self.port}", "protocol=tcp", f"user={self.user}"]
        return "\n".join(["[client]", *where, f"password={self.password}", *self.client_options, ""])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def kept_password(file: Path) -> str:
    """The password in a file; a new random one where there is no file yet."""
    if not file.exists():
        write_private(file, secrets.token_hex(16))
    return file.read_text()


def write_private(file: Path, text: str) -> None:
    """Replace a file in one step by one that nobody else may read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")  # mode 0600 from the first byte
    with os.fdopen(handle, "w") as new:
        new.write(text)
    Path(name).replace(file)
