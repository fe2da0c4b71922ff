"""The moment of an initial load: a transaction's view and the place in the binary log that is equal to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pymysql

from connector.clock import Clock
from connector.config.model import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, query, release
from connector.mysql.server.mariadb_state import is_mariadb
from connector.mysql.server.source_state import end_position, gtid_executed

LOCK_WAIT_SECONDS: Final = 10
LOCK_WAIT_TIMEOUT: Final = 1205
UNKNOWN_SYSTEM_VARIABLE: Final = 1193
MAY_NOT_SEE: Final = frozenset({1227, 1401})  # XA RECOVER without XA_RECOVER_ADMIN
LIMITS_SINCE: Final = (5, 7, 8)  # a SELECT's time can be limited
PREPARED_LOGGED_SINCE: Final = (5, 7, 7)  # XA PREPARE writes the changes into the binary log
NAMED: Final = 5  # xids in a message
PATIENCE: Final = 5.0  # seconds for a prepared transaction to be decided
LOOK: Final = 0.1


@dataclass(frozen=True, slots=True)
class SnapshotPoint:
    """What the lock is held for.

    Args:
        position: the end of the binary log.
        gtid_set: what was executed; None where the source gives no GTIDs.
        time: µs since 1970 UTC, by the source's clock.
        server_id: the source's.
        prepared: the XA transactions that were prepared then; none where they were not asked for, or may not be seen.
    """

    position: SourcePosition
    gtid_set: str | None
    time: int
    server_id: int
    prepared: tuple[str, ...] = ()


def prepare_session(connection: Connection, source: Source) -> None:
    """Let a session live through a load that is slowed down by its reader, and see every column."""
    unlimited = ", max_statement_time = 0" if is_mariadb(connection) else ", max_execution_time = 0"
    if release(connection) < LIMITS_SINCE:
        unlimited = ""
    query(
        connection,
        f"SET SESSION lock_wait_timeout = %s, net_write_timeout = %s, wait_timeout = 31536000{unlimited}",
        (LOCK_WAIT_SECONDS, source.net_write_timeout),
    )
    try:
        # An invisible generated primary key (8.0.30) is in the binary log; the dictionary may be told to hide it.
        query(connection, "SET SESSION show_gipk_in_create_table_and_information_schema = ON")
    except pymysql.OperationalError as error:
        if error.args[0] != UNKNOWN_SYSTEM_VARIABLE:
            raise
    query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def fix_snapshot_point(connection: Connection, *, load: bool = False) -> SnapshotPoint:
    """Begin the transaction whose view stands for the position that is returned. No lock is left.

    Args:
        connection: a session of `prepare_session`.
        load: also tell which XA transactions are prepared: they are before the position, and the view does not show
            them, so a load that begins there lacks them for ever.

    Raises:
        SourceUnavailable: the lock was not to be had in time.
    """
    try:
        query(connection, "FLUSH TABLES WITH READ LOCK")
    except pymysql.OperationalError as error:
        if error.args[0] != LOCK_WAIT_TIMEOUT:
            raise
        raise SourceUnavailable(
            f"FLUSH TABLES WITH READ LOCK was not granted in {LOCK_WAIT_SECONDS} s: a statement runs that long",
            hint="wait for it, or end it: SELECT id, user, time, info FROM information_schema.processlist "
            "WHERE command <> 'Sleep' ORDER BY time DESC;",
        ) from error
    try:
        query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        position, gtid_set = end_position(connection), gtid_executed(connection)
        prepared = prepared_transactions(connection) if load else []
        now = query(connection, "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS t, @@server_id AS s")[0]
    finally:
        query(connection, "UNLOCK TABLES")
    return SnapshotPoint(position, gtid_set, int(now["t"]), int(now["s"]), tuple(prepared))


def await_decided(connection: Connection, clock: Clock) -> None:
    """Wait until the XA transactions that are prepared now are committed or rolled back.

    Raises:
        PreflightError: some are not, for `PATIENCE` seconds.
    """
    waiting = prepared_transactions(connection)
    give_up = clock.monotonic() + PATIENCE
    while waiting and clock.monotonic() < give_up:
        clock.sleep(LOOK)
        now = set(prepared_transactions(connection))
        waiting = [xid for xid in waiting if xid in now]
    if waiting:
        raise PreflightError(
            f"{len(waiting)} XA transactions have been prepared on the source for {PATIENCE:.0f} s: a snapshot cannot "
            "see their changes",
            hint="wait until they are committed or rolled back: XA RECOVER; where the owner has died: XA ROLLBACK xid;",
            xids=" ".join(waiting[:NAMED]) + (" …" if len(waiting) > NAMED else ""),
        )


def prepared_transactions(connection: Connection) -> list[str]:
    """The xids of those that are prepared.

    Who may not see them is not refused: the log stops when such a transaction is committed, and says so.
    """
    mariadb = is_mariadb(connection)
    if release(connection) < PREPARED_LOGGED_SINCE:
        return []  # such a transaction is logged when it is committed, as a whole: behind the position
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
    """As statements write it; the server gives both parts as one hexadecimal number, `0x…`."""
    digits = data.removeprefix("0x").lower()
    return f"X'{digits[: 2 * gtrid]}',X'{digits[2 * gtrid :]}',{form}"
