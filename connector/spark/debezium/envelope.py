"""Converts row changes to Debezium's messages: keys, envelopes and tombstones, each with Connect's schema.

One topic a table, `<prefix>.<schema>.<table>`. An update that changes the key is a delete, a tombstone and a create, as
in Debezium. The rows of a table's load are reads, as those of Debezium's incremental snapshots. The load of a table
without a key replaces all its rows, so a truncate is before them. A value that the envelope cannot hold exactly is an
error with the table, the key and the column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from connector.errors import Unsupported, ValueNotRepresentable
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import Column
from connector.log.transaction.load import Part
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.spark.debezium.envelope_types import connect_type

_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("seqno", pa.int64()),
    pa.field("change", pa.int64()),
    pa.field("part", pa.int32()),
    pa.field("epoch", pa.int64()),
    pa.field("topic", pa.string()),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
]
MESSAGES: Final = pa.schema(_FIELDS)
SPARK_MESSAGES: Final = "seqno BIGINT, change BIGINT, part INT, epoch BIGINT, topic STRING, key BINARY, value BINARY"

_OPERATIONS: Final = {"insert": "c", "update": "u", "delete": "d", "read": "r"}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_KEPT: Final = 4096
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)  # creating one takes as long as using it

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DebeziumMessage:
    """A Kafka message; the key is None for a table without a key, the value for a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None


class Envelopes:
    """Converts row changes to messages.

    Args:
        prefix: the first part of the topics' names, and the logical name of the source.
        tombstones: write a message without value after each delete, so that compaction removes the key.
    """

    def __init__(self, prefix: str, *, tombstones: bool = True) -> None:
        self._prefix = prefix
        self._tombstones = tombstones
        self._tables: dict[tuple[str, str, str, str], _Table] = {}
        self._event: tuple[int, dict[str, int]] = (-1, {})  # the current event, and its number of rows per table
        self._rows = 0

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert changes with their layouts, for `mapInArrow`; an event's changes must be together and in order."""
        for batch in batches:
            at = batch.schema.get_field_index("commit_time")
            timed = batch.set_column(at, "commit_time", batch.column(at).cast(pa.int64()))
            columns: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
            for row in timed.to_pylist():
                for part, message in enumerate(self.messages(row)):
                    order = row["seqno"], row["change"], part, row["epoch"]
                    values = (*order, message.topic, message.key, message.value)
                    for found, value in zip(columns.values(), values, strict=True):
                        found.append(value)
            yield pa.RecordBatch.from_pydict(columns, schema=MESSAGES)

    def messages(self, row: Row) -> list[DebeziumMessage]:
        """Return the messages of one change; none for a DDL statement and for the begin and the end of a load.

        Args:
            row: the columns of `connector.spark.source.columns`; the commit time in µs since 1970 UTC.

        Raises:
            ValueNotRepresentable: the envelope cannot hold a value.
            Unsupported: the after image, or that of a deleted row, is partial, or the change was logged as a statement.
        """
        if row["load_part"] == Part.WHOLE and row["change"] == 0:
            return [self._truncated(row), *self._changed(row)]
        return self._changed(row)

    def _changed(self, row: Row) -> list[DebeziumMessage]:
        if row["action"] is None:
            return []
        if row["action"] == "statement":
            if row["kind"] in {"ddl", "load"} or row["sql"].startswith(SAVEPOINTS):
                return []
            raise Unsupported(
                "a change was logged as a statement: it has no rows",
                hint="binlog_format=ROW on the source",
                seqno=row["seqno"],
            )
        table = self._table(row)
        before, after = _image(row["before"]), _image(row["after"])
        if after is not None and len(after) < len(table.columns):
            raise _partial("an after image", row)
        operation = "r" if row["snapshot"] == "rows" else _OPERATIONS[row["action"]]
        order = self._order(row)
        if operation == "u" and before is not None and after is not None and table.moved(before, after):
            return [
                *self._deleted(table, row, before, order),
                DebeziumMessage(table.topic, table.key_of(after, row), table.value(None, after, "c", row, order)),
            ]
        if after is None:
            return self._deleted(table, row, before or {}, order)
        return [
            DebeziumMessage(table.topic, table.key_of(after, row), table.value(before, after, operation, row, order))
        ]

    def _truncated(self, row: Row) -> DebeziumMessage:
        topic = topic_of(self._prefix, row["schema"], row["table"])
        return DebeziumMessage(topic, None, self._table(row).value(None, None, "t", row, self._order(row)))

    def _deleted(
        self, table: _Table, row: Row, before: dict[str, Any], order: tuple[int, int]
    ) -> list[DebeziumMessage]:
        if len(before) < len(table.columns) and row["load_part"] != Part.REPAIR:
            raise _partial("the before image of a delete", row)
        key = table.key_of(before, row)
        found = [DebeziumMessage(table.topic, key, table.value(before, None, "d", row, order))]
        if self._tombstones and key is not None:
            found.append(DebeziumMessage(table.topic, key, None))
        return found

    def _order(self, row: Row) -> tuple[int, int]:
        """Return the number of the row in the transaction, and among the rows of its table, both from 1."""
        seqno, counts = self._event
        if seqno != row["seqno"]:
            counts, self._rows = {}, 0
            self._event = row["seqno"], counts
        name = f"{row['schema']}.{row['table']}"
        self._rows += 1
        counts[name] = counts.get(name, 0) + 1
        return self._rows, counts[name]

    def _table(self, row: Row) -> _Table:
        # Without a row, as of a table that was loaded and is empty, the columns are not known.
        which = row["schema"], row["table"], row["layout"] or "[]", row["key"] or "[]"
        found = self._tables.get(which)
        if found is None:
            if len(self._tables) >= _KEPT:
                self._tables.clear()
            found = self._tables[which] = _Table(self._prefix, *which)
        return found


class _Table:
    """The constant parts of a table's messages: the schemas, as bytes."""

    def __init__(self, prefix: str, schema: str, table: str, layout: str, key: str) -> None:
        columns = [Column(**{**one, "labels": tuple(one["labels"])}) for one in json.loads(layout)]
        self.topic = topic_of(prefix, schema, table)
        self.columns = {column.name: connect_type(column) for column in columns}
        self._optional = {column.name: column.nullable for column in columns}
        self._key: list[str] = json.loads(key)
        self._name = f"{schema}.{table}"
        self._source = {"version": "thl", "connector": "mysql", "name": prefix, "db": schema, "table": table}
        fields = [
            {**self.columns[name].schema, "optional": nullable, "field": name}
            for name, nullable in self._optional.items()
        ]
        row = {"type": "struct", "fields": fields, "optional": True, "name": f"{self.topic}.Value"}
        envelope = {
            "type": "struct",
            "fields": [{**row, "field": "before"}, {**row, "field": "after"}, *_ENVELOPE],
            "optional": False,
            "name": f"{self.topic}.Envelope",
            "version": 2,
        }
        key_fields = [{**self.columns[name].schema, "optional": False, "field": name} for name in self._key]
        keys = {"type": "struct", "fields": key_fields, "optional": False, "name": f"{self.topic}.Key"}
        self._envelope = b'{"schema":' + _json(envelope) + b',"payload":'
        self._keys = b'{"schema":' + _json(keys) + b',"payload":'

    def moved(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Return True if the key changed."""
        return any(before[name] != after[name] for name in self._key if name in before)

    def key_of(self, image: Mapping[str, Any], row: Row) -> bytes | None:
        """Return the message's key; None for a table without a key."""
        if not self._key:
            return None
        return self._keys + _json({name: self._value(name, image[name], image, row) for name in self._key}) + b"}"

    def value(
        self,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        operation: str,
        row: Row,
        order: tuple[int, int],
    ) -> bytes:
        """Return the envelope. An update's partial before image is omitted."""
        if before is not None and after is not None and len(before) < len(self.columns):
            before = None
        micros: int = row["commit_time"] or 0
        name = row["event_id"] or ""
        event_id = EventId.parse(name) if name else EventId("", 0, 0)
        source = {
            **self._source,
            "ts_ms": micros // 1000,
            "ts_us": micros,
            "ts_ns": micros * 1000,
            "snapshot": "incremental" if row["load"] is not None else "true" if operation == "r" else "false",
            "sequence": f'["{row["seqno"]}","{row["change"]}"]',
            "server_id": row["server_id"],
            "gtid": row["gtid"],
            "file": event_id.file,
            "pos": event_id.end,
            "row": min(order[0] - 1, 2**31 - 1),
            "thread": event_id.thread_id,
            "query": None,
        }
        payload = {
            "before": None if before is None else self._image(before, row),
            "after": None if after is None else self._image(after, row),
            "source": source,
            "transaction": {
                "id": row["gtid"] or f"{row['epoch']}:{row['seqno']}",
                "total_order": order[0],
                "data_collection_order": order[1],
            },
            "op": operation,
            "ts_ms": micros // 1000,
            "ts_us": micros,
            "ts_ns": micros * 1000,
        }
        return self._envelope + _json(payload) + b"}"

    def _image(self, image: Mapping[str, Any], row: Row) -> dict[str, Any]:
        """Return all columns; those beside the key of a row that a repair deletes have empty values of their type."""
        return {
            name: self._value(name, image[name], image, row)
            if name in image
            else _empty(one.schema, nullable=self._optional[name])
            for name, one in self.columns.items()
        }

    def _value(self, name: str, value: Any, image: Mapping[str, Any], row: Row) -> Any:
        if value is None:
            return None
        try:
            return self.columns[name].value(value)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ValueNotRepresentable(
                f"Debezium's envelope cannot hold the value: {error}",
                hint="correct the row on the source, or exclude the table (source.filters.ignore)",
                table=self._name,
                key=", ".join(f"{one}={image.get(one)!r}" for one in self._key),
                column=name,
                value=str(value)[:80],
                seqno=row["seqno"],
            ) from error


def _partial(image: str, row: Row) -> Unsupported:
    return Unsupported(
        f"{image} does not have all columns, and Debezium's envelope needs them",
        hint="source.records.dir for the producer, or binlog_row_image=FULL on the source",
        seqno=row["seqno"],
        table=f"{row['schema']}.{row['table']}",
    )


def topic_of(prefix: str, schema: str, table: str) -> str:
    """Return a table's topic; characters that Kafka does not allow become `_`."""
    return _NOT_IN_NAMES.sub("_", f"{prefix}.{schema}.{table}")


def _empty(schema: Mapping[str, Any], *, nullable: bool) -> Any:
    if nullable:
        return None
    match schema["type"]:
        case "string" | "bytes":
            return ""
        case "boolean":
            return False
        case "array":
            return []
        case "struct":
            return {"wkb": "", "srid": None}
    return 0


def _image(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def _json(value: Any) -> bytes:
    return _COMPACT.encode(value).encode()


def _of(type_: str, field: str, /, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    return {"type": type_, "optional": optional, "field": field, **more}


_SNAPSHOT: Final = {
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
    "default": "false",
}
_SOURCE: Final = [
    _of("string", "version"),
    _of("string", "connector"),
    _of("string", "name"),
    _of("int64", "ts_ms"),
    _of("string", "snapshot", optional=True, **_SNAPSHOT),
    _of("string", "db"),
    _of("string", "sequence", optional=True),
    _of("int64", "ts_us", optional=True),
    _of("int64", "ts_ns", optional=True),
    _of("string", "table", optional=True),
    _of("int64", "server_id"),
    _of("string", "gtid", optional=True),
    _of("string", "file"),
    _of("int64", "pos"),
    _of("int32", "row"),
    _of("int64", "thread", optional=True),
    _of("string", "query", optional=True),
]
_BLOCK: Final = [_of("string", "id"), _of("int64", "total_order"), _of("int64", "data_collection_order")]
_ENVELOPE: Final = [
    _of("struct", "source", fields=_SOURCE, name="io.debezium.connector.mysql.Source"),
    _of("struct", "transaction", optional=True, fields=_BLOCK, name="event.block", version=1),
    _of("string", "op"),
    _of("int64", "ts_ms", optional=True),
    _of("int64", "ts_us", optional=True),
    _of("int64", "ts_ns", optional=True),
]
