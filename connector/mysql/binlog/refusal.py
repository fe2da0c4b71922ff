"""What the server says instead of an event."""

from __future__ import annotations

from connector.errors import ConnectorError, PreflightError, SourceUnavailable

FATAL_READING = 1236  # ER_SOURCE_FATAL_ERROR_READING_BINLOG: purged, not there, damaged, or a GTID it lacks
DENIED = frozenset({1045, 1142, 1227})
PASSING = frozenset({1040, 1053, 1152, 1158, 1159, 1160, 1161, 3169, 4031})


def refusal(code: int, text: bytes) -> ConnectorError:
    """The error for an ERR packet in the stream."""
    said = text.decode(errors="replace")
    if code == FATAL_READING and "same server" in said:
        return PreflightError(
            f"the source closed the stream: {said}", hint="give source.server_id a number nobody else uses", code=code
        )
    if code == FATAL_READING and "anonymous transaction" in said:
        return PreflightError(
            f"the source's binary log has a transaction without a GTID, from when gtid_mode was not ON: {said}",
            hint="SET GLOBAL gtid_mode = ON_PERMISSIVE; until the producer has gone past it, then ON. No other server "
            "can tell whether it has it; where the source is not the server that was read before, begin a new service "
            "with a snapshot",
            code=code,
        )
    if code == FATAL_READING:
        return PreflightError(
            f"the source cannot give its binary log from here: {said}",
            hint="SHOW BINARY LOGS tells what it still has; a log whose place is gone needs a new snapshot",
            code=code,
        )
    if code in DENIED:
        return PreflightError(
            f"the source refuses its binary log: {said}", hint="GRANT REPLICATION SLAVE ON *.* TO the user", code=code
        )
    if code in PASSING:
        return SourceUnavailable(f"the source ended the stream: {said}", code=code)
    return ConnectorError(f"the source ended the stream of its binary log: {said}", code=code)
