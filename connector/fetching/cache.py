"""The cache folder: each fetched item is in a subfolder, which is complete or missing.

Two processes that need the same item fetch it once. A process that is killed while it fetches leaves no incomplete
item. An item that exists is used without network access.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger("connector.fetching")


class Cache:
    """A folder of installed items, by name.

    Args:
        folder: the folder; default `$THL_CACHE`, else `$XDG_CACHE_HOME/thl`, else `~/.cache/thl`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default_folder()).absolute()

    def path(self, name: str) -> Path:
        """Return the folder of the item `name`, which may not exist yet."""
        return self.folder / name

    def ensure(self, name: str, install: Callable[[Path], None]) -> Path:
        """Return the folder of the item `name`; install it first if it is missing.

        Args:
            name: the item's name with its version: an installed item is never checked again.
            install: fills the given empty folder; if it raises, the cache stays unchanged. Its files must not
                contain the folder's path, because the folder is renamed when it is complete.
        """
        path = self.path(name)
        if path.is_dir():
            return path
        with locked(self.folder / f".{name}.lock"):
            if not path.is_dir():
                LOG.info("fetching into the cache", extra={"item": name, "cache": str(self.folder)})
                work = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=self.folder))
                try:
                    install(work)
                    work.chmod(0o755)
                    work.rename(path)
                finally:
                    shutil.rmtree(work, ignore_errors=True)
        return path


def default_folder() -> Path:
    """Return the cache folder that the environment names."""
    if own := os.environ.get("THL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "thl"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock `file` against other processes while in the context; the kernel releases the lock if the process dies.

    Programs started meanwhile do not inherit the lock: Python opens files close-on-exec.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
