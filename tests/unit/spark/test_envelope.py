"""Debezium's envelope: types as Connect has them, keys, deletes, and what it cannot hold."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import Unsupported, ValueNotRepresentable
from connector.log.transaction.layout import Column
from connector.log.transaction.load import Part
from connector.spark.debezium.envelope import DebeziumMessage, Envelopes, topic_of
from connector.spark.debezium.envelope_types import connect_type
from connector.spark.source.changes import Changes
from connector.spark.source.columns import arrow_schema
from tests.support.fragments import change, column, encoded, load_record, record, scanned, statement


def rows_of(*changes_: dict[str, Any], part: Part | None = None, **fields: Any) -> list[dict[str, Any]]:
    """The rows of one event, as Spark has them; with a part one of a load."""
    made = record(41, changes_, **fields) if part is None else load_record(41, changes_, part=part, **fields)
    (message,) = scanned([encoded(made)])
    changes = Changes("t", layout=True)
    changes.add(message, message.header, 0, 0)
    found: list[dict[str, Any]] = changes.drain(arrow_schema(layout=True)).to_pylist()
    for row in found:
        row["commit_time"] = 1_700_000_000_000_041
    return found


def told(*rows: dict[str, Any], tombstones: bool = True) -> list[DebeziumMessage]:
    envelopes = Envelopes("p", tombstones=tombstones)
    return [message for row in rows for message in envelopes.messages(row)]


def payload(message: DebeziumMessage) -> dict[str, Any]:
    assert message.value is not None
    found: dict[str, Any] = json.loads(message.value)["payload"]
    return found


def field(fields: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [one for one in fields if one["field"] == name]
    return found


# MySQL's type, as the log's JSON has the value, Connect's type, its name, Connect's value
TYPES: list[tuple[str, bool, Any, str, str | None, Any]] = [
    ("tinyint", False, -128, "int16", None, -128),
    ("smallint", True, 65535, "int32", None, 65535),
    ("mediumint", False, 1, "int32", None, 1),
    ("int", True, 2**32 - 1, "int64", None, 2**32 - 1),
    ("bigint", False, -(2**63), "int64", None, -(2**63)),
    ("year", False, 2024, "int32", "io.debezium.time.Year", 2024),
    ("float", False, 0.1, "float", None, 0.1),
    ("double", False, 0.1, "double", None, 0.1),
    ("date", False, "1969-12-31", "int32", "io.debezium.time.Date", -1),
    ("datetime", False, "1970-01-01 00:00:01", "int64", "io.debezium.time.Timestamp", 1000),
    ("datetime(6)", False, "1970-01-01 00:00:01.000002", "int64", "io.debezium.time.MicroTimestamp", 1_000_002),
    ("timestamp(3)", False, "2024-03-31 01:30:00.125", "string", "io.debezium.time.ZonedTimestamp",
     "2024-03-31T01:30:00.125Z"),
    ("time", False, "-838:59:59", "int64", "io.debezium.time.MicroTime", -3_020_399_000_000),
    ("time(6)", False, "00:00:00.000001", "int64", "io.debezium.time.MicroTime", 1),
    ("json", False, '{"a": 1}', "string", "io.debezium.data.Json", '{"a": 1}'),
    ("varchar(9)", False, "é", "string", None, "é"),
    ("bit(1)", False, {"base64": "AQ=="}, "boolean", None, True),
    ("bit(1)", False, {"base64": "AA=="}, "boolean", None, False),
    ("bit(10)", False, {"base64": base64.b64encode(b"\2\1").decode()}, "bytes", "io.debezium.data.Bits",
     base64.b64encode(b"\1\2").decode()),
    ("varbinary(3)", False, {"base64": "AP8="}, "bytes", None, "AP8="),
    ("vector(2)", False, {"base64": base64.b64encode(bytes.fromhex("0000803f00000040")).decode()}, "array",
     "io.debezium.data.FloatVector", [1.0, 2.0]),
    ("geometry", False, {"base64": base64.b64encode(b"\xe6\x10\0\0wkb").decode()}, "struct",
     "io.debezium.data.geometry.Geometry", {"wkb": base64.b64encode(b"wkb").decode(), "srid": 4326}),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "unsigned", "value", "connect", "name", "expected"), TYPES)
def test_a_column_has_debezium_s_type(  # noqa: PLR0917
    type_: str, unsigned: bool, value: Any, connect: str, name: str | None, expected: Any
) -> None:
    found = connect_type(Column("c", type_, unsigned))
    assert (found.schema["type"], found.schema.get("name")) == (connect, name)
    assert found.value(value) == expected


def unscaled(text: str, scale: int) -> Decimal:
    return Decimal(int.from_bytes(base64.b64decode(text), "big", signed=True)).scaleb(-scale)


@given(st.decimals(-(10**35) + 1, 10**35 - 1, places=30))
def test_decimals_are_exact(number: Decimal) -> None:
    found = connect_type(Column("c", "decimal(65,30)"))
    assert found.schema["parameters"] == {"scale": "30", "connect.decimal.precision": "65"}
    back = int.from_bytes(base64.b64decode(found.value(f"{number:f}")), "big", signed=True)
    assert back == int(f"{number:f}".replace(".", ""))


@given(st.integers(0, 2**64 - 1))
def test_unsigned_bigints_are_exact(number: int) -> None:
    found = connect_type(Column("c", "bigint", unsigned=True))
    assert unscaled(found.value(number), 0) == number


def test_an_insert_is_a_create() -> None:
    (row,) = rows_of(change("insert", [(None, [1, "a"])]))
    (message,) = told(row)
    assert message.topic == "p.shop.orders"
    assert message.key is not None
    assert json.loads(message.key) == {
        "schema": {"type": "struct", "fields": [{"type": "int32", "optional": False, "field": "id"}],
                   "optional": False, "name": "p.shop.orders.Key"},
        "payload": {"id": 1},
    }  # fmt: skip
    found = payload(message)
    source = found.pop("source")
    assert found == {
        "before": None, "after": {"id": 1, "v": "a"}, "op": "c", "ts_ms": 1_700_000_000_000,
        "ts_us": 1_700_000_000_000_041, "ts_ns": 1_700_000_000_000_041_000,
        "transaction": {"id": row["gtid"], "total_order": 1, "data_collection_order": 1},
    }  # fmt: skip
    assert (source["file"], source["pos"], source["gtid"], source["db"], source["table"], source["ts_ms"]) == (
        "binlog.000001", 1041, row["gtid"], "shop", "orders", 1_700_000_000_000,
    )  # fmt: skip


def test_every_value_has_its_schema() -> None:
    """Connect refuses a payload with fields that the schema does not have, or without those that it must have."""

    def check(schema: dict[str, Any], value: Any) -> None:
        if value is None:
            assert schema["optional"]
        elif schema["type"] == "struct":
            fields = {one["field"]: one for one in schema["fields"]}
            assert value.keys() <= fields.keys()
            for name, one in fields.items():
                check(one, value.get(name))

    for row in rows_of(change("update", [([1, "a"], [1, None])]), change("delete", [([1, None], None)])):
        for message in told(row):
            for part in (message.key, message.value):
                if part is not None:
                    both = json.loads(part)
                    check(both["schema"], both["payload"])


def test_an_update_and_a_row_of_a_snapshot_have_their_operations() -> None:
    (row,) = rows_of(change("update", [([1, "a"], [1, "b"])]))
    found = payload(told(row)[0])
    assert (found["op"], found["before"], found["after"]) == ("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"})
    (row,) = rows_of(change("insert", [(None, [1, "a"])]), metadata={"snapshot": "rows"})
    found = payload(told(row)[0])
    assert (found["op"], found["source"]["snapshot"]) == ("r", "true")


def test_rows_of_a_load_are_those_of_an_incremental_snapshot() -> None:
    read, gone = change("read", [(None, [1, "a"])]), change("delete", [([2, "b"], None)])
    found = [payload(message) for message in told(*rows_of(read, gone, part=Part.ROWS), tombstones=False)]
    assert [(one["op"], one["before"], one["after"]) for one in found] == [
        ("r", None, {"id": 1, "v": "a"}),
        ("d", {"id": 2, "v": "b"}, None),
    ]
    assert {one["source"]["snapshot"] for one in found} == {"incremental"}
    assert [(one["transaction"]["id"], one["transaction"]["total_order"]) for one in found] == [
        ("1:41", 1),
        ("1:41", 2),
    ]


def test_rows_of_a_repair_are_reads_and_deletes_of_the_key() -> None:
    read, gone = change("read", [(None, [1, "a"])]), change("delete", [([2], None)], before_present=b"\1")
    found = told(*rows_of(read, gone, part=Part.REPAIR))
    assert [payload(one)["op"] for one in found[:2]] == ["r", "d"]
    assert (payload(found[1])["before"]["id"], found[2].value, found[2].key) == (2, None, found[1].key)


def test_begin_and_end_of_a_load_have_no_messages() -> None:
    begin = [statement("CREATE DATABASE shop", schema=""), statement("CREATE TABLE orders (id INT)")]
    assert told(*rows_of(*begin, part=Part.BEGIN), *rows_of(part=Part.END)) == []


@pytest.mark.parametrize("images", [[], [(None, [1, "a"]), (None, [1, "a"])]])
def test_load_of_a_table_without_a_key_truncates_it_first(images: list[tuple[None, list[Any]]]) -> None:
    rows = [change("read", [image], key=()) for image in images]
    truncated, *read = told(*rows_of(*rows, part=Part.WHOLE))
    assert (truncated.topic, truncated.key) == ("p.shop.orders", None)
    found = payload(truncated)
    assert (found["op"], found["before"], found["after"]) == ("t", None, None)
    assert (found["source"]["snapshot"], found["source"]["db"], found["source"]["table"]) == (
        "incremental", "shop", "orders",
    )  # fmt: skip
    assert [(payload(one)["op"], payload(one)["after"]["v"], one.key) for one in read] == [("r", "a", None)] * len(rows)
    orders = [payload(one)["transaction"]["total_order"] for one in (truncated, *read)]
    assert orders == list(range(1, len(rows) + 2))


def test_a_delete_is_followed_by_a_tombstone() -> None:
    (row,) = rows_of(change("delete", [([1, "a"], None)]))
    deleted, tombstone = told(row)
    assert (payload(deleted)["op"], payload(deleted)["after"]) == ("d", None)
    assert (tombstone.key, tombstone.value) == (deleted.key, None)
    assert len(told(row, tombstones=False)) == 1


def test_a_changed_key_is_a_delete_and_a_create() -> None:
    (row,) = rows_of(change("update", [([1, "a"], [2, "b"])]))
    deleted, tombstone, created = told(row)
    assert tombstone.value is None
    assert [payload(one)["op"] for one in (deleted, created)] == ["d", "c"]
    assert payload(created)["before"] is None
    assert [json.loads(one.key)["payload"]["id"] for one in (deleted, created) if one.key] == [1, 2]


def test_rows_are_numbered_within_their_transaction() -> None:
    rows = rows_of(change("insert", [(None, [1, "a"])]), change("insert", [(None, [2, "b"])], table="other"),
                   change("insert", [(None, [3, "c"])]))  # fmt: skip
    blocks = [payload(one)["transaction"] for one in told(*rows)]
    assert [(one["total_order"], one["data_collection_order"]) for one in blocks] == [(1, 1), (2, 1), (3, 2)]


def test_ddl_and_savepoints_have_no_messages() -> None:
    assert told(*rows_of(statement("CREATE TABLE x"), kind="ddl")) == []
    assert told(*rows_of(statement("SAVEPOINT a"))) == []


def test_changes_that_the_envelope_cannot_hold_are_refused() -> None:
    with pytest.raises(Unsupported) as logged:
        told(*rows_of(statement("UPDATE t SET a = 1")))
    with pytest.raises(Unsupported) as partial:
        told(*rows_of(change("update", [([1], ["b"])], before_present=b"\1", after_present=b"\2")))
    assert "binlog_format" in logged.value.hint
    with pytest.raises(Unsupported, match="before image of a delete") as gone:
        told(*rows_of(change("delete", [([1], None)], before_present=b"\1")))
    with pytest.raises(Unsupported, match="before image of a delete"):
        told(*rows_of(change("update", [([1], [2, "b"])], before_present=b"\1")))
    assert "binlog_row_image" in partial.value.hint
    assert gone.value.where["table"] == "shop.orders"
    day = change("insert", [(None, [1, "0000-00-00"])]) | {"columns": [column("id"), column("v", "date")]}
    with pytest.raises(ValueNotRepresentable) as caught:
        told(*rows_of(day))
    assert caught.value.where["key"] == "id=1"
    assert caught.value.where["column"] == "v"


def test_a_delete_of_a_repair_has_empty_values_beside_the_key() -> None:
    layout = [column("id"), column("v", "varchar(9)") | {"nullable": False}, column("w")]
    one = change("delete", [([1], None)], before_present=b"\1") | {"columns": layout}
    deleted, _ = told(*rows_of(one, part=Part.REPAIR))
    assert payload(deleted)["before"] == {"id": 1, "v": "", "w": None}


def test_a_table_without_a_key_has_messages_without_keys() -> None:
    (deleted,) = told(*rows_of(change("delete", [([1, "a"], None)], key=())))
    assert deleted.key is None


def test_characters_that_kafka_refuses_are_replaced_in_a_topic() -> None:
    assert topic_of("p", "my shop", "größe") == "p.my_shop.gr__e"
