"""A disposable schema registry: Apicurio's, which also speaks Confluent's API and keeps everything in memory."""

from __future__ import annotations

import tarfile
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.fetching import maven
from connector.fetching.cache import Cache
from connector.fetching.java import java_home
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program, exchange, wait_until
from connector.sandbox.settings import HOST
from tests.support.servers.settings import REGISTRY

_NAME = f"{REGISTRY.name}-{REGISTRY.version}"


def registry_jar() -> Path:
    """Return the jar to be run; what it needs lies beside it.

    Raises:
        SandboxError: when it cannot be had.
    """

    def install(folder: Path) -> None:
        (archive,) = maven.fetch(f"{_NAME}-{REGISTRY.classifier}", [REGISTRY], transitive=False)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")

    (jar,) = Cache().ensure(_NAME, install).glob("*-runner.jar")
    return jar


_START_TIMEOUT = 120.0
_API = "/apis/ccompat/v7"
_JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class RegistryServer:
    """A registry that forgets everything when it ends.

    Args:
        folder: log and working directory.
        port: default a free one, chosen once for the life of this object.
        die_with_parent: see `Program`.
    """

    name = "registry"
    host = HOST

    def __init__(self, folder: Path, port: int | None = None, *, die_with_parent: bool = False) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        settings = [f"-Dquarkus.http.host={self.host}", f"-Dquarkus.http.port={self.port}"]
        self.program = Program(
            self.name,
            [str(java_home() / "bin" / "java"), *_JVM, *settings, "-jar", str(registry_jar())],
            log=self.folder / "registry.log",
            die_with_parent=die_with_parent,
        )

    @property
    def url(self) -> str:
        """The address of Confluent's API."""
        return f"http://{self.host}:{self.port}{_API}"

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return self.program.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program.start()
        wait_until(self.program, self._answers, timeout=_START_TIMEOUT)

    def stop(self) -> None:
        """End it cleanly."""
        self.program.stop()

    def kill(self) -> None:
        """`kill -9`."""
        self.program.kill()

    def _answers(self) -> bool:
        asked = f"GET {_API}/subjects HTTP/1.0\r\nHost: {self.host}\r\n\r\n".encode()
        return exchange(self.host, self.port, asked, answer_bytes=12)[8:] == b" 200"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
