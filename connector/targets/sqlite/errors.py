"""SQLite's errors as ours, by result code: which pass by themselves, and which no second attempt can mend."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from connector.errors import ConnectorError, PreflightError, TargetDiffers, TargetUnavailable, ValueNotRepresentable

# Another process's lock, a full disk, a disk that fails, no memory.
_PASSING: Final = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT),
)
_FORBIDDEN: Final = (sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOTADB)
# Of a file that is open these pass, as far as that tells: descriptors that ran out, a file that was moved. The next
# attempt opens it anew, and sees.
_AT_OPENING: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_DEPENDENTS: Final = (
    "it was not made by thl: drop it (DROP VIEW …), run thl apply, which goes on with this event, and make it again"
)
_DAMAGED: Final = "the file is damaged: fill the target again from nothing, or from a copy of the file"


@contextmanager
def translated(opening: Path | None = None) -> Iterator[None]:
    """Raise what SQLite raises as an error of `connector.errors`.

    Args:
        opening: the file that is being opened, or written to for the first time; None: it was.
    """
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise ours(error, opening) from error


def ours(error: sqlite3.Error | OverflowError, opening: Path | None = None) -> ConnectorError:
    """The error of `connector.errors` that says the same; see `translated`."""
    text = f"SQLite: {error}"
    if isinstance(error, OverflowError | sqlite3.DataError):
        return ValueNotRepresentable(text)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    passes = code in _AT_OPENING and (opening is None or (code == sqlite3.SQLITE_CANTOPEN and _permitted(opening)))
    if code in _PASSING or passes:
        return TargetUnavailable(text)
    if code in _FORBIDDEN or code in _AT_OPENING:
        return PreflightError(text, hint="target.url names a SQLite file that this user may write, and its folder too")
    if str(error).startswith(("error in view ", "error in trigger ")):
        return TargetDiffers(text, hint=_DEPENDENTS)
    return TargetDiffers(text, hint=_DAMAGED if code == sqlite3.SQLITE_CORRUPT else "")


def _permitted(file: Path) -> bool:
    """Whether it is no right that a file lacks which cannot be opened: then descriptors may have run out."""
    return file.is_file() and os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK | os.X_OK)
