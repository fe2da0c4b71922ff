"""The decoding of messages, and Avro's resolution between older and newer schema versions, both ways."""

from __future__ import annotations

import copy
import io
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form
from hypothesis import given
from hypothesis import strategies as st

from connector.consume import Action, Column, Row, RowChanges, Statement
from connector.consume.decoding import MessageDecoder
from connector.errors import ConfigError, LogDamaged, Unsupported
from connector.log.ids import Kind, Outcome
from tests.support.fragments import NUMBER, RAW, change, encoded, record, registered, statement

CHANGES = [
    statement("CREATE TABLE t (id INT)", options={"sql_mode": "ANSI"}),
    change("update", [((7, None, b"\xff"), (7, 1.5))], columns=("id", "v", "b"), after_present=b"\x03"),
    change("delete", [((2**63 - 1, "ü"), None)], key=()),
]


def written(fields: dict[str, Any], schema: Any, *, registry: bool = False) -> bytes:
    """As a producer with this schema does."""
    out = io.BytesIO()
    named = bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))
    opening = b"\xc3\x01" + named
    if registry:
        opening, fields = b"\0" + NUMBER.to_bytes(4, "big"), {**fields, "metadata": {"schema": named.hex()}}
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), fields)
    body = out.getvalue()[:-4]
    return opening + body + zlib.crc32(body).to_bytes(4, "big")


def newer() -> dict[str, Any]:
    """A schema with a field more in the header, one in a column, and one behind the changes."""
    schema = copy.deepcopy(RAW)
    names = [field["name"] for field in schema["fields"]]
    schema["fields"].insert(names.index("changes"), {"name": "region", "type": "string", "default": "eu"})
    schema["fields"].insert(-1, {"name": "note", "type": ["null", "string"], "default": None})
    column = schema["fields"][names.index("changes") + 1]["type"]["items"][1]["fields"][2]["type"]["items"]
    column["fields"].append({"name": "comment", "type": "string", "default": ""})
    return schema


def test_a_message_is_decoded_into_header_and_changes() -> None:
    decoder, value = MessageDecoder("t"), encoded(record(41, CHANGES, kind="ddl", shard="#UNKNOWN"))
    header = decoder.header(value, "t-0@0")
    assert (header.seqno, header.kind, header.outcome, header.rows) == (41, Kind.DDL, Outcome.COMMIT, 2)
    assert header.barrier
    first, second, third = decoder.changes([value], "t-0@0")
    assert first == Statement("shop", "CREATE TABLE t (id INT)", {"sql_mode": "ANSI"})
    assert isinstance(second, RowChanges)
    assert (second.schema, second.table, second.action, second.key_columns) == (
        "shop",
        "orders",
        Action.UPDATE,
        ("id",),
    )
    assert second.columns[1] == Column("v", "int")
    assert second.rows == [Row({"id": 7, "v": None, "b": b"\xff"}, {"id": 7, "v": 1.5})]
    assert isinstance(third, RowChanges)
    assert (third.key_columns, third.rows) == ((), [Row({"id": 2**63 - 1, "v": "ü"}, None)])


@pytest.mark.parametrize("registry", [False, True])
def test_an_event_of_a_newer_producer_is_decoded_with_its_schema(*, registry: bool) -> None:
    fields = record(41, copy.deepcopy(CHANGES)) | {"region": "us", "note": "new"}
    for each in fields["changes"]:
        for column in each.get("columns", ()):
            column["comment"] = "a column"
    value = written(fields, newer(), registry=registry)
    with pytest.raises(Unsupported) as refused:
        MessageDecoder("t").header(value, "t-0@0")
    assert refused.value.where["fingerprint"] == fingerprint(to_parsing_canonical_form(newer()), "CRC-64-AVRO")
    decoder, ours = (
        MessageDecoder("t", [newer()]),
        registered(record(41, CHANGES)) if registry else encoded(record(41, CHANGES)),
    )
    named = decoder.header(value, "p").metadata.get("schema")
    assert named == (fingerprint(to_parsing_canonical_form(newer()), "CRC-64-AVRO") if registry else None)
    assert replace(decoder.header(value, "p"), metadata={}) == replace(decoder.header(ours, "p"), metadata={})
    assert list(decoder.changes([value], "p")) == list(decoder.changes([ours], "p"))


def test_avro_resolves_older_and_newer_schemas_into_each_other() -> None:
    """By fastavro alone, as in other programs. Without bytes columns: see `connector.consume.decoding`."""
    ours, more = fastavro.parse_schema(copy.deepcopy(RAW)), fastavro.parse_schema(newer())
    fields = record(41, [change("insert", [(None, (7, "ü")), (None, (2**40, None))])])
    read: Any = fastavro.schemaless_reader(io.BytesIO(encoded(fields)[10:]), ours, more)
    assert (read["seqno"], read["region"], read["note"]) == (41, "eu", None)
    assert read["changes"][0]["rows"] == fields["changes"][0]["rows"]
    fewer = copy.deepcopy(RAW)
    fewer["fields"] = [field for field in RAW["fields"] if field["name"] not in ("thread_id", "metadata")]
    read = fastavro.schemaless_reader(io.BytesIO(encoded(fields)[10:]), ours, fastavro.parse_schema(fewer))
    assert "thread_id" not in read
    assert read == {name: value for name, value in _whole(fields).items() if name in read}


def _whole(fields: dict[str, Any]) -> dict[str, Any]:
    found: Any = fastavro.schemaless_reader(io.BytesIO(encoded(fields)[10:]), fastavro.parse_schema(RAW), None)
    return dict(found)


@given(st.data(), st.sampled_from([encoded, registered]))
def test_any_changed_byte_is_refused(data: st.DataObject, writer: Callable[[dict[str, Any]], bytes]) -> None:
    value = bytearray(writer(record(41, CHANGES)))
    # This package ignores a registry's number for the schema: it reads the fingerprint.
    at = data.draw(st.integers(0, len(value) - 1).filter(lambda at: writer is encoded or not 1 <= at < 5))
    value[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises((LogDamaged, Unsupported)):
        MessageDecoder("t").header(bytes(value[: data.draw(st.integers(at + 1, len(value)))]), "t-0@7")


def test_an_invalid_or_incomplete_schema_is_refused() -> None:
    for schema in ({"type": "record"}, {"type": "record", "name": "F", "fields": [{"name": "a", "type": "long"}]}):
        with pytest.raises(ConfigError):
            MessageDecoder("t", [schema])
