"""The folder in which Spark keeps its own progress: a new one at each start, so that no old one is ever read.

The target's position alone says where to go on. Whatever lies in the configured folder, of an earlier start, a
later one, another service or another program, makes no difference. Folders that earlier starts of this user left are
removed when their process is gone; a failure to do so is of no consequence.

No other user may exchange what is in it: the JVM's logging configuration is, and that can name classes.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from connector import private_files as private

OPTION: Final = "apply.checkpoint_dir"
_OURS: Final = re.compile(r"thl-apply-(\d+)-\w+")


def fresh(parent: Path | None) -> Path:
    """A new, empty folder that only this user may look into.

    Args:
        parent: where; made where it is missing. None: the system's folder for temporary files.

    Raises:
        ConfigError: another user could put another folder in its place, or it cannot be made.
    """
    folder = private.new_folder(f"thl-apply-{os.getpid()}-", parent, OPTION)
    for old in folder.parent.iterdir():
        named = _OURS.fullmatch(old.name)
        if named and not _alive(int(named[1])) and private.owned(old):
            shutil.rmtree(old, ignore_errors=True)
    return folder


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
