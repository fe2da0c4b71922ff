"""The folder in which Spark keeps its own progress: a new one at each start, so that no old one is ever read.

The target's position alone says where to go on. Whatever lies in the configured folder, of an earlier start, a
later one, another service or another program, makes no difference. Folders that earlier starts of ours left are
removed when their process is gone; a failure to do so is of no consequence.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

_OURS: Final = re.compile(r"thl-apply-(\d+)-\w+")


def fresh(parent: Path) -> Path:
    """A new, empty folder in `parent`, which is made if needed."""
    parent.mkdir(parents=True, exist_ok=True)
    for old in parent.iterdir():
        named = _OURS.fullmatch(old.name)
        if named and not _alive(int(named[1])):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"thl-apply-{os.getpid()}-", dir=parent))


def remove(folder: Path) -> None:
    """The folder of a start that has ended."""
    shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
