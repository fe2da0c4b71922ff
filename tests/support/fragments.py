"""Fragments written by fastavro from the schema, without the connector's encoder."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from connector.kafka.message_batch import message_batch
from connector.log.compact.scan import Scanner
from connector.log.format.message import Message
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.schema import change_schema

RAW: dict[str, Any] = json.loads((Path(__file__).parents[2] / "schemas" / "fragment.avsc").read_text())
SCHEMA = parse_schema(RAW)
FINGERPRINT = fingerprint(to_parsing_canonical_form(RAW), "CRC-64-AVRO")
PREFIX = b"\xc3\x01" + bytes.fromhex(FINGERPRINT)
LOAD_RAW: dict[str, Any] = json.loads((Path(__file__).parents[2] / "schemas" / "load.avsc").read_text())
LOAD_SCHEMA = parse_schema(LOAD_RAW)
CHANGE = parse_schema(change_schema(LOAD_RAW))  # also of other events: their bytes are the same
LOAD_FINGERPRINT = fingerprint(to_parsing_canonical_form(LOAD_RAW), "CRC-64-AVRO")
LOAD_PREFIX = b"\xc3\x01" + bytes.fromhex(LOAD_FINGERPRINT)
NUMBER = 1_000_000_007  # of the schema in a registry: a positive int32

Values = Sequence[int | float | str | bytes | None]


def column(name: str, type_: str = "int") -> dict[str, Any]:
    return {"name": name, "type": type_, "unsigned": False, "charset": "", "labels": [], "nullable": True}


def change(
    action: str,
    rows: Iterable[tuple[Values | None, Values | None]],
    *,
    columns: Sequence[str] = ("id", "v"),
    key: Sequence[int] = (0,),
    schema: str = "shop",
    table: str = "orders",
    **more: Any,
) -> dict[str, Any]:
    return {
        "schema": schema,
        "table": table,
        "columns": [column(name) for name in columns],
        "key_columns": list(key),
        "before_present": b"",
        "after_present": b"",
        "action": action,
        # fastavro takes a tuple in a union for a branch's name and value.
        "rows": [
            {"before": before if before is None else list(before), "after": after if after is None else list(after)}
            for before, after in rows
        ],
    } | more


def statement(sql: str, schema: str = "shop", options: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"schema": schema, "sql": sql, "options": dict(options or {})}


def whole(item: dict[str, Any]) -> bytes:
    """The bytes of a change that are cut into parts if no message has room for it."""
    out = io.BytesIO()
    schemaless_writer(out, CHANGE, item)
    return out.getvalue()


def load_record(
    seqno: int,
    changes: Sequence[dict[str, Any]] = (),
    *,
    part: Part = Part.ROWS,
    table: str = "orders",
    targets: tuple[str, ...] = (),
    **fields: Any,
) -> dict[str, Any]:
    """A whole event of the load of a table."""
    name = TableName(
        *(("shop", table) if not changes or "sql" in changes[0] else (changes[0]["schema"], changes[0]["table"]))
    )
    return record(
        seqno, changes, kind="load", gtid=None, metadata=LoadEvent("l1", part, name, targets).metadata(), **fields
    )


def in_parts(item: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """A change in a number of parts, each to be alone in its fragment."""
    data = whole(item)
    cuts = [number * len(data) // count for number in range(count + 1)]
    return [{"start": start, "size": len(data), "data": data[start:stop]} for start, stop in pairwise(cuts)]


def record(seqno: int, changes: Sequence[dict[str, Any]] = (), **fields: Any) -> dict[str, Any]:
    """A whole event of one fragment; any field of the schema can be given."""
    last = fields.get("last_frag", True)
    return {
        "seqno": seqno,
        "fragno": 0,
        "last_frag": True,
        "epoch": 1,
        "kind": "transaction",
        "shard": "shop",
        "prev_seqno": seqno - 1,
        "last_barrier": -1,
        "rows": sum(len(c.get("rows", ())) for c in changes),
        "source_id": "db:3306",
        "server_id": 1,
        "thread_id": 7,
        "gtid": f"6f1c9a52-0000-11ee-8c99-0242ac120002:{seqno + 1}",
        "last_committed": seqno,
        "sequence_number": seqno + 1,
        "metadata": {},
        "event_id": f"binlog.000001:{1000 + seqno:016d};7" if last else None,
        "commit_time": 1_700_000_000_000_000 + seqno if last else None,
        "outcome": "commit" if last else None,
        "changes": list(changes),
        "crc32": bytes(4),
    } | fields


def encoded(fields: dict[str, Any]) -> bytes:
    """Encodes as a producer without a registry does."""
    return (LOAD_PREFIX if fields["kind"] == "load" else PREFIX) + _body(fields)


def registered(fields: dict[str, Any], schema: str = "") -> bytes:
    """Encodes as a producer with a registry does."""
    schema = schema or (LOAD_FINGERPRINT if fields["kind"] == "load" else FINGERPRINT)
    told = {**fields, "metadata": {**fields["metadata"], "schema": schema}}
    return b"\0" + NUMBER.to_bytes(4, "big") + _body(told)


def by_epoch(fields: dict[str, Any]) -> bytes:
    """Encodes as producers of a log do of which every second one has a registry."""
    return encoded(fields) if fields["epoch"] % 2 else registered(fields)


def _body(fields: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, LOAD_SCHEMA if fields["kind"] == "load" else SCHEMA, fields)
    body = out.getvalue()[:-4]
    return body + zlib.crc32(body).to_bytes(4, "big")


def marker(epoch: int, first: int, last_finished: int, *, log_id: str, tail: int | None = None) -> dict[str, Any]:
    """An epoch's marker on a partition whose last event is `tail`; default: the log's last one."""
    return record(
        first,
        kind="epoch",
        epoch=epoch,
        prev_seqno=last_finished if tail is None else tail,
        gtid=None,
        shard="#UNKNOWN",
        metadata={"log_id": log_id, "last_finished": str(last_finished)},
    )


def batch(values: Sequence[bytes | None], *, partition: int = 0, offset: int = 0) -> pa.RecordBatch:
    return message_batch([partition] * len(values), range(offset, offset + len(values)), values)


def scanned(values: Sequence[bytes], *, topic: str = "t", partition: int = 0, offset: int = 0) -> list[Message]:
    """Scans each message by itself."""
    found = Scanner(topic).scan(batch(values, partition=partition, offset=offset))
    return [message for messages in found for message in messages]
