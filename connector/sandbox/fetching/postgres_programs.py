"""PostgreSQL's programs: pinned binaries from a jar, unpacked in the cache."""

from __future__ import annotations

import os
import platform
import shutil
import tarfile
import zipfile
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox.fetching import maven
from connector.sandbox.fetching.cache import Cache
from connector.sandbox.fetching.versions import POSTGRES_GROUP, POSTGRES_VERSION, Artifact

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64v8"}
# Keeping the right to read and write where root may lets the server use a folder below /root, like the cache.
_CAPABILITY = "+dac_override"


def postgres_folder() -> Path:
    """Return the folder with `bin/postgres` and `bin/initdb`.

    Raises:
        SandboxError: when it cannot be had, or this machine's processor has no binaries.
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
    """The command, made to run as `nobody` when we are root: PostgreSQL refuses root.

    Args:
        command: what to run.
        die_with_parent: ask for it here too: the kernel forgets the wish when a process changes its user.

    Raises:
        SandboxError: when we are root and the machine has no `setpriv` (util-linux).
    """
    if os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SandboxError("PostgreSQL does not run as root", hint="install setpriv (util-linux), or be a user")
    identity = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    keep = ["--securebits=+no_setuid_fixup", f"--inh-caps={_CAPABILITY}", f"--ambient-caps={_CAPABILITY}"]
    death = ["--pdeathsig=KILL"] if die_with_parent else []
    return [setpriv, *identity, *keep, *death, *command]


def give_to_ordinary_user(folder: Path) -> None:
    """Make the user of `as_ordinary_user` the owner of `folder`, which PostgreSQL insists on."""
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
