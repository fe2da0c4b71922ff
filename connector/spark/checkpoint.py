"""The folders in which Spark keeps its own progress: a new one at each start, so that no old one is ever read.

The target's position alone says where to go on, whatever is in the configured folder. Folders that earlier starts of
this user left are removed when their process has ended; a failure to do so has no consequence.

No other user may replace their contents: the JVM's logging configuration is there, and can name classes.
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
        parent: its folder; created where it is missing. None: the system's folder for temporary files.

    Raises:
        ConfigError: another user could replace it, or it cannot be created.
    """
    folder = private.new_folder(f"thl-apply-{os.getpid()}-", parent, OPTION)
    for old in folder.parent.iterdir():
        named = _OURS.fullmatch(old.name)
        if named and not _alive(int(named[1])) and private.owned(old):
            shutil.rmtree(old, ignore_errors=True)
    return folder


def remove(folder: Path) -> None:
    """Remove the folder of a start that has ended."""
    shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
