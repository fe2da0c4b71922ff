"""PostgreSQL's errors as the connector's, by SQLSTATE, with those that a retry may solve.

The classes are those of PostgreSQL's manual, appendix "PostgreSQL Error Codes". A failed connection has no SQLSTATE:
libpq returns only the server's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import sql

from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDamaged,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)

# Connections, conflicting transactions, resources, operator intervention, system errors; 72: an old snapshot.
_PASSING_CLASSES: Final = ("08", "40", "53", "57", "58", "72")
# Lock timeout; idle session and transaction timeouts; a standby before its promotion; object in use; internal errors
# without a code of their own ("tuple concurrently updated": a GRANT during ALTER TABLE; damage has XX001 and XX002).
# Also a schema or table of the bookkeeping that another service has just created: the retry finds it.
_PASSING: Final = ("55P03", "25P03", "25P04", "25006", "55006", "XX000", "42P06", "42P07")
# The same, if both services create it at the same time.
_NAMES: Final = ("pg_namespace_nspname_index", "pg_type_typname_nsp_index", "pg_class_relname_nsp_index")
_TABLES_OF_ALL_SERVICES: Final = "thl_tables_target_name_key"
_LOCKS: Final = ("55P03", "40001", "40P01", "57014")
# Messages of the server or libpq about connections that a retry will not open either.
_REFUSED: Final = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in|"
    r"(?:role|database) \".*\" does not exist|permission denied for database|certificate verify failed|"
    r"server does not support SSL, but SSL was required"
)
# The prefix of each attempt in a message of psycopg about several attempts.
_ATTEMPT: Final = re.compile(r"^- (host: .*?, port: .*?), hostaddr: ", re.MULTILINE)
_DEPENDENTS: Final = (
    "thl did not create the object that depends on the table: drop it (DROP VIEW …), run thl apply, which continues "
    "with this event, and create it again"
)
_COLLATION: Final = (
    'a text column of a key has another collation than "C" or the default: '
    'ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C" on the target; thl apply names it when it starts'
)
_MANY_LOCKS: Final = (
    "raise max_locks_per_transaction on the target's server, which needs a restart: a commit locks up to five objects "
    "for each of its tables"
)
_ROW_SECURITY: Final = ("check_enable_rls", "ExecWithCheckOptions")
_UNIQUE: Final = (
    "if thl did not make {0}: rows of one commit may swap unique values, so drop it and create a constraint in its "
    "place that is checked at the commit: ALTER TABLE … ADD UNIQUE (…) DEFERRABLE INITIALLY DEFERRED"
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what PostgreSQL raises as an error of `connector.errors`."""
    try:
        yield
    except psycopg.Error as error:
        raise connector_error(error) from error


def connector_error(error: psycopg.Error) -> ConnectorError:
    """The equivalent error of `connector.errors`."""
    state = error.sqlstate or ""
    text = f"PostgreSQL: {_first(error)}"
    if not state:
        return _without_state(error, text)
    if state == "25P03":
        # The process was stopped within a commit and continued. The next claim detects a newer applier.
        return TargetUnavailable("the server ended the session, which was idle in a transaction")
    if state[:2] in _PASSING_CLASSES or state in _PASSING or _crossed(error, state):
        return TargetUnavailable(text, hint=_passing_hint(error, state))
    if state == "42501":
        return PreflightError(text, hint=_grant(error))
    if state[:2] in ("28", "3D"):
        return PreflightError(text, hint="target.url names the user, the password and the database")
    if state in ("0A000", "2BP01"):
        return TargetDiffers(text, hint=_DEPENDENTS)
    if error.diag.constraint_name == _TABLES_OF_ALL_SERVICES:
        return PreflightError(
            f"another service has a table of this name in the database: {error.diag.message_detail}",
            hint="a database for each service; for a new log of the same tables an empty one",
        )
    if state == "42P22":
        return TargetDiffers(text, hint=_COLLATION)
    if state[:2] in ("22", "54"):
        return ValueNotRepresentable(text)
    if state == "23502" and error.diag.table_name:
        return _null(error)
    if state[:2] == "XX":
        return TargetDamaged(text, sqlstate=state)
    table = f"{error.diag.schema_name}.{error.diag.table_name}" if error.diag.table_name else None
    constraint = error.diag.constraint_name or ""
    by_others = state == "23505" and constraint and not constraint.endswith("_pkey")  # PostgreSQL's name of a key
    hint = _UNIQUE.format(constraint) if by_others else ""
    return TargetDiffers(text, hint=hint, sqlstate=state, table=table)


def _passing_hint(error: psycopg.Error, state: str) -> str:
    """The hint for an error that the retries do not overcome."""
    if state in _LOCKS:
        return "another session holds a lock for long"
    # The name of the parameter, because the text may be in another language.
    return _MANY_LOCKS if state == "53200" and "max_locks_per_transaction" in (error.diag.message_hint or "") else ""


def _grant(error: psycopg.Error) -> str:
    """The remedy for a privilege that is missing, by the function that asks for it: texts have other languages."""
    function, text = error.diag.source_function or "", error.diag.message_primary or ""
    if function == "InitTempTableNamespace":
        return "GRANT TEMPORARY ON DATABASE … TO …: the applier stages rows in temporary tables"
    if function in _ROW_SECURITY:
        return "ALTER ROLE … BYPASSRLS for the user of target.url, or ALTER TABLE … NO FORCE ROW LEVEL SECURITY"
    if text.startswith("must be owner"):
        return "make the user of target.url the owner, as thl does with what it creates: ALTER … OWNER TO …"
    if text.startswith("permission denied for table"):
        return "GRANT ALL ON TABLE … TO … for the user of target.url"
    if text.startswith("permission denied for schema"):
        return "GRANT CREATE, USAGE ON SCHEMA … TO … for the user of target.url"
    return "GRANT CREATE ON DATABASE … TO …: the applier creates schemas and tables"


def _null(error: psycopg.Error) -> TargetDiffers:
    """A NULL in a NOT NULL column, without the row, which the message's detail has."""
    table = f"{error.diag.schema_name}.{error.diag.table_name}"
    parts = (error.diag.schema_name, error.diag.table_name)
    quoted = ".".join(sql.Identifier(part or "").as_string(None) for part in parts)
    column = sql.Identifier(error.diag.column_name or "").as_string(None)
    return TargetDiffers(
        f"column {error.diag.column_name} of table {table} is NOT NULL on the target, and the log has NULL",
        hint=f"ALTER TABLE {quoted} ALTER COLUMN {column} DROP NOT NULL on the target, then start the applier again",
        table=table,
        column=error.diag.column_name,
    )


def _crossed(error: psycopg.Error, state: str) -> bool:
    """True if another session changed a definition: of the same name, or of a table in a cached plan."""
    if state == "23505":
        return error.diag.constraint_name in _NAMES
    # By the function that raises it, because the text may be in another language.
    return state == "0A000" and error.diag.source_function == "RevalidateCachedQuery"


def _refusal(message: str) -> str:
    """The line that says why a retry will not connect either; "" if it may.

    All of several hosts must have refused the connection, because a host that is restarting may accept it later. A
    host with several addresses (localhost) refuses if one of the addresses does.
    """
    parts = _ATTEMPT.split(message)
    hosts = dict[str, str]()
    for host, part in zip(parts[1::2], parts[2::2], strict=True):
        hosts[host] = f"{hosts.get(host, '')}\n{part}"
    found = [_REFUSED.search(part) for part in hosts.values() or (message,)]
    if not all(found) or (first := found[0]) is None:
        return ""
    return next(line for line in message.splitlines() if first[0] in line).strip()


def _without_state(error: psycopg.Error, text: str) -> ConnectorError:
    if isinstance(error, psycopg.OperationalError) and (line := _refusal(str(error))):
        return PreflightError(
            f"PostgreSQL refuses the connection: {line}",
            hint="target.url names the user, the password, the database and sslmode",
        )
    # raised by psycopg: a value or a statement that it cannot send
    if isinstance(error, psycopg.DataError):
        return ValueNotRepresentable(text)
    if isinstance(error, psycopg.ProgrammingError | psycopg.NotSupportedError | psycopg.IntegrityError):
        return TargetDiffers(text)
    return TargetUnavailable(text)


def _first(error: psycopg.Error) -> str:
    """The error's message, with its detail: the row or the dependent object."""
    message = error.diag.message_primary or str(error).strip() or type(error).__name__
    return f"{message} ({error.diag.message_detail})" if error.diag.message_detail else message
