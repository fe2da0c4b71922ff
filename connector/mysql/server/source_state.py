"""The current extent of the source's binary log: first file, end, GTIDs, retention."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from connector.config.source import Source
from connector.errors import ConfigError, HistoriesDiffer, PreflightError, Purged
from connector.log.gtid.source_gtids import of_mariadb
from connector.log.rules import NEW_LOG
from connector.log.transaction.position import AfterGtids, SourcePosition, StreamStart
from connector.log.transaction.source_position import file_number
from connector.mysql.server import mariadb_state
from connector.mysql.server.connection import Connection, Row, query, query_one, release, session
from connector.mysql.server.source_facts import SHOW_REPLICAS

FIRST_EVENT = 4  # after the four magic bytes of a file
GIVEN = frozenset({"ON", "ON_PERMISSIVE"})  # values of gtid_mode with which new transactions have a GTID
NEW_WORDS = (8, 2)  # SHOW BINARY LOG STATUS; SHOW MASTER STATUS is gone in 8.4

SECONDS_SINCE = (8, 0)  # before, binary logs expire in days

_UUID = r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"
_GTID_SET = re.compile(rf"\s*{_UUID}\s*:.*", re.DOTALL)
_OWNER = re.compile(r"#\d+")  # in gtid_owned: the thread that commits
_FILE_POSITION = re.compile(r"(?P<file>[^:\s]+\.\d+):(?P<offset>\d{1,18})")  # what fits in 64 bits


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The start of reading.

    Args:
        position: file and offset; None: only the GTIDs are known.
        gtid_set: GTIDs before it in the source's text form; None: the source has none, or the start was configured as
            file and offset.
    """

    position: SourcePosition | None
    gtid_set: str | None

    @property
    def stream(self) -> StreamStart:
        """The start as requested from the source: by GTIDs if it has them."""
        if self.gtid_set is not None:
            return AfterGtids(self.gtid_set)
        if self.position is None:
            raise ValueError("a start is a position or a GTID set")
        return self.position


def log_end(source: Source) -> SourcePosition:
    """Position after the last event that a source has written, asked for in a session of its own."""
    with session(source) as connection:
        return end_position(connection)


def end_position(connection: Connection) -> SourcePosition:
    """Position after the last written event.

    Raises:
        PreflightError: there is no binary log.
    """
    row = log_status(connection)
    if row is None:
        raise _no_binary_log()
    return SourcePosition(row["File"], int(row["Position"]))


def log_status(connection: Connection) -> Row | None:
    """The server's status of its binary log: end and filters; None: there is no binary log."""
    modern = release(connection) >= NEW_WORDS and not mariadb_state.is_mariadb(connection)
    return query_one(connection, "SHOW BINARY LOG STATUS" if modern else "SHOW MASTER STATUS")


def gtid_executed(connection: Connection) -> str | None:
    """All executed GTIDs; None if the source has none."""
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.executed(connection)
    return _gtids(connection, "gtid_executed")


def gtid_begun(connection: Connection) -> str | None:
    """All executed GTIDs, and those of transactions that are being committed; None if the source has none.

    With semi-synchronous replication (AFTER_SYNC) a transaction is in the binary log, and so may be in Kafka, before it
    is executed: it waits for an acknowledgement. MySQL itself takes a replica's GTIDs for known by this set.
    """
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.executed(connection)  # counts a transaction once it is in the binary log
    # In this order: a commit takes a GTID from the first variable to the second.
    row = query_one(
        connection,
        "SELECT @@GLOBAL.gtid_owned AS owned, @@GLOBAL.gtid_executed AS executed, @@GLOBAL.gtid_mode AS mode",
    )
    if row is None or row["mode"] not in GIVEN:
        return None
    owned = _OWNER.sub("", _one_line(row["owned"]))
    return ",".join(part for part in (_one_line(row["executed"]), *owned.split(",")) if _GTID_SET.fullmatch(part))


def unlogged_gtids(connection: Connection) -> str | None:
    """GTIDs that a MariaDB replicated without logging them; None: none, or it is MySQL, where they are purged."""
    return mariadb_state.unlogged(connection) if mariadb_state.is_mariadb(connection) else None


def gtid_purged(connection: Connection) -> str | None:
    """GTIDs of purged transactions; None if the source has no GTIDs."""
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.purged(connection, oldest_position(connection).file)
    return _gtids(connection, "gtid_purged")


def binary_logs(connection: Connection) -> list[tuple[str, int]]:
    """The binary log files, oldest first, with their sizes."""
    return [(row["Log_name"], int(row["File_size"])) for row in query(connection, "SHOW BINARY LOGS")]


def seconds_until_purge(
    files: Sequence[str], expire_seconds: int, file: str, last_commit: int | None, now: int
) -> float | None:
    """A lower bound of the time until a file is purged; 0: it is; None: never, or unknown.

    A file is purged `expire_seconds` after its last write, which is not before the last known event in it. The newest
    file is never purged.

    Args:
        files: the files, oldest first.
        expire_seconds: seconds after its last event for which a file is kept; 0: unlimited.
        file: the file that is needed next.
        last_commit: commit time of the last known event in it, in µs.
        now: the time, in µs.
    """
    if file not in files:
        return 0.0
    if not expire_seconds or last_commit is None:
        return None
    if file == files[-1]:
        return float(expire_seconds)
    return last_commit / 1e6 + expire_seconds - now / 1e6


def sessions(connection: Connection) -> list[Row]:
    """The sessions that the user may see: Id, User, Command, Time (s) and others.

    Not read from information_schema: there MySQL converts each session's statement to utf8mb3, and fails (3854) at one
    with a character of four bytes.
    """
    return query(connection, "SHOW PROCESSLIST")


def is_read(connection: Connection, server_id: int) -> bool:
    """True if a replica with this server ID is registered; on MariaDB, if a producer with it reads the log.

    MariaDB shows replicas to administrators only, so a producer's dump connection has a lock there: see `mark_dump`.
    """
    if mariadb_state.is_mariadb(connection):
        return mariadb_state.is_dumped(connection, server_id)
    modern = release(connection) >= SHOW_REPLICAS
    rows = query(connection, "SHOW REPLICAS" if modern else "SHOW SLAVE HOSTS")
    return any(int(row["Server_Id" if modern else "Server_id"]) == server_id for row in rows)


def oldest_position(connection: Connection) -> SourcePosition:
    """Position of the first event that is not purged.

    Raises:
        PreflightError: there is no binary log.
    """
    logs = binary_logs(connection)
    if not logs:
        raise _no_binary_log()
    return SourcePosition(logs[0][0], FIRST_EVENT)


def resolve_start(connection: Connection, start: str) -> StartPosition:
    """Resolves `now`, `earliest`, a GTID set or `file:position`.

    Raises:
        ConfigError: it is none of these.
        PreflightError: there is no binary log.
    """
    if start == "now":
        return StartPosition(end_position(connection), gtid_executed(connection))
    if start == "earliest":
        return StartPosition(oldest_position(connection), gtid_purged(connection))
    return named_start(start)


def named_start(start: str) -> StartPosition:
    """The start that a GTID set or `file:position` names.

    Raises:
        ConfigError: it is neither.
    """
    if _GTID_SET.fullmatch(start) or of_mariadb(start):
        return StartPosition(None, "".join(start.split()))
    if found := _FILE_POSITION.fullmatch(start.strip()):
        return StartPosition(SourcePosition(found["file"], int(found["offset"])), None)
    raise ConfigError(
        "source.start is not a position in a binary log",
        hint="snapshot | now | earliest | a GTID set | binlog.000002:4",
        option="source.start",
        value=start,
    )


def check_available(connection: Connection, start: StreamStart) -> None:
    """Checks that the source still has what follows a start.

    Raises:
        Purged: it was purged; the message names what is missing.
        PreflightError: the start is a GTID set, and the source has no GTIDs.
        HistoriesDiffer: the source lacks what precedes the start.
    """
    if isinstance(start, SourcePosition):
        check_position_available(connection, start)
    else:
        check_gtids_available(connection, start.gtid_set)


def check_position_available(connection: Connection, position: SourcePosition) -> None:
    """Checks that the source still has what follows a position.

    Raises:
        Purged: it was purged; the message names the oldest position.
        HistoriesDiffer: the source's log ends before it.
    """
    sizes = dict(binary_logs(connection))
    if position.file in sizes and position.offset <= sizes[position.file]:
        return
    oldest, end = oldest_position(connection), end_position(connection)
    if position.file not in sizes and file_number(position.file) < file_number(oldest.file):
        raise _purged(
            connection, "the position is no longer in the source's binary log", position=position, oldest=oldest
        )
    raise HistoriesDiffer(
        "the position is not in the source's binary log",
        hint=f"was the source reset or replaced? then {NEW_LOG}",
        position=position,
        end=end,
    )


def check_gtids_available(connection: Connection, gtid_set: str) -> None:
    """Checks that the source has every transaction of `gtid_set`, and has purged no other.

    Raises:
        Purged: other transactions were purged; the message names them.
        PreflightError: the source has no GTIDs.
        HistoriesDiffer: the source lacks transactions of `gtid_set`: the trapped ones are listed.
    """
    if mariadb_state.is_mariadb(connection):
        mariadb_state.check_available(connection, gtid_set, oldest_position(connection))
        return
    row = query_one(
        connection,
        "SELECT @@GLOBAL.gtid_mode AS mode, GTID_SUBTRACT(@@GLOBAL.gtid_purged, %s) AS purged,"
        " GTID_SUBTRACT(%s, %s) AS trapped",
        (gtid_set, gtid_set, gtid_begun(connection) or ""),
    )
    if row is None or row["mode"] not in GIVEN:
        raise PreflightError(
            "a GTID set was given, but the source has no GTIDs",
            hint="set source.start to binlog.000002:4",
            setting="gtid_mode",
            found=row["mode"] if row else "OFF",
        )
    if row["trapped"]:
        raise HistoriesDiffer(
            "the source lacks transactions that the log has",
            hint=f"was the source replaced by one that had not yet received them? then {NEW_LOG}",
            lacking=_one_line(row["trapped"]),
        )
    if row["purged"]:
        oldest = oldest_position(connection)
        raise _purged(
            connection,
            "the source has purged transactions that the log lacks",
            purged=_one_line(row["purged"]),
            oldest=oldest,
        )


def _gtids(connection: Connection, variable: str) -> str | None:
    row = query_one(connection, f"SELECT @@GLOBAL.gtid_mode AS mode, @@GLOBAL.{variable} AS gtids")
    return _one_line(row["gtids"]) if row and row["mode"] in GIVEN else None


def _one_line(gtids: str) -> str:
    return "".join(str(gtids).split())


def _purged(connection: Connection, message: str, **where: object) -> Purged:
    if release(connection) >= SECONDS_SINCE:
        longer = "SET PERSIST binlog_expire_logs_seconds = 604800;"
    else:
        longer = "SET GLOBAL expire_logs_days = 7; (and in the server's configuration)"
    return Purged(
        message,
        hint=f"{NEW_LOG}, with an initial load, and keep binary logs longer: {longer}",
        **where,
    )


def _no_binary_log() -> PreflightError:
    return PreflightError(
        "the source writes no binary log", hint="start mysqld with log_bin = binlog", setting="log_bin", found="OFF"
    )
