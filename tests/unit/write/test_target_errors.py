"""Which errors of a target are tried again, and which end an applier at once."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from psycopg import errors

from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)
from connector.write import postgres_errors, sqlite_errors


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        *(
            (state, TargetUnavailable)
            for state in ("08006", "08P01", "57P01", "57P03", "53100", "53300", "40001", "40P01")
        ),
        *((state, TargetUnavailable) for state in ("55P03", "57014", "25P03", "25006", "58030")),
        *((state, TargetDiffers) for state in ("0A000", "2BP01", "42P01", "42703", "23505", "25P02", "XX000", "XX001")),
        *((state, TargetDiffers) for state in ("55000", "55006", "44000", "3F000", "2F005", "39000")),
        *((state, ValueNotRepresentable) for state in ("22003", "22021", "54000", "54011")),
        *((state, PreflightError) for state in ("42501", "28P01", "28000", "3D000")),
    ],
)
def test_what_postgresql_says(state: str, kind: type[ConnectorError]) -> None:
    assert type(postgres_errors.ours(errors.lookup(state)("as it says"))) is kind


def test_what_postgresql_cannot_say_is_tried_again() -> None:
    gone = postgres_errors.ours(psycopg.OperationalError("the connection is lost"))
    assert (type(gone), gone.retry) == (TargetUnavailable, True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            'connection to server at "db" (10.0.0.1), port 5432 failed: FATAL:  database "x" does not exist',
            PreflightError,
        ),
        ('failed: FATAL:  password authentication failed for user "u"', PreflightError),
        ('failed: FATAL:  no pg_hba.conf entry for host "10.0.0.2", user "u", database "d"', PreflightError),
        ("failed: FATAL:  the database system is starting up", TargetUnavailable),
        ("failed: FATAL:  sorry, too many clients already", TargetUnavailable),
        ("failed: Connection refused", TargetUnavailable),
    ],
)
def test_a_connection_that_is_not_made(text: str, kind: type[ConnectorError]) -> None:
    assert type(postgres_errors.ours(psycopg.OperationalError(text))) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, TargetUnavailable) for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_FSYNC)),
        *((code, PreflightError) for code in (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)),
        *((code, TargetDiffers) for code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_MISUSE)),
        *((code, TargetDiffers) for code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT_UNIQUE)),
    ],
)
def test_what_sqlite_says(code: int, kind: type[ConnectorError]) -> None:
    error = sqlite3.OperationalError("as it says")
    error.sqlite_errorcode = code
    assert type(sqlite_errors.ours(error)) is kind
