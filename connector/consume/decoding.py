"""A message of the event topic as what it says: by fastavro, with the schemas that are known.

A message tells the fingerprint of its schema (`log.format.framing`). One that was written with another version of
our schema is read with that one, and what we know is taken out of it by name. It is not left to Avro's resolution: by
its rule the first branch of the reader's union that fits is taken, and to a column's bytes `string` fits, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException, fingerprint, to_parsing_canonical_form

from connector.errors import ConfigError, LogDamaged, Unsupported
from connector.log.format import checked
from connector.log.format.decoded_parts import Change, DecodedParts
from connector.log.format.first_fields import body_of
from connector.log.format.fragment_reader import check_change, check_fragment, fingerprint_of, header_of
from connector.log.format.framing import FINGERPRINT
from connector.log.format.header import FragmentHeader
from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno, ShardId
from connector.log.transaction.layout import Column
from connector.schema import change_schema, decoded, fragment_schema

CHECKSUM: Final = 4  # bytes behind the Avro body

Value = None | int | float | str | bytes
"""A column's value; docs/types.md says which MySQL's types are."""

_KINDS: Final = {kind.name.lower(): kind for kind in Kind}
_OUTCOMES: Final = {outcome.name.lower(): outcome for outcome in Outcome}
_ACTIONS: Final = {action.name.lower(): action for action in Action}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that the source executed: DDL, or a change that it logged as a statement.

    Args:
        schema: the default schema.
        sql: its text.
        options: the session's state it was executed under.
    """

    schema: str
    sql: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A changed row. Columns that the source did not log are left out; NULL is None.

    Args:
        before: by column; None for an insert.
        after: by column; None for a delete.
    """

    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows of one table that one statement changed, or a part of them: what is long comes in several.

    Args:
        schema, table: whose.
        action: what happened to the rows.
        columns: the table's, in order, as it was then.
        key_columns: the names of its primary key's; empty when it has none.
        rows: in the order they were changed.
    """

    schema: str
    table: str
    action: Action
    columns: Sequence[Column]
    key_columns: tuple[str, ...]
    rows: Sequence[Row]


class Decoder:
    """Reads messages.

    Args:
        topic: for messages.
        schemas: further ones that the log's writers have used, as parsed JSON.

    Raises:
        ConfigError: a schema is none, or cannot be read as ours.
    """

    def __init__(self, topic: str, schemas: Iterable[dict[str, Any]] = ()) -> None:
        self._topic = topic
        ours = fragment_schema()
        self._fields = [field["name"] for field in _header_of(ours)["fields"]]
        self._known: dict[str, _Written] = {}
        for schema in (*schemas, ours):
            try:
                text = to_parsing_canonical_form(schema)
                header = _header_of(schema)
                named = fingerprint(text, "CRC-64-AVRO")
                parts: list[Any] = [header, schema, change_schema(schema)]
                parsed: list[Any] = [fastavro.parse_schema(part) for part in parts]
                self._known[named] = _Written(named == FINGERPRINT, *parsed)
            except (SchemaParseException, KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"a schema of the log's cannot be read: {error}") from error
            if lacking := set(self._fields) - {field["name"] for field in header["fields"]}:
                raise ConfigError("a schema of the log's lacks what a fragment has", lacks=sorted(lacking))

    def header(self, value: bytes, place: str) -> FragmentHeader:
        """A fragment's header, after its checksum was found right; its changes are not decoded.

        Args:
            value: the message.
            place: topic-partition@offset, for errors.

        Raises:
            LogDamaged: it is no fragment, or its bytes were changed.
            Unsupported: it was written with a schema that is not known.
        """
        body = body_of(value, place)
        if zlib.crc32(memoryview(value)[body:-CHECKSUM]) != int.from_bytes(value[-CHECKSUM:], "big"):
            raise LogDamaged("A fragment's checksum is wrong", at=place)
        written = self._schema_of(value, place)
        if written.own:
            return header_of(value, place)
        found = decoded(written.header, value, body, place)
        try:
            return FragmentHeader(
                **{
                    **{name: found[name] for name in self._fields},
                    "seqno": Seqno(found["seqno"]),
                    "epoch": Epoch(found["epoch"]),
                    "shard": ShardId(found["shard"]),
                    "kind": _KINDS[found["kind"]],
                    "outcome": _OUTCOMES[found["outcome"]] if found["outcome"] else None,
                    "commit_time": checked.commit_time(found["commit_time"]),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LogDamaged(f"A fragment's header says what is not known: {error}", at=place) from error

    def changes(self, values: Iterable[bytes], place: str) -> Iterator[RowChanges | Statement]:
        """An event's changes, in order.

        Args:
            values: its fragments'; one is decoded at a time, but for those that are parts of one change.
            place: of the first, for errors.

        Raises:
            LogDamaged: the bytes are no fragments.
        """
        chunks: DecodedParts | None = None
        for value in values:
            written = self._schema_of(value, place)
            body = check_fragment(value, place) if written.own else body_of(value, place)
            fragment = decoded(written.whole, value, body, place)
            if chunks is None:
                chunks = DecodedParts(partial(_change, written=written, place=place), place)
            for change in chunks.whole(fragment["fragno"], fragment["changes"]):
                rows = "rows" in change
                yield _rows(change) if rows else Statement(change["schema"], change["sql"], change["options"])

    def _schema_of(self, value: bytes, place: str) -> _Written:
        named = fingerprint_of(value, place)
        written = self._known.get(named or "")
        if written is not None:
            return written
        raise Unsupported(
            "a message is written with a schema that is not known",
            hint="the log's producer is newer: use its version of this package, or give its fragment.avsc as a schema",
            at=place,
            fingerprint=named,
        )


@dataclass(frozen=True, slots=True)
class _Written:
    """A schema that messages were written with, its fields before the changes, one change's; `own`: this version's."""

    own: bool
    header: Any
    whole: Any
    change: Any


def _change(data: bytes, written: _Written, place: str) -> Change:
    if written.own:
        check_change(data, place)
    return decoded(written.change, data, 0, place)


def _header_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A value's beginning can be read alone: a record's fields follow each other, and the header comes first."""
    fields = schema["fields"]
    until = [field["name"] for field in fields].index("changes")
    return {**schema, "fields": fields[:until]}


def _rows(change: Change) -> RowChanges:
    columns = _columns(tuple(_column(column) for column in change["columns"]))
    names = [column.name for column in columns]
    before, after = _present(names, change["before_present"]), _present(names, change["after_present"])
    return RowChanges(
        change["schema"],
        change["table"],
        _ACTIONS[change["action"]],
        columns,
        tuple(names[index] for index in change["key_columns"]),
        [Row(_image(before, row["before"]), _image(after, row["after"])) for row in change["rows"]],
    )


def _column(found: dict[str, Any]) -> Column:
    return Column(
        found["name"], found["type"], found["unsigned"], found["charset"], tuple(found["labels"]), found["nullable"]
    )


@lru_cache(maxsize=1024)
def _columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The same object for the same layout: whoever keeps events keeps one."""
    return columns


def _present(names: list[str], bits: bytes) -> list[str]:
    if not bits:
        return names
    return [name for index, name in enumerate(names) if bits[index // 8] >> index % 8 & 1]


def _image(names: list[str], values: list[Value] | None) -> dict[str, Value] | None:
    return None if values is None else dict(zip(names, values, strict=True))
