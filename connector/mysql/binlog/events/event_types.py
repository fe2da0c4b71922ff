"""Types of events: their codes and names, and events that are skipped or refused."""

from __future__ import annotations

from typing import Final

from connector import metrics
from connector.errors import CorruptBinlog, Unsupported
from connector.log.rules import NEW_LOG

HEADER: Final = 19  # bytes of an event's header, since MySQL 4.0
STOP, ROTATE, FORMAT_DESCRIPTION, XID = 3, 4, 15, 16
GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, GTID_TAGGED = 33, 34, 35, 42
MARIADB_GTID, MARIADB_GTID_LIST = 162, 163

NAMES = {
    0: "UNKNOWN",
    1: "START_V3",
    2: "QUERY",
    3: "STOP",
    4: "ROTATE",
    5: "INTVAR",
    6: "LOAD",
    8: "CREATE_FILE",
    9: "APPEND_BLOCK",
    10: "EXEC_LOAD",
    11: "DELETE_FILE",
    12: "NEW_LOAD",
    13: "RAND",
    14: "USER_VAR",
    15: "FORMAT_DESCRIPTION",
    16: "XID",
    17: "BEGIN_LOAD_QUERY",
    18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP",
    20: "PRE_GA_WRITE_ROWS",
    21: "PRE_GA_UPDATE_ROWS",
    22: "PRE_GA_DELETE_ROWS",
    23: "WRITE_ROWS_V1",
    24: "UPDATE_ROWS_V1",
    25: "DELETE_ROWS_V1",
    26: "INCIDENT",
    27: "HEARTBEAT",
    28: "IGNORABLE",
    29: "ROWS_QUERY",
    30: "WRITE_ROWS",
    31: "UPDATE_ROWS",
    32: "DELETE_ROWS",
    33: "GTID",
    34: "ANONYMOUS_GTID",
    35: "PREVIOUS_GTIDS",
    36: "TRANSACTION_CONTEXT",
    37: "VIEW_CHANGE",
    38: "XA_PREPARE",
    39: "PARTIAL_UPDATE_ROWS",
    40: "TRANSACTION_PAYLOAD",
    41: "HEARTBEAT_V2",
    42: "GTID_TAGGED",
    160: "MARIADB_ANNOTATE_ROWS",
    161: "MARIADB_BINLOG_CHECKPOINT",
    162: "MARIADB_GTID",
    163: "MARIADB_GTID_LIST",
    164: "MARIADB_START_ENCRYPTION",
    165: "MARIADB_QUERY_COMPRESSED",
    166: "MARIADB_WRITE_ROWS_COMPRESSED_V1",
    167: "MARIADB_UPDATE_ROWS_COMPRESSED_V1",
    168: "MARIADB_DELETE_ROWS_COMPRESSED_V1",
    169: "MARIADB_WRITE_ROWS_COMPRESSED",
    170: "MARIADB_UPDATE_ROWS_COMPRESSED",
    171: "MARIADB_DELETE_ROWS_COMPRESSED",
}
# Without changes: begin and end of a file, GTIDs of earlier files, group replication's bookkeeping, texts of statements
# (29), and MariaDB's counterparts.
WITHOUT_CHANGES = frozenset({1, 3, 28, 29, 35, 36, 37, 160, 161, 163})
ENCRYPTION = 164  # the rest of the file is encrypted; a stream is not
INCIDENT = 26
LOADS = frozenset({6, 8, 9, 10, 11, 12, 17, 18})
PRE_GA_ROWS = frozenset({20, 21, 22})


def name(code: int) -> str:
    """The type's name and number for messages."""
    return f"{NAMES[code]}({code})" if code in NAMES else str(code)


def refuse(code: int, ignorable: bool, body: bytes, service: str) -> None:
    """Skips an event without changes and counts it; raises at any other.

    Args:
        code: type of the event.
        ignorable: true if the source marked it as ignorable.
        body: the event without its header.
        service: label of the metric.

    Raises:
        Unsupported: it may have changes that cannot be decoded.
        CorruptBinlog: the source reports lost events.
    """
    if code == ENCRYPTION:
        fetch = "fetch it from the server: mariadb-binlog --read-from-remote-server --raw"
        encrypted = Unsupported(f"the file is encrypted by its server (encrypt_binlog): {name(code)}", hint=fetch)
        raise encrypted.with_file_hint(fetch)
    if code in WITHOUT_CHANGES or ignorable:
        metrics.ignored_events.labels(service, name(code)).inc()
        return
    if code == INCIDENT:
        said = body[3:].decode(errors="replace")
        raise CorruptBinlog(
            f"the source reports lost events: {said}",
            hint=f"changes are missing here: {NEW_LOG}",
            incident=int.from_bytes(body[:2], "little"),
        ).with_file_hint(LEAVE_OUT)
    what = f"an event of the unknown type {name(code)}"
    if code in PRE_GA_ROWS:
        what = f"rows as 5.1.5 to 5.1.17 logged them, without the sizes of values: {name(code)}"
    raise Unsupported(what).with_file_hint(LEAVE_OUT)


def stands_alone(code: int) -> bool:
    """True if salvage leaves out only this event if it cannot be read: an incident, LOAD DATA, or an unknown type."""
    return code == INCIDENT or code in LOADS or code in PRE_GA_ROWS or code == 0 or code not in NAMES


LEAVE_OUT = "--salvage leaves this event out and reads on"
ROW_FORMAT = "SET GLOBAL binlog_format = ROW, and in the sessions that have set it otherwise"
