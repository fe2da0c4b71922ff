"""A disposable Kafka broker: one node, KRaft mode, no ZooKeeper, no shell scripts."""

from __future__ import annotations

import base64
import struct
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching.jars import kafka_jars
from connector.fetching.java import java_home
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program, exchange
from connector.sandbox.server import Server
from connector.sandbox.settings import KAFKA_HEAP_MEGABYTES, KAFKA_SETTINGS

_NODE = 1
# ApiVersions, version 0 (key 18, https://kafka.apache.org/protocol): correlation id 7, no client id. The answer
# repeats the correlation id, followed by 0: no error.
_HELLO = struct.pack(">ihhih", 10, 18, 0, 7, -1)
_WELCOME = struct.pack(">ih", 7, 0)
# Warnings, start and stop; without the broker's attempts to connect to itself meanwhile.
_LOGGING = """status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %-5p %m (%c{1})%n%throwable
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
logger.connection.name=org.apache.kafka.clients.NetworkClient
logger.connection.level=error
"""
# Favours a fast start and little memory over throughput.
_JVM = ["-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"]


class KafkaBroker(Server):
    """Broker and controller in one process, with settings for one node.

    Args:
        folder, port: see `Server`.
        settings: broker settings that override `settings.KAFKA_SETTINGS`, e.g. `message.max.bytes`.
        heap_megabytes: maximum heap.
        die_with_parent: the broker ends with this process; see `Program`.
    """

    name = "kafka"
    start_timeout = 120.0

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        heap_megabytes: int = KAFKA_HEAP_MEGABYTES,
        die_with_parent: bool = False,
    ) -> None:
        super().__init__(folder, port)
        self.settings = {**KAFKA_SETTINGS, **(settings or {})}
        self.data = self.folder / "data"
        self._controller_port = free_port()
        self._properties = self.folder / "server.properties"
        self._logging = self.folder / "log4j2.properties"
        jars = kafka_jars()
        self._java = [
            str(java_home() / "bin" / "java"),
            *_JVM,
            f"-Xmx{heap_megabytes}m",
            f"-Dlog4j2.configurationFile={self._logging}",
            "-cp",
            ":".join(map(str, jars)),
        ]
        self.program = Program(
            self.name,
            [*self._java, "kafka.Kafka", str(self._properties)],
            log=self.folder / "kafka.log",
            die_with_parent=die_with_parent,
        )

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    def prepare(self) -> None:
        """Write the configuration; the first time, format the data folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._logging.write_text(_LOGGING)
        self._properties.write_text(self._configuration())
        if not (self.data / "meta.properties").exists():
            self._format()

    def answers(self) -> bool:
        """Return True if the broker answers a request for its protocol's versions."""
        return exchange(self.host, self.port, _HELLO, answer_bytes=10)[4:] == _WELCOME

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # one argument: one id in 64 begins with a dash, and a separate argument would be read as an option
        identity = f"--cluster-id={cluster}"
        command = [*self._java, "kafka.tools.StorageTool", "format", identity, "-c", str(self._properties)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"Kafka could not format its data folder\n{done.stdout}", folder=self.data)

    def _configuration(self) -> str:
        properties = {
            "process.roles": "broker,controller",
            "node.id": _NODE,
            "controller.quorum.voters": f"{_NODE}@{self.host}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{self.host}:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            **self.settings,
        }
        return "".join(f"{name}={value}\n" for name, value in properties.items())
