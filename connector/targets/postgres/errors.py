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
# A snapshot that became too old.
_PASSING_CLASSES: Final = ("08", "40", "53", "57", "58", "72")
# A lock that was not had; a session that was idle, or a transaction that was open, for too long; a standby that is
# being promoted; something that somebody uses; what a server has no code of its own for ("tuple concurrently updated":
# a GRANT while we alter the table). Damage has codes: XX001, XX002.
# And a schema or a table of the bookkeeping that another service made since we looked: who looks again finds it.
_PASSING: Final = ("55P03", "25P03", "25P04", "25006", "55006", "XX000", "42P06", "42P07")
# The same, where both made it in the same moment.
_NAMES: Final = ("pg_namespace_nspname_index", "pg_type_typname_nsp_index", "pg_class_relname_nsp_index")
_LOCKS: Final = ("55P03", "40001", "40P01", "57014")
# What the server or libpq says of a connection that will not be made another time either.
_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in|"
    r"(?:role|database) \".*\" does not exist|permission denied for database|certificate verify failed|"
    r"server does not support SSL, but SSL was required"
)
# How psycopg begins what it says of each attempt, where there were several.
_ATTEMPT: Final = re.compile(r"^- (host: .*?, port: .*?), hostaddr: ", re.MULTILINE)
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
    if state[:2] in _PASSING_CLASSES or state in _PASSING or _crossed(error, state):
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


def _crossed(error: psycopg.Error, state: str) -> bool:
    """Whether somebody else's definition came between: of the same name, or of a table that a kept plan reads."""
    if state == "23505":
        return error.diag.constraint_name in _NAMES
    # Told by where it is raised: the text may be in another language.
    return state == "0A000" and error.diag.source_function == "RevalidateCachedQuery"


def _refusal(said: str) -> str:
    """The line by which a connection will not be made another time either; "": it may be.

    Of several hosts each must refuse us: one that is starting again may be the one that would have let us in. A host
    that has several addresses (localhost) refuses us where one of them does.
    """
    parts = _ATTEMPT.split(said)
    hosts = dict[str, str]()
    for host, part in zip(parts[1::2], parts[2::2], strict=True):
        hosts[host] = f"{hosts.get(host, '')}\n{part}"
    found = [_REFUSED.search(part) for part in hosts.values() or (said,)]
    if not all(found) or (first := found[0]) is None:
        return ""
    return next(line for line in said.splitlines() if first[0] in line).strip()


def _without_state(error: psycopg.Error, text: str) -> ConnectorError:
    if isinstance(error, psycopg.OperationalError) and (line := _refusal(str(error))):
        return PreflightError(
            f"PostgreSQL refuses the connection: {line}",
            hint="target.url names the user, the password, the database and sslmode",
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
