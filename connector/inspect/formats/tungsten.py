"""Formats fragments in the layout of Tungsten's `thl list`, exactly, because users parse it.

FILE is topic-partition@offset, or a binary log's name. Times are in UTC or a chosen zone. A default schema is shown
where it changes within a fragment; rows, which name their own schema, reset it. `mysql_thread_id` and `rollback` are
shown as metadata, though the log has them as fields of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Protocol

from connector.errors import escaped
from connector.inspect.formats.session_values import set_before, tungsten_options, with_service
from connector.log.transaction import statement_options as replay

ROW = " - ROW# = "
SIZES_HEAD = "SEQ# Frag# Tstamp"
EVENT_TYPE = "com.continuent.tungsten.replicator.event.ReplDBMSEvent"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ColumnHead = Callable[[int, Mapping[str, Any]], str]
"""Formats the column in the brackets of a value's line, given its index and the log's description."""

ShownValue = Callable[[object], str]
"""Formats a value."""


class ListedFragment(Protocol):
    """A fragment with its place; `connector.inspect.thl_events.log.Listed` is one."""

    @property
    def place(self) -> str:
        """topic-partition@offset, or a file."""

    @property
    def fragment(self) -> Mapping[str, Any]:
        """The fields of schemas/fragment.avsc."""

    @property
    def voided(self) -> bool:
        """True if its attempt is not an event."""


def named(index: int, column: Mapping[str, Any]) -> str:
    """A column's number, from 1, and its name."""
    return f"{index + 1}: {escaped(column['name'])}"


def lines(
    listed: ListedFragment, *, zone: tzinfo = UTC, column_head: ColumnHead = named, value: ShownValue | None = None
) -> Iterator[str]:
    """One fragment.

    Args:
        listed: the fragment.
        zone: time zone of the commit time.
        column_head: formats columns.
        value: formats values; None: `shown`.
    """
    yield from header_lines(listed, zone=zone)
    service = listed.fragment["metadata"].get("service")
    schema: str | None = None
    number = 0
    for change in listed.fragment["changes"]:
        if "sql" in change:
            found = statements(
                number, change["schema"], change["sql"], change["options"], before=schema, service=service
            )
            number += len(found) - 1
            yield from (line for one in found for line in one)
            schema = change["schema"]
        else:
            yield from _rows(number, change, column_head, value or shown)
            schema = None
        number += 1


def header_lines(listed: ListedFragment, *, zone: tzinfo = UTC) -> Iterator[str]:
    """The first lines of a fragment."""
    fragment = listed.fragment
    last = " (last frag)" if fragment["last_frag"] else ""
    voided = " (voided)" if listed.voided else ""
    yield f"SEQ# = {fragment['seqno']} / FRAG# = {fragment['fragno']}{last}{voided}"
    yield f"- FILE = {listed.place}"
    yield f"- TIME = {time_of(fragment['commit_time'], zone)}"
    yield f"- EPOCH# = {fragment['epoch']}"
    yield f"- EVENTID = {or_null(fragment['event_id'])}"
    yield f"- SOURCEID = {fragment['source_id']}"
    yield f"- METADATA = [{';'.join(_fact(name, value) for name, value in _metadata(fragment))}]"
    yield f"- TYPE = {EVENT_TYPE}"


def statements(
    number: int,
    schema: str,
    sql: str,
    options: Mapping[str, str],
    *,
    before: str | None = None,
    service: str | None = None,
) -> list[list[str]]:
    """A change that is a statement: the lines of each SET statement before it, and its own.

    Args:
        number: number of the first of them.
        schema, sql, options: the statement.
        before: the default schema that this fragment showed last.
        service: the service for the comment behind the statement; None: there is none.
    """
    found = [[f"- SQL({number + index}) = {shown_text(text)}"] for index, text in enumerate(set_before(options))]
    last = []
    if shown_options := tungsten_options(options):
        last.append(f"- OPTIONS = [{', '.join(f'{name} = {value}' for name, value in shown_options)}]")
    if schema != before:
        last.append(f"- SCHEMA = {escaped(schema)}")
    text = sql if replay.LOAD_BLOCK in options else with_service(sql, service)
    last.append(f"- SQL({number + len(found)}) = {shown_text(text)}")
    return [*found, last]


def rows_head(number: int, action: str, schema: str, table: str) -> Iterator[str]:
    """The first lines of a change of rows."""
    yield f"- SQL({number}) ="
    yield f" - ACTION = {action.upper()}"
    yield f" - SCHEMA = {escaped(schema)}"
    yield f" - TABLE = {escaped(table)}"


def value_head(word: str, column: str) -> str:
    """The text before a value; the word is COL or KEY."""
    return f"  - {word}({column}) = "


def time_of(microseconds: int | None, zone: tzinfo = UTC) -> str:
    """`2025-03-19 11:07:32.0`: at least one digit of a second, and no zeros at the end beyond it."""
    if microseconds is None:
        return "null"
    local = (EPOCH + timedelta(microseconds=microseconds)).astimezone(zone)
    fraction = f"{local.microsecond:06}".rstrip("0") or "0"
    return f"{local:%Y-%m-%d %H:%M:%S}.{fraction}"


def shown(value: object) -> str:
    """A value: NULL, text with control characters escaped, bytes in hexadecimal."""
    if value is None:
        return "NULL"
    return f"0x{value.hex()}" if isinstance(value, bytes) else shown_text(str(value))


def shown_text(text: str) -> str:
    """Text with its lines and tabs, and other control characters escaped."""
    return _CONTROL.sub(lambda found: escaped(found[0]), text)


def present(bits: bytes, columns: int) -> list[int]:
    """The indexes of the columns that an image holds; no bits: all of them."""
    return [index for index in range(columns) if not bits or bits[index // 8] >> (index % 8) & 1]


def or_null(value: object) -> str:
    """`null` for None."""
    return "null" if value is None else str(value)


def _metadata(fragment: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The metadata, in Tungsten's order: the connection follows the server, the outcome is last."""
    thread_id = fragment.get("thread_id")
    for name, value in fragment["metadata"].items():
        yield name, value
        if name == "mysql_server_id" and thread_id:
            yield "mysql_thread_id", thread_id
    if fragment.get("outcome") == "rollback":
        yield "rollback", ""


def _fact(name: str, value: object) -> str:
    """A metadata entry on one line: statements may have several lines."""
    text = shown_text(str(value)).replace("\r", "\\r").replace("\n", "\\n")
    return f"{name}={text}" if text else name


def _rows(number: int, change: Mapping[str, Any], column_head: ColumnHead, value: ShownValue) -> Iterator[str]:
    columns = [column_head(index, column) for index, column in enumerate(change["columns"])]
    before = present(change["before_present"], len(columns))
    after = present(change["after_present"], len(columns))
    yield from rows_head(number, change["action"], change["schema"], change["table"])
    for row_number, row in enumerate(change["rows"]):
        yield f"{ROW}{row_number}"
        if row["after"] is not None:
            yield from _image("COL", columns, dict(zip(after, row["after"], strict=True)), range(len(columns)), value)
        # The key identifies the row: its old values; without a key, the whole old row.
        old, present_columns = (row["after"], after) if row["before"] is None else (row["before"], before)
        key = change["key_columns"] or ([] if row["before"] is None else range(len(columns)))
        yield from _image("KEY", columns, dict(zip(present_columns, old, strict=True)), key, value)


def _image(
    word: str, columns: Sequence[str], found: Mapping[int, object], chosen: Sequence[int], value: ShownValue
) -> Iterator[str]:
    for index in sorted(chosen):
        if index in found:
            yield value_head(word, columns[index]) + value(found[index])


def header_line(listed: ListedFragment, *, zone: tzinfo = UTC) -> str:
    """Eight fields, each ended by a tab: seqno, epoch, fragno, last, time, event id, source id, a comment."""
    fragment = listed.fragment
    found = (
        fragment["seqno"],
        fragment["epoch"],
        fragment["fragno"],
        "true" if fragment["last_frag"] else "false",
        time_of(fragment["commit_time"], zone),
        or_null(fragment["event_id"]),
        fragment["source_id"],
        "voided" if listed.voided else "",
    )
    return "".join(f"{value}\t" for value in found)


def sizes_line(listed: ListedFragment, *, zone: tzinfo = UTC) -> str:
    """The size of a fragment: bytes of its statements, number of its rows."""
    fragment = listed.fragment
    changes = fragment["changes"]
    sql = sum(len(change["sql"].encode()) for change in changes if "sql" in change)
    rows = sum(len(change["rows"]) for change in changes if "rows" in change)
    return (
        f"{fragment['seqno']} {fragment['fragno']} {time_of(fragment['commit_time'], zone)} "
        f"Event total: {len(changes)} chunks {sql} bytes in SQL statements {rows} rows"
    )
