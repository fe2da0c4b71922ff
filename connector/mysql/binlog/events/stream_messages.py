"""Messages of a dump that are not events of the log: heartbeats and errors."""

from __future__ import annotations

from connector.errors import ConnectorError, CorruptBinlog, PreflightError, SourceUnavailable
from connector.log.rules import NEW_LOG
from connector.mysql.fields import Fields

END, FILE, OFFSET = 0, 1, 2  # fields of a heartbeat
LARGEST = 1 << 62  # beyond every offset
FATAL_READING = 1236  # ER_SOURCE_FATAL_ERROR_READING_BINLOG: purged, missing, damaged, or an unknown GTID
DENIED = frozenset({1045, 1142, 1227})
TRANSIENT = frozenset({1040, 1053, 1152, 1158, 1159, 1160, 1161, 3169, 4031})


def dump_heartbeat(body: bytes, second: bool, log_pos: int, offset: int, *, mariadb: bool = False) -> tuple[str, int]:
    """The position that a HEARTBEAT event of the dump reports: the source has sent its log up to there.

    Args:
        body: the file's name (version 1), or a list of type, length, value (version 2).
        second: true if it is version 2.
        log_pos: the header's position: the offset modulo 2^32, the only offset in version 1.
        offset: up to which the log is read; the heartbeat is not before it.
        mariadb: true if MariaDB sends it: beyond 4 GiB its version 1 has the offset (8 bytes) before the name.

    Returns:
        File and offset.

    Raises:
        CorruptBinlog: the position is missing or impossible.
    """
    if mariadb and log_pos == 0:
        fields = Fields(body)
        sent = fields.number(8)
        return _checked(fields.rest().decode(errors="replace"), sent)
    if not second:
        sent = offset & ~0xFFFFFFFF | log_pos
        return body.decode(errors="replace"), sent if sent >= offset else sent + (1 << 32)
    file, sent = "", -1
    fields = Fields(body)
    while fields.left:
        kind = fields.packed()
        if kind == END:
            break
        value = fields.packed_text()
        if kind == FILE:
            file = value.decode(errors="replace")
        elif kind == OFFSET:
            sent = Fields(value).packed()
    return _checked(file, sent)


def _checked(file: str, offset: int) -> tuple[str, int]:
    if not file or not 0 <= offset < LARGEST:
        raise CorruptBinlog("a heartbeat of the dump without a position")
    return file, offset


def refusal(code: int, text: bytes) -> ConnectorError:
    """The error for an ERR packet in the stream.

    Args:
        code: MySQL's error number.
        text: the server's message.
    """
    said = text.decode(errors="replace")
    if code == FATAL_READING and "same server" in said:
        return PreflightError(
            f"the source closed the stream: {said}",
            hint="set source.server_id to a number that no other server or replica has",
            code=code,
        )
    if code == FATAL_READING and "anonymous transaction" in said:
        return PreflightError(
            f"the source's binary log has a transaction without a GTID, written before gtid_mode was ON: {said}",
            hint="SET GLOBAL gtid_mode = ON_PERMISSIVE; until the producer has read past it, then ON. If the source is "
            f"another server than before, {NEW_LOG}: without a GTID nothing "
            "tells whether it has the transaction",
            code=code,
        )
    if code == FATAL_READING:
        return PreflightError(
            f"the source cannot send its binary log from this position: {said}",
            hint="SHOW BINARY LOGS lists the files that it still has; if the position is purged, or they were "
            f"reset, {NEW_LOG}",
            code=code,
        )
    if code in DENIED:
        return PreflightError(
            f"the source refuses its binary log: {said}", hint="GRANT REPLICATION SLAVE ON *.* TO the user", code=code
        )
    if code in TRANSIENT:
        return SourceUnavailable(f"the source ended the stream: {said}", code=code)
    return ConnectorError(f"the source ended the stream of its binary log: {said}", code=code)
