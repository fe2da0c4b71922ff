"""Fields of events about the log itself: its format, its files, the GTIDs before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from connector.inspect.binlog_events.walk import IN_USE, LogEvent
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.event_types import FORMAT_DESCRIPTION
from connector.mysql.binlog.events.format_description import CRC32, NO_CHECKSUM
from connector.mysql.fields import Fields
from connector.mysql.server.gtid_set import decode_gtid_set

START_V3: Final = 1
FORMATS: Final = frozenset({START_V3, FORMAT_DESCRIPTION})
ALGORITHMS: Final = {NO_CHECKSUM: "NONE", CRC32: "CRC32"}
INCIDENTS: Final = {0: "NONE", 1: "LOST_EVENTS"}
LIST_FLAGS: Final = {1 << 28: "UNTIL_REACHED", 1 << 29: "IGNORE_DOMAIN"}  # MariaDB's FLAG_* of a GTID_LIST


def time_text(second: int) -> str:
    """Seconds since 1970 UTC as `2026-11-21T06:00:00Z`."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def names_of(flags: int, names: dict[int, str]) -> list[str]:
    """The names of the flags that are set; what has no name is a number."""
    found = [name for bit, name in names.items() if flags & bit]
    rest = flags & ~sum(names)
    return [*found, f"{rest:#x}"] if rest else found


def _start(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    return _server(fields)


def _server(fields: Fields) -> dict[str, Any]:
    version = fields.number(2)
    server = fields.take(50).rstrip(b"\0").decode(errors="replace")
    created = fields.number(4)
    return {
        "binlog_version": version,
        "server_version": server,
        "created": time_text(created) if created else None,  # None: its server had been running before this file
    }


def _format(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    found = _server(fields) | {"header_length": fields.number(1)}
    rest = fields.rest()
    if event.checksum is not None:
        rest, algorithm = rest[:-1], rest[-1]
        found["checksum_algorithm"] = ALGORITHMS.get(algorithm, str(algorithm))
    found["in_use"] = bool(event.flags & IN_USE)
    found["fixed_part_lengths"] = {event_types.name(code): size for code, size in enumerate(rest, 1) if size}
    return found


def _rotate(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    return {"next_file_position": fields.number(8), "next_file": fields.rest().decode(errors="replace")}


def _previous_gtids(event: LogEvent) -> dict[str, Any]:
    return {"gtids": str(decode_gtid_set(event.body))}


def _incident(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    number = fields.number(2)
    return {
        "incident": number,
        "name": INCIDENTS.get(number, ""),
        "message": fields.text().decode(errors="replace") if fields.left else "",
    }


def _nothing(_: LogEvent) -> dict[str, Any]:
    return {}


def _named_file(event: LogEvent) -> dict[str, Any]:
    return {"file": event.body.decode(errors="replace")}


def _checkpoint(event: LogEvent) -> dict[str, Any]:
    return {"file": Fields(event.body).text(4).decode(errors="replace")}


def _gtid_list(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    head = fields.number(4)
    gtids = []
    for _ in range(head & (1 << 28) - 1):
        domain, server, number = fields.number(4), fields.number(4), fields.number(8)
        gtids.append(f"{domain}-{server}-{number}")
    return {"gtids": gtids, "flags": names_of(head & ~((1 << 28) - 1), LIST_FLAGS)}


def _encryption(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    return {"scheme": fields.number(1), "key_version": fields.number(4), "nonce": fields.take(12).hex()}


BY_TYPE: Final[dict[int, Callable[[LogEvent], dict[str, Any]]]] = {
    START_V3: _start,
    3: _nothing,  # STOP
    4: _rotate,
    FORMAT_DESCRIPTION: _format,
    26: _incident,
    27: _named_file,  # HEARTBEAT
    35: _previous_gtids,
    161: _checkpoint,
    163: _gtid_list,
    164: _encryption,
}
