"""A disposable schema registry: Apicurio's, which also speaks Confluent's API and keeps everything in memory."""

from __future__ import annotations

import tarfile
from pathlib import Path

from connector.fetching import maven
from connector.fetching.cache import Cache
from connector.fetching.java import java_home
from connector.sandbox.program import Program, exchange
from connector.sandbox.server import Server
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


_API = "/apis/ccompat/v7"
_JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class RegistryServer(Server):
    """A registry that forgets everything when it ends.

    Args:
        folder, port: see `Server`.
        die_with_parent: see `Program`.
    """

    name = "registry"
    start_timeout = 120.0

    def __init__(self, folder: Path, port: int | None = None, *, die_with_parent: bool = False) -> None:
        super().__init__(folder, port)
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

    def answers(self) -> bool:
        """Return True if it lists its subjects."""
        asked = f"GET {_API}/subjects HTTP/1.0\r\nHost: {self.host}\r\n\r\n".encode()
        return exchange(self.host, self.port, asked, answer_bytes=12)[8:] == b" 200"
