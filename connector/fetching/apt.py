"""Unpacks packages of the distribution into a folder of the cache: installs nothing, needs no root.

apt gets a private state: its own lists and archives, and an empty status file, so that it resolves every
dependency down to the C library. The unpacked programs are newer than the machine's C library and are started
through the loader that came with them (`UnpackedPackages.command`).
"""

from __future__ import annotations

import logging
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from connector.errors import SandboxError
from connector.fetching import checksums

LOG: Final = logging.getLogger(__name__)
_ETC = Path("/etc/apt")


@dataclass(frozen=True, slots=True)
class UnpackedPackages:
    """A folder with the tree (`usr/bin`, `usr/lib`, …) of some packages and their dependencies."""

    root: Path

    @property
    def _libraries(self) -> Path:
        return self.root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"

    def command(self, program: str, *library_folders: str) -> list[str]:
        """Return the command that starts `program` (a path from the root), with further library folders.

        Raises:
            SandboxError: the packages do not contain the program.
        """
        path = self.root / program
        loaders = sorted(self._libraries.glob("ld-linux-*.so.*"))
        if not loaders or not path.exists():
            raise SandboxError(f"the unpacked packages hold no {program}", root=self.root)
        folders = [self._libraries, *(self.root / folder for folder in library_folders)]
        return [str(loaders[0]), "--library-path", ":".join(map(str, folders)), str(path)]


def unpack(folder: Path, name: str, *, suite: str, packages: Sequence[str], dependencies: bool = True) -> None:
    """Fill a folder with packages of a suite and their dependencies.

    A suite replaces its versions. So a package of a version that is not recorded is accepted with a warning: apt has
    verified the distribution's signature. A package of a recorded version is compared with its checksum.

    Args:
        folder: the folder to fill.
        name: the name under which checksums are recorded.
        suite: the distribution's suite.
        packages: names of packages in the suite.
        dependencies: false: without these, for packages of which only files are read.

    Raises:
        SandboxError: the machine has no apt; apt failed (the message has its last lines); or a package differs from
            the recorded checksum.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise SandboxError("this machine has no apt, which fetches the packages")
    with TemporaryDirectory(dir=folder.parent, prefix=".apt.") as work:
        options = _private_state(Path(work), suite)
        _run(["apt-get", *options, "update"])
        archives = Path(work, "cache", "archives")
        if dependencies:
            _run(["apt-get", *options, "--download-only", "--no-install-recommends", "--yes", "install", *packages])
        else:
            _run(["apt-get", *options, "download", *packages], archives)
        fetched = sorted(archives.glob("*.deb"))
        _compare(name, fetched)
        for package in fetched:
            _run(["dpkg", "-x", str(package), str(folder)])


def _compare(name: str, packages: Sequence[Path]) -> None:
    others = []
    for package in packages:
        if checksums.is_recording() or f"{name}/{package.name}" in checksums.recorded():
            checksums.check(package, f"{name}/{package.name}")
        else:
            others.append(package.name.rpartition("_")[0])
    if others:
        LOG.warning(
            "%s: %d of %d packages have versions without a recorded checksum; only the distribution's signature was "
            "verified: %s (make pins records them)",
            name,
            len(others),
            len(packages),
            ", ".join(others),
        )


def _private_state(work: Path, suite: str) -> list[str]:
    """Return the options that keep apt inside `work`, with the machine's own source and another suite."""
    for name in ("state/lists/partial", "cache/archives/partial", "log"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(_source(suite))
    return [
        "-q",
        f"-oDir::State={work}/state",
        f"-oDir::State::status={work}/status",
        f"-oDir::Cache={work}/cache",
        f"-oDir::Log={work}/log",
        f"-oDir::Etc::sourcelist={work}/sources.list",
        "-oDir::Etc::sourceparts=-",
        "-oAPT::Sandbox::User=root",  # keep this user: the user that apt switches to cannot write here
        "-oAcquire::Languages=none",
        "-oAcquire::AllowInsecureRepositories=false",
        "-oAPT::Get::AllowUnauthenticated=false",
    ]


def _source(suite: str) -> str:
    """Return a source line with the machine's first archive and `suite`; reads both formats of apt's sources."""
    for file in sorted(_ETC.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.+)$", stanza))
            if "deb" in fields.get("Types", "").split() and "-security" not in fields.get("Suites", ""):
                signed = f"[signed-by={fields['Signed-By']}] " if "Signed-By" in fields else ""
                return f"deb {signed}{fields['URIs'].split()[0]} {suite} main\n"
    for file in [_ETC / "sources.list", *sorted(_ETC.glob("sources.list.d/*.list"))]:
        for line in file.read_text().splitlines() if file.exists() else []:
            if found := re.match(r"deb\s+(\[[^]]*\]\s+)?(\S+)\s+(?!\S*-security)\S+\s+main\b", line):
                return f"deb {found[1] or ''}{found[2]} {suite} main\n"
    raise SandboxError("no package source was found in apt's configuration", folder=_ETC)


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        said = "\n".join(done.stdout.splitlines()[-15:])
        raise SandboxError(f"{command[0]} failed\n{said}")
