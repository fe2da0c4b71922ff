"""The layout of Tungsten's `thl list`, which its users read and parse: line by line, blank by blank.

FILE is what stands there here: topic-partition@offset, or a binary log's name. Times are UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

ROW = " - ROW# = "
EVENT_TYPE = "com.continuent.tungsten.replicator.event.ReplDBMSEvent"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Place(Protocol):
    """A fragment and where it stands: `connector.listing.log.Listed`."""

    @property
    def place(self) -> str:
        """For people."""

    @property
    def fragment(self) -> Mapping[str, Any]:
        """As schemas/fragment.avsc says."""

    @property
    def voided(self) -> bool:
        """It was given up, or its event is not finished yet."""


def lines(listed: Place, *, headers: bool = False) -> Iterator[str]:
    """One fragment.

    Args:
        listed: it.
        headers: without what it changes.
    """
    fragment = listed.fragment
    last = " (last frag)" if fragment["last_frag"] else ""
    voided = " (voided)" if listed.voided else ""
    yield f"SEQ# = {fragment['seqno']} / FRAG# = {fragment['fragno']}{last}{voided}"
    yield f"- FILE = {listed.place}"
    yield f"- TIME = {time_of(fragment['commit_time'])}"
    yield f"- EPOCH# = {fragment['epoch']}"
    yield f"- EVENTID = {_or_null(fragment['event_id'])}"
    yield f"- SOURCEID = {fragment['source_id']}"
    yield f"- METADATA = [{';'.join(f'{name}={_on_one_line(value)}' for name, value in fragment['metadata'].items())}]"
    yield f"- TYPE = {EVENT_TYPE}"
    if headers:
        return
    for number, change in enumerate(fragment["changes"]):
        if "sql" in change:
            yield from statement(number, change["schema"], change["sql"], change["options"])
        else:
            yield from _rows(number, change)


def statement(number: int, schema: str, sql: str, options: Mapping[str, str]) -> Iterator[str]:
    """A change that is a statement."""
    if options:
        yield f"- OPTIONS = [{', '.join(f'{name} = {value}' for name, value in options.items())}]"
    yield f"- SCHEMA = {schema}"
    yield f"- SQL({number}) = {sql}"


def rows_head(number: int, action: str, schema: str, table: str) -> Iterator[str]:
    """What a change of rows begins with."""
    yield f"- SQL({number}) ="
    yield f" - ACTION = {action.upper()}"
    yield f" - SCHEMA = {schema}"
    yield f" - TABLE = {table}"


def value_head(word: str, index: int, name: str) -> str:
    """What stands before a value. The word is COL or KEY."""
    return f"  - {word}({index + 1}: {name}) = "


def time_of(microseconds: int | None) -> str:
    """`2025-03-19 11:07:32.0`: at least one digit of a second, and no zeros at the end beyond it."""
    if microseconds is None:
        return "null"
    moment = EPOCH + timedelta(microseconds=microseconds)
    fraction = f"{moment.microsecond:06}".rstrip("0") or "0"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction}"


def shown(value: object) -> str:
    """A value: NULL, text as it is, bytes in hexadecimal."""
    if value is None:
        return "NULL"
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def present(bits: bytes, columns: int) -> list[int]:
    """The indexes of the columns that an image holds; no bits: all of them."""
    return [index for index in range(columns) if not bits or bits[index // 8] >> (index % 8) & 1]


def _rows(number: int, change: Mapping[str, Any]) -> Iterator[str]:
    columns = [column["name"] for column in change["columns"]]
    before = present(change["before_present"], len(columns))
    after = present(change["after_present"], len(columns))
    yield from rows_head(number, change["action"], change["schema"], change["table"])
    for row_number, row in enumerate(change["rows"]):
        yield f"{ROW}{row_number}"
        if row["after"] is not None:
            yield from _image("COL", columns, after, row["after"], range(len(columns)))
        # The key is what a row was found by: its old values; without a key, the whole old row.
        old, places = (row["after"], after) if row["before"] is None else (row["before"], before)
        key = change["key_columns"] or ([] if row["before"] is None else range(len(columns)))
        yield from _image("KEY", columns, places, old, key)


def _image(
    word: str, columns: Sequence[str], places: Sequence[int], values: Sequence[object], wanted: Sequence[int]
) -> Iterator[str]:
    found = dict(zip(places, values, strict=True))
    for index in sorted(wanted):
        if index in found:
            yield value_head(word, index, columns[index]) + shown(found[index])


def _on_one_line(value: object) -> str:
    """A statement may have several."""
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


def _or_null(value: object) -> str:
    return "null" if value is None else str(value)
