"""SQLite's errors as ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from connector.errors import TargetDiffers, TargetUnavailable, ValueNotRepresentable

# Of the file's contents, not of its being there: a table that is gone or is another one.
_DIFFERENT: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_SCHEMA)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what SQLite raises as an error of `connector.errors`."""
    try:
        yield
    except (sqlite3.DataError, OverflowError) as error:
        raise ValueNotRepresentable(f"SQLite: {error}") from error
    except sqlite3.Error as error:
        kind = TargetDiffers if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DIFFERENT else TargetUnavailable
        raise kind(f"SQLite: {error}") from error
