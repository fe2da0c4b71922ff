"""How far the source's binary log reaches, now: its first file, its end, its GTIDs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.errors import ConfigError, HistoriesDiffer, PreflightError, Purged
from connector.log.gtid.source_gtids import of_mariadb
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.source_position import file_number
from connector.mysql.server import mariadb_state
from connector.mysql.server.connection import Connection, Row, query, query_one, release
from connector.mysql.server.dump import AfterGtids, StreamStart

FIRST_EVENT = 4  # every file begins with four magic bytes
GIVEN = frozenset({"ON", "ON_PERMISSIVE"})  # gtid_mode: what is written now has a GTID
NEW_WORDS = (8, 2)  # SHOW BINARY LOG STATUS; SHOW MASTER STATUS is gone in 8.4

SECONDS_SINCE = (8, 0)  # before, binary logs expire after days

_UUID = r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"
_GTID_SET = re.compile(rf"\s*{_UUID}\s*:.*", re.DOTALL)
_FILE_POSITION = re.compile(r"(?P<file>[^:\s]+\.\d+):(?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading is to begin.

    Args:
        position: the file and offset, where it is known; None when only the GTIDs say it.
        gtid_set: what is before it, as the source writes GTID sets; None where the source has none, or where a file
            and offset were asked for.
    """

    position: SourcePosition | None
    gtid_set: str | None

    @property
    def stream(self) -> StreamStart:
        """The same, as the source is asked for it: by GTIDs where it has them."""
        if self.gtid_set is not None:
            return AfterGtids(self.gtid_set)
        if self.position is None:
            raise ValueError("a start is a place or a GTID set")
        return self.position


def end_position(connection: Connection) -> SourcePosition:
    """The place after the last event written.

    Raises:
        PreflightError: there is no binary log.
    """
    row = log_status(connection)
    if row is None:
        raise _no_binary_log()
    return SourcePosition(row["File"], int(row["Position"]))


def log_status(connection: Connection) -> Row | None:
    """What the server says of its binary log: its end, and what it leaves out of it; None: there is none."""
    modern = release(connection) >= NEW_WORDS and not mariadb_state.is_mariadb(connection)
    return query_one(connection, "SHOW BINARY LOG STATUS" if modern else "SHOW MASTER STATUS")


def gtid_executed(connection: Connection) -> str | None:
    """Every GTID the source has; None where it gives none."""
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.executed(connection)
    return _gtids(connection, "gtid_executed")


def unlogged_gtids(connection: Connection) -> str | None:
    """What a MariaDB took in without logging it; None: nothing, or another server, which counts it as purged."""
    return mariadb_state.unlogged(connection) if mariadb_state.is_mariadb(connection) else None


def gtid_purged(connection: Connection) -> str | None:
    """The GTIDs whose transactions its binary log no longer holds; None where it gives none."""
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.purged(connection, oldest_position(connection).file)
    return _gtids(connection, "gtid_purged")


def binary_logs(connection: Connection) -> list[tuple[str, int]]:
    """The files that are there, oldest first, with their sizes."""
    return [(row["Log_name"], int(row["File_size"])) for row in query(connection, "SHOW BINARY LOGS")]


def oldest_position(connection: Connection) -> SourcePosition:
    """The first event that is still there.

    Raises:
        PreflightError: there is no binary log.
    """
    logs = binary_logs(connection)
    if not logs:
        raise _no_binary_log()
    return SourcePosition(logs[0][0], FIRST_EVENT)


def resolve_start(connection: Connection, start: str) -> Start:
    """Turn `now`, `earliest`, a GTID set or `file:position` into a place.

    Raises:
        ConfigError: it is none of these.
        PreflightError: there is no binary log.
    """
    if start == "now":
        return Start(end_position(connection), gtid_executed(connection))
    if start == "earliest":
        return Start(oldest_position(connection), gtid_purged(connection))
    if _GTID_SET.fullmatch(start) or of_mariadb(start):
        return Start(None, "".join(start.split()))
    if place := _FILE_POSITION.fullmatch(start.strip()):
        return Start(SourcePosition(place["file"], int(place["offset"])), None)
    raise ConfigError(
        f"source.start: {start!r} is not a place in a binary log",
        hint="snapshot | now | earliest | a GTID set | binlog.000002:4",
    )


def check_available(connection: Connection, start: StreamStart) -> None:
    """Make sure that the source still holds what comes after a place.

    Raises:
        Purged: it is no longer there; the message names what is missing.
        PreflightError: a GTID set was given, and the source gives no GTIDs.
        HistoriesDiffer: the source lacks what is before it.
    """
    if isinstance(start, SourcePosition):
        check_position_available(connection, start)
    else:
        check_gtids_available(connection, start.gtid_set)


def check_position_available(connection: Connection, position: SourcePosition) -> None:
    """Make sure that the source still holds what comes after `position`.

    Raises:
        Purged: it is no longer there; the message names the oldest that is.
        HistoriesDiffer: the source's log has not come that far.
    """
    sizes = dict(binary_logs(connection))
    if position.file in sizes and position.offset <= sizes[position.file]:
        return
    oldest, end = oldest_position(connection), end_position(connection)
    if position.file not in sizes and file_number(position.file) < file_number(oldest.file):
        raise _purged(connection, f"{position} is no longer in the source's binary log; the oldest there is {oldest}")
    raise HistoriesDiffer(
        f"{position} is not in the source's binary log, which ends at {end}",
        hint="was the source reset or replaced? a new log needs another `service`",
    )


def check_gtids_available(connection: Connection, gtid_set: str) -> None:
    """Make sure that the source still holds every transaction that is not in `gtid_set`, and has all that are.

    Raises:
        Purged: transactions were purged; the message names them.
        PreflightError: the source gives no GTIDs.
        HistoriesDiffer: the source lacks transactions of `gtid_set`: the trapped ones are listed.
    """
    if mariadb_state.is_mariadb(connection):
        mariadb_state.check_available(connection, gtid_set, oldest_position(connection))
        return
    row = query_one(
        connection,
        "SELECT @@GLOBAL.gtid_mode AS mode, GTID_SUBTRACT(@@GLOBAL.gtid_purged, %s) AS purged,"
        " GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed) AS trapped",
        (gtid_set, gtid_set),
    )
    if row is None or row["mode"] not in GIVEN:
        raise PreflightError(
            f"a GTID set was given, but the source has gtid_mode={row['mode'] if row else 'OFF'}",
            hint="set source.start to binlog.000002:4",
        )
    if row["trapped"]:
        raise HistoriesDiffer(
            f"the source lacks transactions that the log has: {_one_line(row['trapped'])}",
            hint="was the source replaced by one that had not yet received them? a new log needs another `service`",
        )
    if row["purged"]:
        oldest = oldest_position(connection)
        raise _purged(connection, f"the source has purged {_one_line(row['purged'])}; the oldest there is {oldest}")


def _gtids(connection: Connection, variable: str) -> str | None:
    row = query_one(connection, f"SELECT @@GLOBAL.gtid_mode AS mode, @@GLOBAL.{variable} AS gtids")
    return _one_line(row["gtids"]) if row and row["mode"] in GIVEN else None


def _one_line(gtids: str) -> str:
    return "".join(str(gtids).split())


def _purged(connection: Connection, message: str) -> Purged:
    if release(connection) >= SECONDS_SINCE:
        longer = "SET PERSIST binlog_expire_logs_seconds = 604800;"
    else:
        longer = "SET GLOBAL expire_logs_days = 7; (and in the server's configuration)"
    return Purged(
        message, hint=f"begin a new log with a snapshot (another `service`), and keep binary logs longer: {longer}"
    )


def _no_binary_log() -> PreflightError:
    return PreflightError("the source writes no binary log", hint="start mysqld with log_bin = binlog")
