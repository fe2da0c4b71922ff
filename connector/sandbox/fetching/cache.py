"""The cache folder: everything fetched, each thing in a subfolder that is complete or missing.

Promises: two processes that want the same thing fetch it once; a process killed while fetching leaves nothing
that looks finished; what is there is used without asking any network.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Cache:
    """A folder of installed things, by name.

    Args:
        folder: where; default `$THL_CACHE`, else `$XDG_CACHE_HOME/thl`, else `~/.cache/thl`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default_folder()).absolute()

    def path(self, name: str) -> Path:
        """Return the folder of the thing called `name`, which may not exist yet."""
        return self.folder / name

    def ensure(self, name: str, install: Callable[[Path], None]) -> Path:
        """Return the folder called `name`, installing it first if it is not there.

        Args:
            name: with the version in it, since what is there is never looked at again.
            install: fills the empty folder it is given; its error leaves the cache as it was. What it writes must
                not contain that folder's path: the folder is renamed when it is whole.
        """
        place = self.path(name)
        if place.is_dir():
            return place
        with locked(self.folder / f".{name}.lock"):
            if not place.is_dir():
                work = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=self.folder))
                try:
                    install(work)
                    work.chmod(0o755)
                    work.rename(place)
                finally:
                    shutil.rmtree(work, ignore_errors=True)
        return place


def default_folder() -> Path:
    """The cache folder that the environment names."""
    if own := os.environ.get("THL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "thl"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold `file` locked against other processes; the kernel frees it when its holder dies.

    Programs started meanwhile do not inherit it: Python opens files close-on-exec.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
