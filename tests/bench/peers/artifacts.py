"""The peers' jars, with the versions that resolve together; fetched as the sandbox fetches its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching import maven
from connector.fetching.versions import KAFKA_VERSION, Artifact
from tests.bench.peers.peer import Unavailable

DEBEZIUM_VERSION = "3.6.1.Final"
# The newest whose dependencies are all to be had.
JDBC_SINK_VERSION = "3.5.0.Final"

_CONNECT = (
    Artifact("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    Artifact("org.apache.kafka", "connect-json", KAFKA_VERSION),
    Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
_SOURCE = (Artifact("io.debezium", "debezium-connector-mysql", DEBEZIUM_VERSION),)
_SINK = (Artifact("io.debezium", "debezium-connector-jdbc", JDBC_SINK_VERSION),)


@dataclass(frozen=True, slots=True)
class ConnectJars:
    """The class paths of Kafka Connect: its own jars, and those of each plugin."""

    runtime: tuple[Path, ...]
    plugins: Mapping[str, tuple[Path, ...]]


def connect_jars() -> ConnectJars:
    """The jars of Connect with Debezium's MySQL source and JDBC sink.

    Raises:
        Unavailable: when one of them cannot be fetched.
    """
    try:
        runtime = maven.fetch(f"connect-{KAFKA_VERSION}", _CONNECT)
        source = maven.fetch(f"debezium-mysql-{DEBEZIUM_VERSION}", _SOURCE)
        sink = maven.fetch(f"debezium-jdbc-{JDBC_SINK_VERSION}", _SINK)
    except SandboxError as error:
        raise Unavailable(error.message.splitlines()[0]) from error
    plugins = {"debezium-mysql": _without(source, runtime), "debezium-jdbc": _without(sink, runtime)}
    return ConnectJars(tuple(runtime), plugins)


def _without(jars: Sequence[Path], provided: Sequence[Path]) -> tuple[Path, ...]:
    """A plugin's jars without those of Connect: two Jackson versions conflict."""
    names = {_artifact(jar) for jar in provided}
    return tuple(jar for jar in jars if _artifact(jar) not in names)


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[^/]*\.jar$", "", jar.name)
