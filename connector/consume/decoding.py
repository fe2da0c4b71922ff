"""Decodes messages of the event topic, with fastavro and the known schemas.

A message names the fingerprint of its schema (`log.format.framing`). A message of another version of the fragment
schema is read with that version, and the known fields are taken by name. Avro's schema resolution is not used: it takes
the first branch of the reader's union that fits, and `string` also fits a column's bytes.
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
from connector.log.format.framing import FINGERPRINT, LOAD_FINGERPRINT
from connector.log.format.header import FragmentHeader
from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno, ShardId
from connector.log.rules import Rule, broken, damaged
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column
from connector.schema import change_schema, decoded, fragment_schema, load_schema

CHECKSUM: Final = 4  # bytes after the Avro body

Value = None | int | float | str | bytes
"""A column's value; docs/types.md lists the values of MySQL's types."""

_KINDS: Final = {kind.name.lower(): kind for kind in Kind}
_OUTCOMES: Final = {outcome.name.lower(): outcome for outcome in Outcome}
_ACTIONS: Final = {action.name.lower(): action for action in Action}


@dataclass(frozen=True, slots=True)
class Row:
    """A changed row. Columns that the source did not log are left out; NULL is None.

    Args:
        before: the values before the change, by column; None for an insert, and for a row that a load read.
        after: the values after the change, by column; None for a delete.
    """

    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows of one table that one statement changed, or a part of them: many rows come in several parts.

    Args:
        schema, table: names.
        action: insert, update, delete, or read: of a load, whose rows are as these, whether they were there or not.
        columns: the table's columns at that time, in order.
        key_columns: names of the primary key's columns; empty without a primary key.
        rows: the rows, in the order of their changes.
    """

    schema: str
    table: str
    action: Action
    columns: Sequence[Column]
    key_columns: tuple[str, ...]
    rows: Sequence[Row]


class MessageDecoder:
    """Reads messages.

    Args:
        topic: the event topic, for errors.
        schemas: further schemas that the log's producers have used, as parsed JSON.

    Raises:
        ConfigError: a schema is invalid, or lacks fields of a fragment.
    """

    def __init__(self, topic: str, schemas: Iterable[dict[str, Any]] = ()) -> None:
        self._topic = topic
        own = fragment_schema()
        self._fields = [field["name"] for field in _header_of(own)["fields"]]
        self._known: dict[str, _WriterSchema] = {}
        for schema in (*schemas, own, load_schema()):
            try:
                text = to_parsing_canonical_form(schema)
                header = _header_of(schema)
                named = fingerprint(text, "CRC-64-AVRO")
                parts: list[Any] = [header, schema, change_schema(schema)]
                parsed: list[Any] = [fastavro.parse_schema(part) for part in parts]
                self._known[named] = _WriterSchema(named in (FINGERPRINT, LOAD_FINGERPRINT), *parsed)
            except (SchemaParseException, KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"a schema of schemas= is invalid: {error}") from error
            if lacking := set(self._fields) - {field["name"] for field in header["fields"]}:
                raise ConfigError("a schema of schemas= lacks fields of a fragment", lacks=sorted(lacking))

    def header(self, value: bytes, at: str) -> FragmentHeader:
        """A fragment's header, after its checksum was verified; its changes are not decoded.

        Args:
            value: the message.
            at: topic-partition@offset, for errors.

        Raises:
            LogDamaged: it is not a fragment, or its bytes were changed.
            Unsupported: its schema is unknown.
        """
        body = body_of(value, at)
        if zlib.crc32(memoryview(value)[body:-CHECKSUM]) != int.from_bytes(value[-CHECKSUM:], "big"):
            raise broken(LogDamaged, Rule.WRONG_CHECKSUM, at=at)
        written = self._schema_of(value, at)
        if written.own:
            return header_of(value, at)
        found = decoded(written.header, value, body, at)
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
            raise damaged(error, at=at) from error

    def changes(self, values: Iterable[bytes], at: str) -> Iterator[RowChanges | Statement]:
        """An event's changes, in order.

        Args:
            values: the event's messages; one is decoded at a time, except the parts of one change.
            at: topic-partition@offset of the first, for errors.

        Raises:
            LogDamaged: a message is not a fragment.
        """
        parts: DecodedParts | None = None
        for value in values:
            written = self._schema_of(value, at)
            body = check_fragment(value, at) if written.own else body_of(value, at)
            fragment = decoded(written.whole, value, body, at)
            if parts is None:
                parts = DecodedParts(partial(_change, written=written, at=at), at)
            for change in parts.whole(fragment["fragno"], fragment["changes"]):
                rows = "rows" in change
                yield _rows(change) if rows else Statement(change["schema"], change["sql"], change["options"])

    def _schema_of(self, value: bytes, at: str) -> _WriterSchema:
        named = fingerprint_of(value, at)
        written = self._known.get(named or "")
        if written is not None:
            return written
        raise Unsupported(
            "the schema of a message is unknown",
            hint="the producer is newer: use its version of this package, or pass its fragment.avsc in schemas=",
            at=at,
            fingerprint=named,
        )


@dataclass(frozen=True, slots=True)
class _WriterSchema:
    """A writer's schemas of the header, of a whole fragment and of one change; `own`: the schema of this version."""

    own: bool
    header: Any
    whole: Any
    change: Any


def _change(data: bytes, written: _WriterSchema, at: str) -> Change:
    if written.own:
        check_change(data, at)
    return decoded(written.change, data, 0, at)


def _header_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a fragment's header alone, which is the beginning of a fragment's bytes."""
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
    """Return the same object for equal columns, so that kept events share it."""
    return columns


def _present(names: list[str], bits: bytes) -> list[str]:
    if not bits:
        return names
    return [name for index, name in enumerate(names) if bits[index // 8] >> index % 8 & 1]


def _image(names: list[str], values: list[Value] | None) -> dict[str, Value] | None:
    return None if values is None else dict(zip(names, values, strict=True))
