"""Errors of a target: those that are retried, and those that end the applier at once."""

from __future__ import annotations

import os
import resource
import sqlite3
import ssl
from pathlib import Path

import psycopg
import pymysql
import pytest
from psycopg import errors
from psycopg.pq import DiagnosticField
from pymysql.constants import CR

from connector.clock import SystemClock
from connector.errors import (
    ConnectorError,
    PreflightError,
    TargetDamaged,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)
from connector.targets.mysql.server import errors as mysql_errors
from connector.targets.postgres import errors as postgres_errors
from connector.targets.sqlite import errors as sqlite_errors
from connector.targets.sqlite.target import SqliteTarget


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        *(
            (state, TargetUnavailable)
            for state in ("08006", "08P01", "57P01", "57P03", "53100", "53300", "40001", "40P01")
        ),
        *((state, TargetUnavailable) for state in ("55P03", "57014", "25P03", "25006", "58030", "55006")),
        *((state, TargetUnavailable) for state in ("XX000", "72000", "42P06", "42P07")),
        *((state, TargetDiffers) for state in ("0A000", "2BP01", "42P01", "42703", "23505", "25P02")),
        *((state, TargetDamaged) for state in ("XX001", "XX002")),
        *((state, TargetDiffers) for state in ("55000", "44000", "3F000", "2F005", "39000")),
        *((state, ValueNotRepresentable) for state in ("22003", "22021", "54000", "54011")),
        *((state, PreflightError) for state in ("42501", "28P01", "28000", "3D000")),
    ],
)
def test_postgresql_errors_are_translated(state: str, kind: type[ConnectorError]) -> None:
    assert type(postgres_errors.connector_error(errors.lookup(state)("as it says"))) is kind


def test_mysql_that_is_read_only_is_refused_with_both_ways_out() -> None:
    error = mysql_errors.connector_error(pymysql.OperationalError(1290, "running with the --read-only option"))
    assert isinstance(error, PreflightError)
    assert ("target.url" in error.hint, "SET GLOBAL read_only = OFF" in error.hint) == (True, True)


@pytest.mark.parametrize(
    ("state", "field", "told", "retry"),
    [
        *(
            ("23505", DiagnosticField.CONSTRAINT_NAME, index, True)
            for index in ("pg_namespace_nspname_index", "pg_type_typname_nsp_index", "pg_class_relname_nsp_index")
        ),
        ("23505", DiagnosticField.CONSTRAINT_NAME, "users_pkey", False),
        ("0A000", DiagnosticField.SOURCE_FUNCTION, "RevalidateCachedQuery", True),
        ("0A000", DiagnosticField.SOURCE_FUNCTION, "ATExecAlterColumnType", False),
    ],
)
def test_concurrent_definition_is_retried(state: str, field: DiagnosticField, told: str, retry: bool) -> None:
    error = errors.lookup(state)("as it says", info={int(field): told.encode()})
    assert postgres_errors.connector_error(error).retry == retry


@pytest.mark.parametrize(
    ("text", "function", "hint"),
    [
        ('permission denied to create temporary tables in database "d"', "InitTempTableNamespace", "GRANT TEMPORARY"),
        ('new row violates row-level security policy for table "t"', "ExecWithCheckOptions", "BYPASSRLS"),
        ("must be owner of table t", "aclcheck_error", "OWNER TO"),
        ("permission denied for table t", "aclcheck_error", "GRANT ALL ON TABLE"),
        ("permission denied for schema s", "aclcheck_error", "GRANT CREATE, USAGE ON SCHEMA"),
        ("permission denied for database d", "aclcheck_error", "GRANT CREATE ON DATABASE"),
    ],
)
def test_a_missing_privilege_has_its_own_remedy(text: str, function: str, hint: str) -> None:
    info = {
        int(DiagnosticField.SOURCE_FUNCTION): function.encode(),
        int(DiagnosticField.MESSAGE_PRIMARY): text.encode(),
    }
    assert hint in postgres_errors.connector_error(errors.lookup("42501")(text, info=info)).hint


def test_a_commit_over_too_many_tables_names_the_server_s_setting() -> None:
    info = {int(DiagnosticField.MESSAGE_HINT): b'You might need to increase "max_locks_per_transaction".'}
    failed = postgres_errors.connector_error(errors.lookup("53200")("out of shared memory", info=info))
    assert (failed.retry, "raise max_locks_per_transaction" in failed.hint) == (True, True)
    assert not postgres_errors.connector_error(errors.lookup("53200")("out of memory", info={})).hint


def test_connection_error_without_sqlstate_is_retried() -> None:
    gone = postgres_errors.connector_error(psycopg.OperationalError("the connection is lost"))
    assert (type(gone), gone.retry) == (TargetUnavailable, True)


PASSWORD = 'password authentication failed for user "u"'


def several(*attempts: tuple[str, str]) -> str:
    """The message of psycopg 3.3 after several failed attempts."""
    said = [f'connection failed: connection to server at "10.0.0.1", port 1 failed: {text}' for _, text in attempts]
    told = [
        f"- host: '{host}', port: '1', hostaddr: '10.0.0.1': {text}"
        for (host, _), text in zip(attempts, said, strict=True)
    ]
    return "\n".join([said[-1], "Multiple connection attempts failed. All failures were:", *told])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            'connection to server at "db" (10.0.0.1), port 5432 failed: FATAL:  database "x" does not exist',
            PreflightError,
        ),
        ('failed: FATAL:  password authentication failed for user "u"', PreflightError),
        ('failed: FATAL:  no pg_hba.conf entry for host "10.0.0.2", user "u", database "d"', PreflightError),
        ('failed: FATAL:  permission denied for database "d"', PreflightError),
        ("failed: server does not support SSL, but SSL was required", PreflightError),
        ("failed: FATAL:  the database system is starting up", TargetUnavailable),
        ("failed: FATAL:  sorry, too many clients already", TargetUnavailable),
        ("failed: Connection refused", TargetUnavailable),
        (several(("a", PASSWORD), ("b", "the database system is starting up")), TargetUnavailable),
        (several(("a", "Connection refused"), ("b", PASSWORD)), TargetUnavailable),
        (several(("a", PASSWORD), ("b", 'database "x" does not exist')), PreflightError),
        (several(("localhost", "Connection refused"), ("localhost", PASSWORD)), PreflightError),
    ],
)
def test_failed_connection_has_the_error_of_its_cause(text: str, kind: type[ConnectorError]) -> None:
    assert type(postgres_errors.connector_error(psycopg.OperationalError(text))) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, TargetUnavailable) for code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_FSYNC)),
        *((code, PreflightError) for code in (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN)),
        *((code, TargetDiffers) for code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISUSE)),
        (sqlite3.SQLITE_CORRUPT, TargetDamaged),
        *((code, TargetDiffers) for code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT_UNIQUE)),
    ],
)
def test_sqlite_errors_are_translated(code: int, kind: type[ConnectorError]) -> None:
    error = sqlite3.OperationalError("as it says")
    error.sqlite_errorcode = code
    assert type(sqlite_errors.connector_error(error, Path("missing"))) is kind


@pytest.mark.parametrize(
    ("code", "named"), [(sqlite3.SQLITE_FULL, True), (sqlite3.SQLITE_IOERR_WRITE, True), (sqlite3.SQLITE_BUSY, False)]
)
def test_full_or_failing_disk_of_sqlite_is_named(code: int, named: bool) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    assert ("the disk of target.url is full" in sqlite_errors.connector_error(error).hint) is named


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_DBMOVED])
def test_sqlite_errors_of_an_open_file_are_retried(code: int) -> None:
    error = sqlite3.OperationalError("as it says")
    error.sqlite_errorcode = code
    assert sqlite_errors.connector_error(error).retry


def test_missing_descriptors_are_retried_and_a_folder_is_not(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    SqliteTarget(file, SystemClock()).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(TargetUnavailable):
            SqliteTarget(file, SystemClock())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.raises(PreflightError):
        SqliteTarget(tmp_path, SystemClock())


@pytest.mark.parametrize("reason", ["TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_EXPIRED"])
def test_alert_about_the_client_certificate_is_no_passing_error(reason: str) -> None:
    alert = ssl.SSLError()
    alert.reason = reason
    lost = pymysql.OperationalError(CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query ({reason})")
    lost.__context__ = alert
    assert isinstance(mysql_errors.connector_error(lost), PreflightError)
    alert.reason = "TLSV1_ALERT_INTERNAL_ERROR"
    assert isinstance(mysql_errors.connector_error(lost), TargetUnavailable)
