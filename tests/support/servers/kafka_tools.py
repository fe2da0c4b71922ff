"""Kafka's own command-line tools, of which the sandbox's broker needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from connector.fetching import maven
from connector.fetching.jars import kafka_jars
from connector.fetching.java import java_home
from connector.fetching.versions import KAFKA_VERSION, Artifact

_TOOLS: Final = Artifact("org.apache.kafka", "kafka-tools", KAFKA_VERSION)


def kafka_tools_jar() -> Path:
    """Return the jar of the tools; what it needs is among those of a broker.

    Raises:
        SandboxError: it is not in the cache, and cannot be fetched.
    """
    (jar,) = maven.fetch(f"kafka-tools-{KAFKA_VERSION}", [_TOOLS], transitive=False)
    return jar


def write_tool(file: Path, name: str) -> Path:
    """Write a program that runs a tool by the name of its class; return it."""
    classes = ":".join(map(str, [kafka_tools_jar(), *kafka_jars()]))
    java = java_home() / "bin" / "java"
    file.write_text(f'#!/bin/sh\nexec {java} -Xmx128m -cp {classes} org.apache.kafka.tools.{name} "$@"\n')
    file.chmod(0o755)
    return file
