"""SQLite's errors as ours, by result code: which pass by themselves, and which no second attempt can mend."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from connector.errors import ConnectorError, PreflightError, TargetDiffers, TargetUnavailable, ValueNotRepresentable

# Another process's lock, a full disk, a disk that fails, no memory.
_PASSING: Final = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT),
)
_FORBIDDEN: Final = (
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
    sqlite3.SQLITE_NOTADB,
)

_DEPENDENTS: Final = (
    "it was not made by thl: drop it (DROP VIEW …), run thl apply, which goes on with this event, and make it again"
)
_DAMAGED: Final = "the file is damaged: fill the target again from nothing, or from a copy of the file"


@contextmanager
def translated() -> Iterator[None]:
    """Raise what SQLite raises as an error of `connector.errors`."""
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        raise ours(error) from error


def ours(error: sqlite3.Error | OverflowError) -> ConnectorError:
    """The error of `connector.errors` that says the same."""
    text = f"SQLite: {error}"
    if isinstance(error, OverflowError | sqlite3.DataError):
        return ValueNotRepresentable(text)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _PASSING:
        return TargetUnavailable(text)
    if code in _FORBIDDEN:
        return PreflightError(text, hint="target.url names a SQLite file that this user may write, and its folder too")
    if str(error).startswith(("error in view ", "error in trigger ")):
        return TargetDiffers(text, hint=_DEPENDENTS)
    return TargetDiffers(text, hint=_DAMAGED if code == sqlite3.SQLITE_CORRUPT else "")
