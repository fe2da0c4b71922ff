"""How far a MariaDB's binary log reaches, by its GTIDs, and how its stream is asked for.

Facts are those of MariaDB's knowledge base ("Global Transaction ID", "BINLOG_GTID_POS") and of `sql/sql_repl.cc`.
"""

from __future__ import annotations

import struct

from connector.errors import HistoriesDiffer, PreflightError, Purged, Unsupported
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.source_gtids import lacking, of_mariadb
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, query, query_one

CAPABILITY = 4  # GTIDs are understood: otherwise the server writes BEGIN instead of them
WITH_ANNOTATIONS = 0x02  # flag of the dump; without them a stream has holes inside of transactions
FILE_START = 4


def is_mariadb(connection: Connection) -> bool:
    """Whether the server is a MariaDB, as it greets."""
    return "mariadb" in str(connection.get_server_info()).lower()  # type: ignore[no-untyped-call]


def executed(connection: Connection) -> str:
    """What the server has: every server's last GTID in its binary log, and what it took in without logging it.

    Never empty: where there is nothing, the number 0 of its own.
    """
    row = query_one(
        connection, "SELECT @@GLOBAL.gtid_binlog_state AS log, @@GLOBAL.gtid_slave_pos AS replica, @@server_id AS id"
    )
    if row is None:
        raise RuntimeError("a SELECT without a row")
    return str(DomainPosition.parse(f"{row['log']},{row['replica']}")) or f"0-{row['id']}-0"


def unlogged(connection: Connection) -> str | None:
    """The last GTIDs that it took from another server and that are not in its binary log; None: there are none."""
    row = query_one(connection, "SELECT @@GLOBAL.gtid_binlog_state AS log, @@GLOBAL.gtid_slave_pos AS replica")
    if row is None:
        raise RuntimeError("a SELECT without a row")
    log = DomainPosition.parse(row["log"])
    return ",".join(str(last) for last in DomainPosition.parse(row["replica"]) if str(last) not in log) or None


def purged(connection: Connection, oldest: str) -> str:
    """The GTIDs before the oldest file of its binary log; never empty, as `executed`.

    Args:
        connection: to the server.
        oldest: that file.
    """
    row = query_one(connection, "SELECT BINLOG_GTID_POS(%s, %s) AS gtids, @@server_id AS id", (oldest, FILE_START))
    if row is None or row["gtids"] is None:
        raise Purged("the oldest file of the binary log was purged while it was asked for", file=oldest)
    return str(DomainPosition.parse(row["gtids"])) or f"0-{row['id']}-0"


def check_available(connection: Connection, gtid_set: str, oldest: SourcePosition) -> None:
    """Make sure that the server still holds every transaction behind a position, and has all before it.

    Raises:
        Purged: transactions were purged; the message names the last one of each domain.
        PreflightError: the GTIDs are not MariaDB's.
        HistoriesDiffer: the source lacks transactions: the trapped ones are listed.
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
            f"the source lacks transactions that the log has: {missing}",
            hint="was the source replaced by one that had not yet received them? a new log needs another `service`",
        )
    known = DomainPosition.parse(gtid_set)
    gone = [
        str(last) for last in DomainPosition.parse(purged(connection, oldest.file)) if not _behind(known, str(last))
    ]
    if gone:
        raise Purged(
            f"the source has purged transactions up to {','.join(gone)}; the oldest there is {oldest}",
            hint="begin a new log with a snapshot (another `service`), and keep binary logs longer: "
            "SET GLOBAL binlog_expire_logs_seconds = 604800;",
        )


def _behind(known: DomainPosition, gtid: str) -> bool:
    return gtid.endswith("-0") or gtid in known


def ask(connection: Connection, gtid_set: str | None) -> None:
    """Tell the session how it is to be streamed to, and with GTIDs, what we have.

    A domain of which we have nothing is left out, and comes from its beginning. The strict mode of a replica is not
    asked for: it refuses a place between two numbers, as it is found when the last transaction is asked for again and
    another server wrote the one before it. Whether the source has what we have is checked by ourselves.

    Raises:
        Unsupported: the GTIDs are not MariaDB's.
    """
    if gtid_set and not of_mariadb(gtid_set):
        raise Unsupported("Not GTIDs of MariaDB", text=gtid_set[:200])
    known = None if gtid_set is None else ",".join(str(last) for last in DomainPosition.parse(gtid_set) if last.number)
    query(
        connection,
        "SET @mariadb_slave_capability = %s, @slave_connect_state = %s, @slave_gtid_strict_mode = 0, "
        "@slave_gtid_ignore_duplicates = 0",
        (CAPABILITY, known),
    )


def dump_body(server_id: int, start: SourcePosition | None) -> bytes:
    """The body of COM_BINLOG_DUMP; without a place what `ask` said counts."""
    if start is None:
        return struct.pack("<IHI", FILE_START, WITH_ANNOTATIONS, server_id)
    return struct.pack("<IHI", start.offset, WITH_ANNOTATIONS, server_id) + start.file.encode()
