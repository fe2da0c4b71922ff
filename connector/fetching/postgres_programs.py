"""Fetches PostgreSQL's programs: pinned binaries from a jar, unpacked in the cache."""

from __future__ import annotations

import os
import platform
import shutil
import tarfile
import zipfile
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching import maven
from connector.fetching.cache import Cache
from connector.fetching.versions import POSTGRES_GROUP, POSTGRES_VERSION, Artifact

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64v8"}
# The kept capability lets the server use a folder below /root, such as the cache.
_CAPABILITY = "+dac_override"


def postgres_folder() -> Path:
    """Return the folder with `bin/postgres` and `bin/initdb`.

    Raises:
        SandboxError: the binaries cannot be fetched, or there are none for this processor.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise SandboxError(f"there are no pinned PostgreSQL binaries for {machine}")
    name = f"embedded-postgres-binaries-linux-{_ARCHITECTURES[machine]}"

    def install(folder: Path) -> None:
        jars = maven.fetch(
            f"{name}-{POSTGRES_VERSION}",
            [Artifact(POSTGRES_GROUP, name, POSTGRES_VERSION)],
            transitive=False,
        )
        with zipfile.ZipFile(jars[0]) as jar:
            (archive,) = [entry for entry in jar.namelist() if entry.endswith(".txz")]
            with jar.open(archive) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tree:
                if hasattr(tarfile, "data_filter"):  # not in the first releases of Python 3.11
                    tree.extraction_filter = tarfile.data_filter
                tree.extractall(folder)  # noqa: S202 (a pinned archive)

    return Cache().ensure(f"postgres-{POSTGRES_VERSION}", install)


def as_ordinary_user(command: list[str], *, die_with_parent: bool = False) -> list[str]:
    """Return the command; for root, one that runs it as the user `nobody`: PostgreSQL refuses root.

    Args:
        command: program and arguments.
        die_with_parent: set this again for the new user: the kernel clears it when a process changes its user.

    Raises:
        SandboxError: this process runs as root, and the machine has no `setpriv` (util-linux).
    """
    if os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SandboxError("PostgreSQL does not run as root", hint="install setpriv (util-linux), or use another user")
    identity = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    keep = ["--securebits=+no_setuid_fixup", f"--inh-caps={_CAPABILITY}", f"--ambient-caps={_CAPABILITY}"]
    death = ["--pdeathsig=KILL"] if die_with_parent else []
    return [setpriv, *identity, *keep, *death, *command]


def give_to_ordinary_user(folder: Path) -> None:
    """Make the user of `as_ordinary_user` the owner of `folder`, as PostgreSQL requires."""
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
