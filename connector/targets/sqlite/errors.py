"""SQLite's errors as the connector's, by result code, with those that a retry may solve."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDamaged,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)

# A lock of another process, a full or failing disk, no memory.
_PASSING: Final = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT),
)
_OF_THE_DISK: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_FORBIDDEN: Final = (sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOTADB)
# For an open file these may pass (no free file descriptors, a moved file); the next attempt opens it again.
_AT_OPENING: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_DEPENDENTS: Final = (
    "thl did not create it: drop it (DROP VIEW …), run thl apply, which continues with this event, and create it again"
)
_DISK: Final = "the disk of target.url is full or fails; with room on it the next attempt, or thl apply, goes on"
_DAMAGED: Final = "the file is damaged: start with an empty target, or with a copy of the file"


@contextmanager
def translated(opening: Path | None = None) -> Iterator[None]:
    """Raise what SQLite raises as an error of `connector.errors`.

    Args:
        opening: the file that is being opened or first written to; None later.
    """
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise connector_error(error, opening) from error


def connector_error(error: sqlite3.Error | OverflowError, opening: Path | None = None) -> ConnectorError:
    """The equivalent error of `connector.errors`; see `translated`."""
    text = f"SQLite: {error}"
    if isinstance(error, OverflowError | sqlite3.DataError):
        return ValueNotRepresentable(text)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    passes = code in _AT_OPENING and (opening is None or (code == sqlite3.SQLITE_CANTOPEN and _permitted(opening)))
    if code in _PASSING or passes:
        return TargetUnavailable(text, hint=_DISK if code in _OF_THE_DISK else "")
    if code in _FORBIDDEN or code in _AT_OPENING:
        return PreflightError(text, hint="target.url names a SQLite file that this user may write, and its folder too")
    if str(error).startswith(("error in view ", "error in trigger ")):
        return TargetDiffers(text, hint=_DEPENDENTS)
    return TargetDamaged(text, hint=_DAMAGED) if code == sqlite3.SQLITE_CORRUPT else TargetDiffers(text)


def _permitted(file: Path) -> bool:
    """True if the user may read and write the file, so opening failed for another cause (no free descriptors)."""
    return file.is_file() and os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK | os.X_OK)
