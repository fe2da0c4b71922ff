"""DuckDB's errors as the connector's, with those that a retry may solve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDamaged,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)

_HOLDER: Final = re.compile(r"Conflicting lock is held in (.+?) \(PID (\d+)\)")
_DEPENDENTS: Final = (
    "thl did not create it: drop it (DROP INDEX …), run thl apply, which continues with this event, and create it again"
)
_NO_FILE: Final = "target.url names a DuckDB file that this user may write, and its folder too"
_DAMAGED: Final = "the file is damaged: start with an empty target, or with a copy of the file"
# A full or failing disk, no memory, the conflict of two sessions of one process.
_PASSING: Final = (
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.TransactionException,
    duckdb.InterruptException,
    duckdb.ResourceInUseException,
)
_UNFIT: Final = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.TypeMismatchException)
_BROKEN: Final = (duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)


@contextmanager
def translated(opening: Path | None = None) -> Iterator[None]:
    """Raise what DuckDB raises as an error of `connector.errors`.

    Args:
        opening: the file that is being opened; None later.
    """
    try:
        yield
    except duckdb.Error as error:
        raise connector_error(error, opening) from error


def connector_error(error: duckdb.Error, opening: Path | None = None) -> ConnectorError:
    """The equivalent error of `connector.errors`; see `translated`."""
    text = f"DuckDB: {_first_line(error)}"
    if opening is not None:
        if is_locked(error):
            return held(error, opening)
        if isinstance(error, _BROKEN):
            return TargetDamaged(text, hint=_DAMAGED, file=opening)
        return PreflightError(text, hint=_NO_FILE, file=opening)
    if isinstance(error, _UNFIT):
        return ValueNotRepresentable(text)
    if isinstance(error, duckdb.DependencyException) or "index depends on it" in str(error):
        return TargetDiffers(text, hint=_DEPENDENTS)
    if isinstance(error, _PASSING):
        return TargetUnavailable(text)
    return TargetDamaged(text, hint=_DAMAGED) if isinstance(error, _BROKEN) else TargetDiffers(text)


def is_locked(error: duckdb.Error) -> bool:
    """True if another process has the file open."""
    return isinstance(error, duckdb.IOException) and "Could not set lock" in str(error)


def is_shared(error: duckdb.Error) -> bool:
    """True if this process has the file open to read it alone."""
    return isinstance(error, duckdb.ConnectionException) and "different configuration" in str(error)


def held(error: duckdb.Error, file: Path) -> TargetUnavailable:
    """The error for a file that another process has open."""
    found = _HOLDER.search(str(error))
    pid = found[2] if found else ""
    return TargetUnavailable(
        f"another process has the file open{f': {found[1]}, process {pid}' if found else ''}",
        hint="DuckDB lets one process write a file, or several read it. An applier lets go of it between commits; end "
        f"{f'process {pid}' if pid else 'the process'} if it does not let go.",
        file=file,
        pid=pid or None,
    )


def _first_line(error: duckdb.Error) -> str:
    return str(error).partition("\n")[0]
