"""Events of a newer version, with a kind that this version does not know, are refused by every reader, by name."""

from __future__ import annotations

import copy
import io
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from connector.consume.assembly import ConsumedMessage
from connector.consume.decoding import MessageDecoder
from connector.errors import ConnectorError, LogDamaged, Unsupported
from connector.inspect.thl_events.attempts import attempts
from connector.inspect.thl_events.decoding import fragment_of, header_of
from connector.kafka.trapped import logged_events
from connector.log.compact.compact import Compactor
from connector.log.compact.scan import Scanner
from connector.log.format.first_fields import first_fields
from connector.log.rules import Rule
from connector.spark.source.changes import Changes
from tests.support.events import MemoryLog, Story
from tests.support.fragments import LOAD_RAW, NUMBER, RAW, batch, change, encoded, load_record, record, scanned
from tests.unit.consume.test_assembly import Reading, place

ROWS = [change("insert", [(None, [1, "a"])])]


def written(kind: str, *, registry: bool) -> bytes:
    """As a version writes it that has a schema and a kind more."""
    schema: Any = copy.deepcopy(LOAD_RAW)
    (kinds,) = [one["type"] for one in schema["fields"] if one["name"] == "kind"]
    kinds["symbols"].append("audit")
    named = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
    out = io.BytesIO()
    metadata = {"schema": named} if registry else {}
    schemaless_writer(out, parse_schema(schema), record(0, ROWS, kind=kind, metadata=metadata))
    body = out.getvalue()[:-4]
    opening = b"\0" + NUMBER.to_bytes(4, "big") if registry else b"\xc3\x01" + bytes.fromhex(named)
    return opening + body + zlib.crc32(body).to_bytes(4, "big")


def consumed(value: bytes) -> object:
    reading = Reading(Story(MemoryLog()), place())
    return list(reading.assembly.accept(ConsumedMessage(0, 0, value)))


def compacted(value: bytes) -> object:
    """What the applier's tasks and driver do."""
    compactor = Compactor("t")
    for message in scanned([value]):
        compactor.add(message)
    return compactor.drain()


def read_by_spark(value: bytes) -> object:
    (message,) = scanned([value])
    return Changes("t").add(message, message.header, 0, 0)


READERS: dict[str, Callable[[bytes], object]] = {
    "the applier's scan": lambda value: Scanner("t").scan(batch([value])),
    "the applier's compaction": compacted,
    "read_thl": read_by_spark,
    "connector.consume": consumed,
    "connector.consume, changes": lambda value: list(MessageDecoder("t").changes([value], "t-0@0")),
    "thl list, fragments": lambda value: fragment_of(value, "t-0@0"),
    "thl list, headers": lambda value: header_of(value, "t-0@0"),
    "thl list, attempts": lambda value: list(attempts(0, [(0, value)], lambda _, last: header_of(last, "t-0@0"))),
    "thl trapped": lambda value: list(logged_events("t-0", iter([value]), lambda *_: True)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("registry", [False, True])
@pytest.mark.parametrize("kind", ["audit", "transaction"])
def test_event_of_a_newer_schema_is_refused_by_name(read: Callable[[bytes], object], kind: str, registry: bool) -> None:
    with pytest.raises(ConnectorError) as refused:
        read(written(kind, registry=registry))
    assert refused.value.where.get("rule") == Rule.OTHER_SCHEMA or (
        isinstance(refused.value, Unsupported) and "the producer is newer" in refused.value.hint
    )
    assert read(encoded(record(0, ROWS))) is not None  # of this version it is read


def test_consumer_names_the_remedy() -> None:
    with pytest.raises(Unsupported) as refused:
        consumed(written("audit", registry=False))
    assert "pass its fragment.avsc in schemas=" in refused.value.hint


def test_damaged_kind_of_this_schema_is_refused() -> None:
    value = bytearray(encoded(record(0, ROWS)))
    kind = value.index(b"\2" + b"\0" + b"\x08shop")  # epoch 1, transaction, its shard
    value[kind + 1] = 124
    with pytest.raises(LogDamaged) as refused:
        first_fields(bytes(value), "t-0@0")
    assert {"rule": Rule.OTHER_SCHEMA, "kind": 62, "at": "t-0@0"}.items() <= refused.value.where.items()


def test_library_of_avro_refuses_a_load_by_the_schema_of_other_events() -> None:
    """A foreign reader that was not given schemas/load.avsc gets an error, and no row."""
    value = encoded(load_record(0, [change("read", [(None, [1, "a"])])]))
    with pytest.raises(IndexError):
        schemaless_reader(io.BytesIO(value[10:]), parse_schema(RAW), None)
    for one in (value, encoded(record(0, ROWS))):
        assert schemaless_reader(io.BytesIO(one[10:]), parse_schema(LOAD_RAW), None)["rows"] == 1
