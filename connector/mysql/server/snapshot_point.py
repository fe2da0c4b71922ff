"""The snapshot point: a position of the binary log between two transactions, and the source's facts there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pymysql

from connector.clock import Clock
from connector.config.source import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, query, release
from connector.mysql.server.mariadb_state import is_mariadb
from connector.mysql.server.source_state import end_position, gtid_executed, sessions

LOCK_SECONDS: Final = 1  # that the read lock is waited for: commits wait meanwhile
LOCK_PATIENCE: Final = 60.0  # seconds of attempts to get it
LOCK_PAUSE: Final = 0.5  # seconds between two of them
DEFINITION_SECONDS: Final = 10  # that the lock of a table's definition is waited for
STATEMENTS: Final = frozenset({"Query", "Execute"})  # commands of a session
OF_THE_SERVER: Final = frozenset({"system user", "event_scheduler"})
LOCK_WAIT_TIMEOUT: Final = 1205
UNKNOWN_SYSTEM_VARIABLE: Final = 1193
MAY_NOT_SEE: Final = frozenset({1227, 1401})  # XA RECOVER without XA_RECOVER_ADMIN
VERSION_DEPENDENT: Final = (
    # The binary log has generated invisible primary keys (8.0.30); the dictionary may hide them.
    "show_gipk_in_create_table_and_information_schema = ON",
    # The dictionary's numbers of rows may be a day old.
    "information_schema_stats_expiry = 0",
)
PREPARED_LOGGED_SINCE: Final = (5, 7, 7)  # XA PREPARE logs the changes
NAMED: Final = 5  # xids in a message
PATIENCE: Final = 5.0  # seconds to wait for prepared transactions
POLL_SECONDS: Final = 0.1


class LockNotGranted(SourceUnavailable):
    """FLUSH TABLES WITH READ LOCK would have waited for longer than writers may wait."""


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """Facts read under the lock.

    Args:
        position: the end of the binary log.
        gtid_set: executed GTIDs; None if the source has none.
        time: µs since 1970 UTC, by the source's clock.
        server_id: the source's.
        prepared: xids of XA transactions prepared then; empty if not requested, or if the user may not see them.
    """

    position: SourcePosition
    gtid_set: str | None
    time: int
    server_id: int
    prepared: tuple[str, ...] = ()


def prepare_session(connection: Connection, source: Source) -> None:
    """Prepares a session for a long load: it may be silent for long, and sees all columns."""
    query(
        connection,
        "SET SESSION lock_wait_timeout = %s, net_write_timeout = %s, wait_timeout = 31536000",
        (DEFINITION_SECONDS, source.net_write_timeout),
    )
    for setting in VERSION_DEPENDENT:
        try:
            query(connection, f"SET SESSION {setting}")
        except pymysql.OperationalError as error:
            if error.args[0] != UNKNOWN_SYSTEM_VARIABLE:
                raise
    query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


@contextmanager
def read_lock(connection: Connection) -> Iterator[None]:
    """FLUSH TABLES WITH READ LOCK; commits and DDL wait meanwhile.

    The lock waits for running statements, and those that write wait for it. It is given up after a second: a statement
    may itself wait for a row of a transaction whose COMMIT waits for the lock, which the server does not find out.

    Args:
        connection: a session of `prepare_session`.

    Raises:
        LockNotGranted: a statement runs for more than a second, or the lock was not granted in one.
    """
    hint = "wait for it, or end it: SHOW FULL PROCESSLIST"
    if (seconds := _longest_statement(connection)) > LOCK_SECONDS:
        raise LockNotGranted(
            "FLUSH TABLES WITH READ LOCK is not asked for while a statement runs", hint=hint, seconds=seconds
        )
    before = query(connection, "SELECT @@SESSION.lock_wait_timeout AS seconds")[0]["seconds"]
    query(connection, "SET SESSION lock_wait_timeout = %s", (LOCK_SECONDS,))
    try:
        query(connection, "FLUSH TABLES WITH READ LOCK")
    except pymysql.OperationalError as error:
        if error.args[0] != LOCK_WAIT_TIMEOUT:
            raise
        raise LockNotGranted(
            "FLUSH TABLES WITH READ LOCK was not granted in time: a statement runs longer",
            hint=hint,
            seconds=LOCK_SECONDS,
        ) from error
    finally:
        query(connection, "SET SESSION lock_wait_timeout = %s", (before,))
    try:
        yield
    finally:
        query(connection, "UNLOCK TABLES")


def _longest_statement(connection: Connection) -> int:
    """Seconds that the oldest running statement of others has run."""
    own = query(connection, "SELECT CONNECTION_ID() AS id")[0]["id"]
    return max(
        (
            int(row["Time"] or 0)
            for row in sessions(connection)
            if row["Command"] in STATEMENTS and row["Id"] != own and row["User"] not in OF_THE_SERVER
        ),
        default=0,
    )


def fix_snapshot_point(connection: Connection, clock: Clock, *, load: bool = False) -> SnapshotPoint:
    """Reads the end of the binary log while commits and DDL wait.

    Args:
        connection: a session of `prepare_session`.
        clock: the clock for the pauses between attempts to get the lock.
        load: also read prepared XA transactions: they are before the position, and no view shows their changes.

    Raises:
        LockNotGranted: it was not within `LOCK_PATIENCE`.
    """
    give_up = clock.monotonic() + LOCK_PATIENCE
    while True:
        try:
            with read_lock(connection):
                position, gtid_set = end_position(connection), gtid_executed(connection)
                prepared = prepared_transactions(connection) if load else []
                sql = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS t, @@server_id AS s"
                now = query(connection, sql)[0]
        except LockNotGranted:
            if clock.monotonic() >= give_up:
                raise
            clock.sleep(LOCK_PAUSE)
        else:
            return SnapshotPoint(position, gtid_set, int(now["t"]), int(now["s"]), tuple(prepared))


def check_one_server(connection: Connection, others: Sequence[Connection]) -> None:
    """Checks that sessions are of one server: behind a proxy they may not be, and the lock is one server's.

    Raises:
        PreflightError: they are not.
    """
    sql = "SELECT @@hostname AS host, @@port AS port, @@server_id AS server_id, @@datadir AS datadir"
    if not is_mariadb(connection):
        sql += ", @@server_uuid AS server_uuid"
    first = query(connection, sql)[0]
    for other in others:
        if (found := query(other, sql)[0]) != first:
            raise PreflightError(
                "the connections of a load reach different servers",
                hint="connect to one server, past any proxy; or set source.snapshot.connections = 1",
                servers=f"{first['host']}:{first['port']} {found['host']}:{found['port']}",
            )


def await_decided(connection: Connection, clock: Clock) -> None:
    """Waits until the XA transactions prepared now are committed or rolled back.

    Raises:
        PreflightError: some are still prepared after `PATIENCE` seconds.
    """
    waiting = prepared_transactions(connection)
    give_up = clock.monotonic() + PATIENCE
    while waiting and clock.monotonic() < give_up:
        clock.sleep(POLL_SECONDS)
        now = set(prepared_transactions(connection))
        waiting = [xid for xid in waiting if xid in now]
    if waiting:
        raise PreflightError(
            "XA transactions stay prepared on the source: a snapshot cannot see their changes",
            hint="wait until they are committed or rolled back: XA RECOVER; where the owner has died: XA ROLLBACK xid;",
            prepared=len(waiting),
            waited_seconds=f"{PATIENCE:.0f}",
            xids=" ".join(waiting[:NAMED]) + (" …" if len(waiting) > NAMED else ""),
        )


def prepared_transactions(connection: Connection) -> list[str]:
    """The xids of prepared XA transactions.

    Empty for a user who may not see them: the log stops with an error when such a transaction is committed.
    """
    mariadb = is_mariadb(connection)
    if release(connection) < PREPARED_LOGGED_SINCE:
        return []  # logged as a whole when it is committed, so after the position
    try:
        found = query(connection, "XA RECOVER FORMAT='SQL'" if mariadb else "XA RECOVER CONVERT XID")
    except pymysql.MySQLError as error:
        if error.args[0] not in MAY_NOT_SEE:
            raise
        return []
    if mariadb:
        return [str(row["data"]) for row in found]
    return [_xid(int(row["formatID"]), int(row["gtrid_length"]), str(row["data"])) for row in found]


def _xid(form: int, gtrid: int, data: str) -> str:
    """An xid as statements write it; the server returns both parts as one hexadecimal number, `0x…`."""
    digits = data.removeprefix("0x").lower()
    return f"X'{digits[: 2 * gtrid]}',X'{digits[2 * gtrid :]}',{form}"
