"""Finds MySQL's programs: the machine's own, else the distribution's packages unpacked in the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox.fetching.apt import UnpackedPackages, unpack
from connector.sandbox.fetching.cache import Cache
from connector.sandbox.fetching.versions import MYSQL_BEYOND_VERSION, MYSQL_LEAST_VERSION, MYSQL_PACKAGES, MYSQL_SUITE

_NAME = f"mysql-{MYSQL_SUITE}"


@dataclass(frozen=True, slots=True)
class MySqlPrograms:
    """MySQL's programs; `unpacked` is None when they are the machine's own."""

    unpacked: UnpackedPackages | None

    def command(self, program: str) -> list[str]:
        """The words that start `mysqld`, `mysql`, `mysqlbinlog`, `mysqldump` …

        Raises:
            SandboxError: when there is no such program.
        """
        if self.unpacked:
            folder = "usr/sbin" if program == "mysqld" else "usr/bin"
            return self.unpacked.command(f"{folder}/{program}", "usr/lib/mysql/private")
        place = _on_path(program)
        if place is None:
            raise SandboxError(f"mysqld is on PATH, but {program} is not", hint=f"install {program} too")
        return [place]

    @property
    def options(self) -> dict[str, str]:
        """The options by which an unpacked server finds its parts."""
        if not self.unpacked:
            return {}
        root = self.unpacked.root
        return {
            "basedir": f"{root}/usr",
            "lc_messages_dir": f"{root}/usr/share/mysql",
            "character_sets_dir": f"{root}/usr/share/mysql/charsets",
            "plugin_dir": f"{root}/usr/lib/mysql/plugin",
        }


@cache
def mysql_programs() -> MySqlPrograms:
    """Find MySQL 8.0 or newer on PATH, else unpack it.

    Raises:
        SandboxError: when neither is possible.
    """
    place = _on_path("mysqld")
    if place and _is_recent(place):
        return MySqlPrograms(None)
    try:
        folder = Cache().ensure(_NAME, _install)
    except SandboxError as error:
        raise SandboxError(
            f"MySQL could not be unpacked: {error.message}",
            hint=f"install MySQL {'.'.join(map(str, MYSQL_LEAST_VERSION))} or newer, so that mysqld is on PATH",
        ) from error
    return MySqlPrograms(UnpackedPackages(folder))


def _install(folder: Path) -> None:
    """Take what the suite has now: it moves. What is no version that the tests know is refused."""
    unpack(folder, _NAME, suite=MYSQL_SUITE, packages=MYSQL_PACKAGES)
    place = MySqlPrograms(UnpackedPackages(folder)).command("mysqld")
    told = subprocess.run([*place, "--no-defaults", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Ver (\d+)\.(\d+)", told)
    if version is None or not MYSQL_LEAST_VERSION <= (int(version[1]), int(version[2])) < MYSQL_BEYOND_VERSION:
        raise SandboxError(
            f"{MYSQL_SUITE} has a MySQL that was not tested: {told.strip() or 'it does not start'}",
            hint="connector/sandbox/settings.py says which are",
        )


def tool(program: str) -> list[str]:
    """The command prefix of one of MySQL's programs, e.g. `[*tool("mysqlbinlog"), "--no-defaults", "-v"]`."""
    return mysql_programs().command(program)


def _on_path(program: str) -> str | None:
    return shutil.which(program) or next(
        (str(place) for folder in ("/usr/sbin", "/usr/local/sbin") if (place := Path(folder, program)).exists()),
        None,
    )


def _is_recent(mysqld: str) -> bool:
    """Check that it is a recent MySQL, not MariaDB under its old name."""
    try:
        told = subprocess.run(
            [mysqld, "--no-defaults", "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.search(r"Ver (\d+)\.(\d+)", told)
    if version is None or "MariaDB" in told:
        return False
    return (int(version[1]), int(version[2])) >= MYSQL_LEAST_VERSION
