"""Creates Spark's checkpoint folder: a new one at each start, so that Spark never reads old progress.

Only the target's position decides where to continue. Folders of this user's earlier starts are removed if their
process has ended; a failure to remove one is ignored.

No other user may replace the content: the JVM's logging configuration is there, and can name classes to load.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from connector import private_files as private

OPTION: Final = "apply.checkpoint_dir"
_OWN_FOLDER: Final = re.compile(r"thl-apply-(\d+)-\w+")


def fresh(parent: Path | None) -> Path:
    """Create an empty folder that only this user can access.

    Args:
        parent: the parent folder, created if missing. None: the system's folder for temporary files.

    Raises:
        ConfigError: another user could replace it, or it cannot be created.
    """
    folder = private.new_folder(f"thl-apply-{os.getpid()}-", parent, OPTION)
    for old in folder.parent.iterdir():
        named = _OWN_FOLDER.fullmatch(old.name)
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
