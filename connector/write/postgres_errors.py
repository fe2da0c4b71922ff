"""PostgreSQL's errors as ours, by SQLSTATE: which pass by themselves, and which no second attempt can mend.

The classes are those of PostgreSQL's manual, appendix "PostgreSQL Error Codes". A connection that could not be made
has no SQLSTATE: libpq gives the server's text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)

# Connections, transactions that collide, resources, an operator's doing, the system around the server.
_PASSING_CLASSES: Final = ("08", "40", "53", "57", "58")
# A lock that was not had; a session that was idle, or a transaction that was open, for too long; a standby that is
# being promoted.
_PASSING: Final = ("55P03", "25P03", "25P04", "25006")
_LOCKS: Final = ("55P03", "40001", "40P01", "57014")
# What the server or libpq says of a connection that will not be made another time either.
_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in|"
    r"(?:role|database) \".*\" does not exist|permission denied for database|certificate verify failed"
)
_DEPENDENTS: Final = (
    "what depends on the table was not made by thl: drop it (DROP VIEW …), run thl apply, which goes on with this "
    "event, and make it again"
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what PostgreSQL raises as an error of `connector.errors`."""
    try:
        yield
    except psycopg.Error as error:
        raise ours(error) from error


def ours(error: psycopg.Error) -> ConnectorError:
    """The error of `connector.errors` that says the same."""
    state = error.sqlstate or ""
    text = f"PostgreSQL: {_first(error)}"
    if not state:
        return _without_state(error, text)
    if state == "25P03":
        # Stopped within a commit, and continued. Whether a newer applier took over meanwhile, the next claim tells.
        return TargetUnavailable("the server ended our session, which did nothing inside a transaction")
    if state[:2] in _PASSING_CLASSES or state in _PASSING:
        return TargetUnavailable(text, hint="Another session holds a lock for long." if state in _LOCKS else "")
    if state == "42501":
        return PreflightError(text, hint="GRANT CREATE ON DATABASE … TO …: we make schemas and tables")
    if state[:2] in ("28", "3D"):
        return PreflightError(text, hint="target.url names the user, the password and the database")
    if state in ("0A000", "2BP01"):
        return TargetDiffers(text, hint=_DEPENDENTS)
    if state[:2] in ("22", "54"):
        return ValueNotRepresentable(text)
    return TargetDiffers(text, sqlstate=state)


def _without_state(error: psycopg.Error, text: str) -> ConnectorError:
    if isinstance(error, psycopg.OperationalError) and (found := _REFUSED.search(str(error))):
        line = next(line for line in str(error).splitlines() if found[0] in line)
        return PreflightError(
            f"PostgreSQL refuses the connection: {line.strip()}",
            hint="target.url names the user, the password and the database",
        )
    # psycopg's own: a value or a statement that it cannot send
    if isinstance(error, psycopg.DataError):
        return ValueNotRepresentable(text)
    if isinstance(error, psycopg.ProgrammingError | psycopg.NotSupportedError | psycopg.IntegrityError):
        return TargetDiffers(text)
    return TargetUnavailable(text)


def _first(error: psycopg.Error) -> str:
    """What it says, with the row or the dependent object where it names one."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    return f"{said} ({error.diag.message_detail})" if error.diag.message_detail else said
