"""Prints the chosen events of binary log files, as text or JSON, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from connector.errors import ConfigError, ConnectorError
from connector.inspect.binlog_events.control_fields import FORMATS, names_of, time_text
from connector.inspect.binlog_events.fields import EventFields
from connector.inspect.binlog_events.row_fields import TABLE_MAP
from connector.inspect.binlog_events.walk import LeaveOut, LogEvent
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events import event_types

HEADER_FLAGS: Final = {
    0x01: "IN_USE", 0x02: "FORCED_ROTATE", 0x04: "THREAD_SPECIFIC", 0x08: "SUPPRESS_USE",
    0x10: "UPDATE_TABLE_MAP_VERSION", 0x20: "ARTIFICIAL", 0x40: "RELAY_LOG", 0x80: "IGNORABLE", 0x100: "NO_FILTER",
    0x200: "MTS_ISOLATE",
}  # fmt: skip
MARIADB_FLAGS: Final = {**HEADER_FLAGS, 0x8000: "SKIP_REPLICATION"}
REMEMBERED: Final = frozenset({TABLE_MAP, *FORMATS})  # later events need them


@dataclass(frozen=True, slots=True, kw_only=True)
class EventChoice:
    """Bounds of the events to print; empty or None: no bound.

    Args:
        codes: types.
        server_ids: servers that first executed them.
        from_position, to_position: begin there or later, and before it, in the order of the files.
        from_time, to_time: times of their headers, both included, µs since 1970 UTC.
        stop_after: maximum number.
    """

    codes: frozenset[int] = frozenset()
    server_ids: frozenset[int] = frozenset()
    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None
    from_time: int | None = None
    to_time: int | None = None
    stop_after: int | None = None

    def over(self, event: LogEvent) -> bool:
        """True if neither this event nor a later one is within the positions."""
        end = self.to_position
        return end is not None and event.file.name == end.file and event.position >= end.offset

    def has(self, event: LogEvent) -> bool:
        """True if the event is chosen."""
        start, time = self.from_position, event.timestamp * 1_000_000
        return (
            (not self.codes or event.code in self.codes)
            and (not self.server_ids or event.server_id in self.server_ids)
            and (start is None or event.file.name != start.file or event.position >= start.offset)
            and (self.from_time is None or time >= self.from_time)
            and (self.to_time is None or time <= self.to_time)
        )


class EventPrinter:
    """Prints events.

    Args:
        fields: decodes their fields.
        choice: chooses them.
        out: receives UTF-8.
        as_json: a JSON object per line instead of text.
        leave_out: called with the error of an event whose fields cannot be read; None: it ends the events.
    """

    def __init__(
        self,
        fields: EventFields,
        choice: EventChoice,
        out: BinaryIO,
        *,
        as_json: bool,
        leave_out: LeaveOut | None = None,
    ) -> None:
        self._leave_out = leave_out
        self._fields = fields
        self._choice = choice
        self._out = out
        self._write = _json if as_json else _text
        self.printed = 0

    def accept(self, events: Iterable[LogEvent]) -> bool:
        """Print the chosen events of a file.

        Returns:
            False once no later event can be chosen.

        Raises:
            ConnectorError: with file, position and type.
        """
        for event in events:
            if self._choice.over(event):
                return False
            chosen = self._choice.has(event)
            fields: dict[str, Any] | None = None
            try:
                if chosen or event.code in REMEMBERED:
                    fields = self._fields.of(event)
            except ConnectorError as error:
                if self._leave_out is None:
                    raise
                self._leave_out(event.file, error, event.position, event.position + event.size)
            if not chosen or fields is None:
                continue
            self._out.write(self._write(event, fields).encode(errors="backslashreplace"))
            self.printed += 1
            if self.printed == self._choice.stop_after:
                return False
        return True


def event_codes(names: Iterable[str]) -> frozenset[int]:
    """The types of names: as the output has them, in any case, without MARIADB_ if that names one; or numbers.

    Raises:
        ConfigError: a name is not known.
    """
    found = set()
    for name in names:
        wanted = name.upper()
        codes = {code for code, known in event_types.NAMES.items() if wanted in {known, known.removeprefix("MARIADB_")}}
        if not codes and name.isdecimal() and int(name) < 256:
            codes = {int(name)}
        if not codes:
            known_names = ", ".join(sorted(event_types.NAMES.values()))
            raise ConfigError(f"--type: no type of event is called {name!r}", hint=f"types: {known_names}")
        found |= codes
    return frozenset(found)


def _header(event: LogEvent) -> dict[str, Any]:
    return {
        "file": event.file.name,
        "position": event.position,
        **({} if event.in_payload is None else {"offset_in_payload": event.in_payload}),
        "type": event_types.NAMES.get(event.code, "UNKNOWN"),
        "code": event.code,
        "timestamp": event.timestamp,
        "time": time_text(event.timestamp) if event.timestamp else None,
        "server_id": event.server_id,
        "size": event.size,
        "next_position": event.next_position,
        "flags": names_of(event.flags, MARIADB_FLAGS if event.mariadb else HEADER_FLAGS),
        "checksum": None if event.checksum is None else f"{event.checksum:08x}",
    }


def _json(event: LogEvent, fields: dict[str, Any]) -> str:
    return json.dumps(_header(event) | {"fields": fields}, ensure_ascii=False) + "\n"


def _text(event: LogEvent, fields: dict[str, Any]) -> str:
    """The event's place and type, then a line for its header and one for each field; values as in JSON."""
    header = _header(event)
    place = f"{header.pop('file')}:{header.pop('position')}"
    if event.in_payload is not None:
        place += f"+{header.pop('offset_in_payload')}"
    lines = [f"{place} {header.pop('type')}({header.pop('code')})"]
    lines.append("  " + " ".join(f"{name}={_value(value)}" for name, value in header.items()))
    for name, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"  {name}:")
            lines += [f"    {_value(one)}" for one in value]
        else:
            lines.append(f"  {name}: {_value(value)}")
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
