"""The common part of the MySQL and MariaDB servers: protocol, configuration, client, password."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from connector.errors import SandboxError
from connector.sandbox.program import Program, exchange
from connector.sandbox.server import Server

PASSWORD_FILE = "password"  # noqa: S105 - a name
_GREETING = b"\x0a"  # protocol version 10, the fifth byte a ready server sends (after length and sequence)


class Mysqld(Server):
    """A server whose administrator has a random password, created with the data folder.

    The folder's file `password` holds it, and `client.cnf` the options for command line clients; only the folder's
    owner can read them. The password is on no command line, because every user can see those.

    Args:
        folder, port: see `Server`.
        settings: server settings; may change between starts.
        server, client: the programs, with their first arguments.
        environment: variables that the server gets in addition to those of this process.
        die_with_parent: the server ends with this process; see `Program`.
    """

    start_timeout = 120.0
    user: ClassVar[str]
    client_options: ClassVar[Sequence[str]] = ()  # further lines of the clients' option file
    group: ClassVar[str] = "mysqld"  # group of the option file
    made: ClassVar[str] = "mysql"  # exists in a complete data folder

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
        super().__init__(folder, port)
        self.settings = dict(settings)
        self.data = self.folder / "data"
        self._temporary = self.folder / "tmp"  # not shared: MariaDB deletes other servers' temporary files at its start
        self.configuration = self.folder / "my.cnf"
        self.client_configuration = self.folder / "client.cnf"
        # A socket's path has at most 108 bytes; a test's folder can be longer.
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
        """Create the data folder with the administrator and the password, before any client can connect.

        Raises:
            SandboxError: the server reported an error; the message has its output.
        """

    @abstractmethod
    def folders(self) -> Mapping[str, object]:
        """Return the options for the server's own files, and others that `settings` may override."""

    @property
    def dsn(self) -> str:
        """The administrator's address, without the password."""
        return f"mysql://{self.user}@{self.host}:{self.port}"

    @property
    def password(self) -> str:
        """The administrator's password, created with the data folder.

        Raises:
            SandboxError: the data folder exists, but has no password file.
        """
        file = self.folder / PASSWORD_FILE
        if self._is_made and not file.exists():
            raise SandboxError(
                f"the password file of {self.name}'s administrator is missing: it was deleted, or an older version "
                "created the data folder",
                file=file,
                hint="delete the folder: `thl sandbox down --delete`, or by hand",
            )
        return kept_password(file)

    def prepare(self) -> None:
        """Write the options of server and clients; the first time, create the data folder."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(self._options())
        write_private(self.client_configuration, self._client_options())
        if not self._is_made:
            self.initialise()

    def stop(self) -> None:
        """Shut the server down cleanly."""
        self.program.stop(timeout=60)

    def run_sql(self, sql: str, *, database: str = "") -> str:
        """Run statements as the administrator with the command line client; return its tab-separated output.

        Raises:
            SandboxError: a statement failed; the message is the client's.
        """
        options = ["--batch", "--raw", "--default-character-set=utf8mb4"]
        command = [*self.connecting(self._client), *options, *([database] if database else [])]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"{self.name} refused: {done.stderr.strip()}", port=self.port)
        return done.stdout

    def connecting(self, program: Sequence[str]) -> list[str]:
        """Return a client's command with the arguments to connect to this server as the administrator."""
        return [*program, f"--defaults-file={self.client_configuration}"]

    @contextmanager
    def statements(self, sql: str) -> Iterator[Path]:
        """Yield a file with statements, readable by this user only; it is deleted at the end of the context."""
        with tempfile.NamedTemporaryFile("w", dir=self._temporary, suffix=".sql") as file:
            file.write(sql)
            file.flush()
            yield Path(file.name)

    def make_data(self, command: Sequence[str], given: str = "") -> None:
        """Create the data folder by running a command with an input.

        Raises:
            SandboxError: the command failed; the message has its output.
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

    def answers(self) -> bool:
        """Return True if the server greets a connection."""
        return exchange(self.host, self.port, b"", answer_bytes=5)[4:] == _GREETING

    def _options(self) -> str:
        options = {
            "datadir": self.data,
            "tmpdir": self._temporary,
            "socket": self.socket,
            "pid_file": self.folder / f"{self.name}.pid",
            "port": self.port,
            "bind_address": self.host,
            **self.folders(),
            **self.settings,
        }
        if os.geteuid() == 0:  # the server refuses to run as root without this option
            options["user"] = "root"
        return f"[{self.group}]\n" + "".join(f"{name}={value}\n" for name, value in options.items())

    def _client_options(self) -> str:
        where = [f"host={self.host}", f"port={self.port}", "protocol=tcp", f"user={self.user}"]
        return "\n".join(["[client]", *where, f"password={self.password}", *self.client_options, ""])


def kept_password(file: Path) -> str:
    """Return the password in a file; create the file with a random password if it is missing."""
    if not file.exists():
        write_private(file, secrets.token_hex(16))
    return file.read_text()


def write_private(file: Path, text: str) -> None:
    """Replace a file atomically by one that only this user can read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")  # mode 0600 from the first byte
    with os.fdopen(handle, "w") as new:
        new.write(text)
    Path(name).replace(file)
