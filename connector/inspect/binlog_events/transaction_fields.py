"""Fields of events that begin and end transactions: GTIDs, the logical clock, XIDs, compressed transactions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from connector.inspect.binlog_events.control_fields import names_of
from connector.inspect.binlog_events.walk import LogEvent
from connector.mysql.binlog.events import gtid_tagged, mariadb
from connector.mysql.binlog.events.event_types import ANONYMOUS_GTID, GTID, GTID_TAGGED, MARIADB_GTID, XID
from connector.mysql.binlog.events.payload import COMPRESSION, EXPANDED, NONE, SIZE, ZSTD, payload_header
from connector.mysql.binlog.events.xa import xa_prepare
from connector.mysql.fields import Fields

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
GTID_FLAGS: Final = {1: "MAY_HAVE_STATEMENTS"}
MARIADB_FLAGS: Final = {
    0x01: "STANDALONE", 0x02: "GROUP_COMMIT_ID", 0x04: "TRANSACTIONAL", 0x08: "ALLOW_PARALLEL", 0x10: "WAITED",
    0x20: "DDL", 0x40: "PREPARED_XA", 0x80: "COMPLETED_XA",
}  # fmt: skip
MARIADB_MORE: Final = {
    mariadb.ENGINES: "MULTI_ENGINE",
    mariadb.START_ALTER: "START_ALTER",
    mariadb.COMMIT_ALTER: "COMMIT_ALTER",
    mariadb.ROLLBACK_ALTER: "ROLLBACK_ALTER",
    mariadb.THREAD_ID: "THREAD_ID",
}
COMPRESSIONS: Final = {ZSTD: "ZSTD", NONE: "NONE"}
LOGICAL_CLOCK: Final = 2
UNKNOWN_VERSION: Final = 999999  # MySQL's UNKNOWN_SERVER_VERSION


def microseconds_text(moment: int) -> str:
    """Microseconds since 1970 UTC as `2026-11-21T06:00:00.000000Z`."""
    return (EPOCH + timedelta(microseconds=moment)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _gtid(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    flags, source, number = fields.number(1), uuid.UUID(bytes=fields.take(16)), fields.number(8)
    found: dict[str, Any] = {
        "gtid": f"{source}:{number}" if event.code == GTID else None,
        "flags": names_of(flags, GTID_FLAGS),
    }
    if fields.left < 17 or fields.number(1) != LOGICAL_CLOCK:
        return found
    found |= {"last_committed": fields.number(8), "sequence_number": fields.number(8)}
    if fields.left < 7:
        return found
    immediate = fields.number(7)
    original = fields.number(7) if immediate >> 55 else immediate
    immediate &= (1 << 55) - 1
    found |= _committed(immediate, original)
    if fields.left:
        found["transaction_length"] = fields.packed()
    if fields.left >= 4:
        version = fields.number(4)
        first = fields.number(4) if version >> 31 else version
        found |= _versions(version & (1 << 31) - 1, first)
    if fields.left >= 8:
        found["commit_group_ticket"] = fields.number(8)
    return found


def _committed(immediate: int, original: int) -> dict[str, Any]:
    return {
        "immediate_commit_time": microseconds_text(immediate),
        "original_commit_time": microseconds_text(original),
    }


def _versions(immediate: int, original: int) -> dict[str, Any]:
    return {
        "immediate_server_version": immediate,
        "original_server_version": None if original == UNKNOWN_VERSION else original,
    }


def _tagged(event: LogEvent) -> dict[str, Any]:
    gtid, values = gtid_tagged.tagged_values(event.body)
    immediate = values.get(gtid_tagged.COMMITTED, 0)
    version = values.get(gtid_tagged.VERSION, UNKNOWN_VERSION)
    found: dict[str, Any] = {
        "gtid": gtid,
        "flags": names_of(values.get(gtid_tagged.FLAGS, 0), GTID_FLAGS),
        "last_committed": values.get(gtid_tagged.LAST_COMMITTED, 0),
        "sequence_number": values.get(gtid_tagged.SEQUENCE, 0),
        **_committed(immediate, values.get(gtid_tagged.ORIGINALLY, immediate)),
        "transaction_length": values.get(gtid_tagged.LENGTH, 0),
        **_versions(version, values.get(gtid_tagged.WHOLE_VERSION, version)),
    }
    if gtid_tagged.TICKET in values:
        found["commit_group_ticket"] = values[gtid_tagged.TICKET]
    return found


def _xid(event: LogEvent) -> dict[str, Any]:
    return {"xid": Fields(event.body).number(8)}


def _xa_prepare(event: LogEvent) -> dict[str, Any]:
    xid, one_phase = xa_prepare(event.body)
    return {"xid": xid, "one_phase": one_phase}


def _payload(event: LogEvent) -> dict[str, Any]:
    header = payload_header(Fields(event.body))
    compression = header.get(COMPRESSION, NONE)
    return {
        "payload_size": header.get(SIZE),
        "compression": COMPRESSIONS.get(compression, str(compression)),
        "uncompressed_size": header.get(EXPANDED),
    }


def _mariadb_gtid(event: LogEvent) -> dict[str, Any]:
    found = mariadb.gtid_event(event.body, event.server_id)
    return {
        "gtid": found.gtid,
        "flags": names_of(found.flags, MARIADB_FLAGS) + names_of(found.more_flags, MARIADB_MORE),
        **found.numbers,
        **({"xid": found.xid} if found.xid else {}),
    }


BY_TYPE: Final[dict[int, Callable[[LogEvent], dict[str, Any]]]] = {
    XID: _xid,
    GTID: _gtid,
    ANONYMOUS_GTID: _gtid,
    38: _xa_prepare,
    40: _payload,
    GTID_TAGGED: _tagged,
    MARIADB_GTID: _mariadb_gtid,
}
