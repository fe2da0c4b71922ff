"""Finds MySQL's programs: the machine's own, else the distribution's packages unpacked in the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from connector.errors import SandboxError
from connector.fetching.apt import UnpackedPackages, unpack
from connector.fetching.cache import Cache
from connector.fetching.versions import MYSQL_BEYOND_VERSION, MYSQL_LEAST_VERSION, MYSQL_PACKAGES, MYSQL_SUITE

_NAME = f"mysql-{MYSQL_SUITE}"


@dataclass(frozen=True, slots=True)
class MySqlPrograms:
    """Starts MySQL's programs; `unpacked` is None if they are installed on the machine."""

    unpacked: UnpackedPackages | None

    def command(self, program: str) -> list[str]:
        """Return the command that starts `mysqld`, `mysql`, `mysqlbinlog`, `mysqldump` …

        Raises:
            SandboxError: there is no such program.
        """
        if self.unpacked:
            folder = "usr/sbin" if program == "mysqld" else "usr/bin"
            return self.unpacked.command(f"{folder}/{program}", "usr/lib/mysql/private")
        path = _on_path(program)
        if path is None:
            raise SandboxError(f"mysqld is on PATH, but {program} is not", hint=f"install {program} too")
        return [path]

    @property
    def options(self) -> dict[str, str]:
        """Return the options by which an unpacked server finds its files."""
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
    """Return MySQL 8.0 or newer: the one on PATH, else a fetched one.

    Raises:
        SandboxError: there is none on PATH, and none can be fetched.
    """
    path = _on_path("mysqld")
    if path and _is_recent(path):
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
    """Unpack the suite's current version; refuse a version outside the tested range."""
    unpack(folder, _NAME, suite=MYSQL_SUITE, packages=MYSQL_PACKAGES)
    path = MySqlPrograms(UnpackedPackages(folder)).command("mysqld")
    output = subprocess.run([*path, "--no-defaults", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Ver (\d+)\.(\d+)", output)
    if version is None or not MYSQL_LEAST_VERSION <= (int(version[1]), int(version[2])) < MYSQL_BEYOND_VERSION:
        raise SandboxError(
            f"{MYSQL_SUITE} has a MySQL that was not tested: {output.strip() or 'it does not start'}",
            hint="connector/sandbox/settings.py has the tested versions",
        )


def tool(program: str) -> list[str]:
    """Return the command of one of MySQL's programs, e.g. `[*tool("mysqlbinlog"), "--no-defaults", "-v"]`."""
    return mysql_programs().command(program)


def _on_path(program: str) -> str | None:
    return shutil.which(program) or next(
        (str(path) for folder in ("/usr/sbin", "/usr/local/sbin") if (path := Path(folder, program)).exists()),
        None,
    )


def _is_recent(mysqld: str) -> bool:
    """Return True for a recent MySQL; False for MariaDB, which can have the same program name."""
    try:
        output = subprocess.run(
            [mysqld, "--no-defaults", "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.search(r"Ver (\d+)\.(\d+)", output)
    if version is None or "MariaDB" in output:
        return False
    return (int(version[1]), int(version[2])) >= MYSQL_LEAST_VERSION
