"""The extent of a MariaDB's binary log by GTIDs, and the request for its stream.

Facts are those of MariaDB's knowledge base ("Global Transaction ID", "BINLOG_GTID_POS") and of `sql/sql_repl.cc`.
"""

from __future__ import annotations

import struct

from connector.errors import HistoriesDiffer, PreflightError, Purged, Unsupported
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.source_gtids import lacking, of_mariadb
from connector.log.rules import NEW_LOG
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, query, query_one

CAPABILITY = 4  # this replica knows GTID events; else the server sends BEGIN instead
WITH_ANNOTATIONS = 0x02  # flag of the dump; without annotations a stream has holes inside of transactions
FILE_START = 4
MARKS = 4  # dumps of one server ID that are told apart while newer ones end older ones


def is_mariadb(connection: Connection) -> bool:
    """True if the server's greeting is MariaDB's."""
    return "mariadb" in str(connection.get_server_info()).lower()  # type: ignore[no-untyped-call]


def executed(connection: Connection) -> str:
    """The server's GTIDs: the last one of each server in its binary log, and those replicated without being logged.

    Never empty: without any, number 0 of its own server id.
    """
    row = query_one(
        connection, "SELECT @@GLOBAL.gtid_binlog_state AS log, @@GLOBAL.gtid_slave_pos AS replica, @@server_id AS id"
    )
    if row is None:
        raise RuntimeError("a SELECT without a row")
    return str(DomainPosition.parse(f"{row['log']},{row['replica']}")) or f"0-{row['id']}-0"


def unlogged(connection: Connection) -> str | None:
    """The last replicated GTIDs that are not in its binary log; None: there are none."""
    row = query_one(connection, "SELECT @@GLOBAL.gtid_binlog_state AS log, @@GLOBAL.gtid_slave_pos AS replica")
    if row is None:
        raise RuntimeError("a SELECT without a row")
    log = DomainPosition.parse(row["log"])
    return ",".join(str(last) for last in DomainPosition.parse(row["replica"]) if str(last) not in log) or None


def view_position(connection: Connection) -> SourcePosition:
    """The position of the session's view, which has what the binary log has before it, and nothing else.

    Args:
        connection: a session in a transaction that began WITH CONSISTENT SNAPSHOT (MariaDB's knowledge base, "Enhanced
            consistency with START TRANSACTION WITH CONSISTENT SNAPSHOT").
    """
    rows = query(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {row["Variable_name"].lower(): row["Value"] for row in rows}
    return SourcePosition(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))


def purged(connection: Connection, oldest: str) -> str:
    """The GTIDs before the oldest file of the binary log; never empty, as `executed`.

    Args:
        connection: a session with the server.
        oldest: the oldest file.
    """
    row = query_one(connection, "SELECT BINLOG_GTID_POS(%s, %s) AS gtids, @@server_id AS id", (oldest, FILE_START))
    if row is None or row["gtids"] is None:
        raise Purged("the oldest file of the binary log was purged meanwhile", file=oldest)
    return str(DomainPosition.parse(row["gtids"])) or f"0-{row['id']}-0"


def check_available(connection: Connection, gtid_set: str, oldest: SourcePosition) -> None:
    """Checks that the server has every transaction before and after a position.

    Raises:
        Purged: transactions after it were purged; the message names the last one of each domain.
        PreflightError: the GTIDs are not MariaDB's.
        HistoriesDiffer: the source lacks transactions before it; they are listed.
    """
    if not of_mariadb(gtid_set):
        raise PreflightError(
            "the GTIDs are MySQL's, and the source is a MariaDB",
            hint="set source.start to a position like 0-1-100, or to mariadb-bin.000002:4",
            gtids=gtid_set[:200],
        )
    missing = lacking(gtid_set, executed(connection))
    if missing:
        raise HistoriesDiffer(
            "the source lacks transactions that the log has",
            hint=f"was the source replaced by one that had not yet received them? then {NEW_LOG}",
            lacking=str(missing),
        )
    known = DomainPosition.parse(gtid_set)
    gone = [
        str(last) for last in DomainPosition.parse(purged(connection, oldest.file)) if not _contains(known, str(last))
    ]
    if gone:
        raise Purged(
            "the source has purged transactions that the log lacks",
            hint=f"{NEW_LOG}, with an initial load, and keep binary logs longer: "
            "SET GLOBAL binlog_expire_logs_seconds = 604800;",
            purged_up_to=",".join(gone),
            oldest=oldest,
        )


def _contains(known: DomainPosition, gtid: str) -> bool:
    return gtid.endswith("-0") or gtid in known


def ask(connection: Connection, gtid_set: str | None) -> None:
    """Sets the session's variables for the stream; with GTIDs, what this replica has.

    A domain without transactions is omitted, so that it is sent from its beginning. Strict mode is off: it refuses
    a position between two numbers, which arises when the last transaction is requested again and another server wrote
    the one before it. `check_available` checks that the source has what this replica has.

    Raises:
        Unsupported: the GTIDs are not MariaDB's.
    """
    if gtid_set and not of_mariadb(gtid_set):
        raise Unsupported("the GTIDs are not MariaDB's", text=gtid_set[:200])
    known = None if gtid_set is None else ",".join(str(last) for last in DomainPosition.parse(gtid_set) if last.number)
    query(
        connection,
        "SET @mariadb_slave_capability = %s, @slave_connect_state = %s, @slave_gtid_strict_mode = 0, "
        "@slave_gtid_ignore_duplicates = 0",
        (CAPABILITY, known),
    )


def dump_body(server_id: int, start: SourcePosition | None) -> bytes:
    """The body of COM_BINLOG_DUMP; without a position the variables of `ask` apply."""
    if start is None:
        return struct.pack("<IHI", FILE_START, WITH_ANNOTATIONS, server_id)
    return struct.pack("<IHI", start.offset, WITH_ANNOTATIONS, server_id) + start.file.encode()


def mark_dump(connection: Connection, server_id: int) -> None:
    """Mark a session that is about to dump the log, for `is_dumped`: it has a user-level lock until its end.

    A newer producer's dump ends the older one's a moment later, so there are several locks, of which it takes a free
    one.

    Args:
        connection: the session.
        server_id: the replica's.
    """
    for name in _marks(server_id):
        row = query_one(connection, "SELECT GET_LOCK(%s, 0) AS got", (name,))
        if row is not None and row["got"] == 1:
            return


def is_dumped(connection: Connection, server_id: int) -> bool:
    """True if there is a session that was marked as the dump of a replica with this server ID; needs no privilege."""
    names = _marks(server_id)
    row = query_one(connection, f"SELECT {', '.join(['IS_USED_LOCK(%s)'] * len(names))}", names)
    return any(session is not None for session in (row or {}).values())


def _marks(server_id: int) -> tuple[str, ...]:
    return tuple(f"thl_dump_{server_id}_{number}" for number in range(MARKS))
