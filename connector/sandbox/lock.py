"""A lock between processes."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold `file` locked, waiting for whoever holds it; the kernel frees it when its holder dies.

    Programs started meanwhile do not inherit it: Python opens files close-on-exec.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
