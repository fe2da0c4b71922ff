"""Apicurio's schema registry: a pinned archive of jars, unpacked in the cache."""

from __future__ import annotations

import tarfile
from pathlib import Path

from connector.sandbox import maven
from connector.sandbox.cache import Cache
from connector.sandbox.settings import REGISTRY

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
