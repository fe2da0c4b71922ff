"""The changes of a fragment as Arrow columns, exactly as in the log."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.ids import UNKNOWN_SHARD
from connector.log.rules import Rule
from connector.log.transaction.load import Part
from connector.spark.source.changes import Changes
from connector.spark.source.columns import arrow_schema
from tests.support.broken_rules import breaks
from tests.support.fragments import change, column, encoded, load_record, record, scanned, statement

values = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.binary(max_size=40),
)


def rows_of(*fragments: dict[str, Any], layout: bool = False) -> list[dict[str, Any]]:
    """One event's rows."""
    messages = scanned([encoded(one) for one in fragments])
    changes, number, rows = Changes("t", layout), 0, 0
    for message in messages:
        number, rows = changes.add(message, messages[-1].header, number, rows)
    batch = changes.drain(arrow_schema(layout=layout))
    batch.validate(full=True)
    assert changes.rows == 0
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def shown(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


@given(st.lists(st.tuples(values, values), min_size=1, max_size=20))
def test_values_are_exact(images: list[tuple[object, object]]) -> None:
    found = rows_of(record(7, [change("insert", [(None, list(image)) for image in images])]))
    assert [row["before"] for row in found] == [None] * len(images)
    for row, image in zip(found, images, strict=True):
        got = json.loads(row["after"])
        assert got == {"id": shown(image[0]), "v": shown(image[1])}
        for value, back in zip(image, got.values(), strict=True):
            assert type(back) is type(shown(value))
            if isinstance(value, float):
                assert math.copysign(1, value) == math.copysign(1, back)


def test_a_row_has_the_ids_of_its_event() -> None:
    (row,) = rows_of(
        record(41, [change("update", [([1, "a"], [1, "b"])])], epoch=3, metadata={"snapshot": "rows"}), layout=True
    )
    commit_time = row.pop("commit_time")
    assert (commit_time.timestamp(), commit_time.utcoffset().total_seconds()) == (1_700_000_000.000041, 0)
    assert row == {
        "seqno": 41, "change": 0, "epoch": 3, "server_id": 1, "kind": "transaction",
        "event_id": "binlog.000001:0000000000001041;7",
        "gtid": "6f1c9a52-0000-11ee-8c99-0242ac120002:42", "snapshot": "rows", "load": None, "load_part": None,
        "schema": "shop", "table": "orders",
        "action": "update", "key": '["id"]', "before": '{"id":1,"v":"a"}', "after": '{"id":1,"v":"b"}', "sql": None,
        "layout": json.dumps([column("id"), column("v")], separators=(",", ":")).replace(
            '"type":"int","unsigned":false,"charset":"","labels":[],"nullable":true',
            '"type":"int","unsigned":false,"charset":"","labels":[],"nullable":true',
        ),
    }  # fmt: skip


def test_changes_and_statements_are_numbered_through_an_event() -> None:
    first = record(
        5, [statement("CREATE TABLE x"), change("insert", [(None, [1, "a"]), (None, [2, "b"])])], last_frag=False,
        event_id=None, commit_time=None, outcome=None, gtid=None,
    )  # fmt: skip
    last = record(5, [change("delete", [([1, "a"], None)])], fragno=1, rows=3)
    found = rows_of(first, last)
    assert [(row["change"], row["action"], row["table"], row["sql"]) for row in found] == [
        (0, "statement", None, "CREATE TABLE x"),
        (1, "insert", "orders", None),
        (2, "insert", "orders", None),
        (3, "delete", "orders", None),
    ]
    # Every change has what only the last fragment says.
    assert {row["event_id"] for row in found} == {last["event_id"]}


def test_absent_columns_are_left_out_and_are_not_null() -> None:
    partial = change(
        "update", [([1], [None, "b"])], columns=("id", "a", "b"), before_present=b"\1", after_present=b"\6"
    )
    (row,) = rows_of(record(0, [partial]))
    assert (row["before"], row["after"]) == ('{"id":1}', '{"a":null,"b":"b"}')


def test_integers_above_63_bits_and_floats_are_numbers() -> None:
    big = {**column("id", "bigint"), "unsigned": True}
    one = change("insert", [(None, [str(2**64 - 1), 0.1])]) | {"columns": [big, column("v", "float")]}
    (row,) = rows_of(record(0, [one]))
    assert row["after"] == '{"id":18446744073709551615,"v":0.1}'


@pytest.mark.parametrize(
    ("damage", "rule", "where"),
    [
        ({"rows": 2}, Rule.ROW_COUNT, {"rows": 1, "expected": 2}),
        ({"changes": [change("insert", [(None, [1])])]}, Rule.IMAGE_VALUES, {"values": "too few"}),
        ({"changes": [change("insert", [(None, [1, "a", 3])])]}, Rule.IMAGE_VALUES, {"values": "too many"}),
    ],
)
def test_contradictory_fragments_are_refused(damage: dict[str, Any], rule: Rule, where: dict[str, object]) -> None:
    with breaks(rule, seqno=0, **where):
        rows_of(record(0, [change("insert", [(None, [1, "a"])])]) | damage)


def test_rows_of_a_load_name_it_and_their_part() -> None:
    columns = ("kind", "load", "load_part", "schema", "table", "action", "sql", "after")
    read = change("read", [(None, [1, "a"])])
    begin = [statement("CREATE DATABASE shop", schema=""), statement("CREATE TABLE orders (id INT)")]
    found = [
        *rows_of(load_record(0, begin, part=Part.BEGIN, shard=UNKNOWN_SHARD), layout=True),
        *rows_of(load_record(1, [read]), layout=True),
        *rows_of(load_record(2, [read], part=Part.WHOLE, shard=UNKNOWN_SHARD), layout=True),
        *rows_of(load_record(3, [], part=Part.END, shard=UNKNOWN_SHARD), layout=True),
    ]
    of_load = ("load", "l1")
    assert [tuple(row[name] for name in columns) for row in found] == [
        (*of_load, "begin", "shop", "orders", "statement", "CREATE DATABASE shop", None),
        (*of_load, "begin", "shop", "orders", "statement", "CREATE TABLE orders (id INT)", None),
        (*of_load, "rows", "shop", "orders", "read", None, '{"id":1,"v":"a"}'),
        (*of_load, "whole", "shop", "orders", "read", None, '{"id":1,"v":"a"}'),
        (*of_load, "end", "shop", "orders", None, None, None),
    ]
    assert [row["change"] for row in found] == [0, 1, 0, 0, 0]
    assert {row["before"] for row in found} == {None}
    assert [row["layout"] is None for row in found] == [True, True, False, False, True]


def test_only_the_last_fragment_shows_that_a_load_s_event_has_no_change() -> None:
    whole = {"part": Part.WHOLE, "shard": UNKNOWN_SHARD}
    first = load_record(0, [], **whole, last_frag=False, event_id=None, commit_time=None, outcome=None)
    (row,) = rows_of(first, load_record(0, [], **whole, fragno=1))
    assert (row["action"], row["load_part"]) == (None, "whole")
    (row,) = rows_of(first, load_record(0, [change("read", [(None, [1, "a"])])], **whole, fragno=1))
    assert row["action"] == "read"
    assert rows_of(record(0)) == []  # of any other event nothing is shown


def test_metadata_that_do_not_name_a_load_are_damage() -> None:
    with pytest.raises(LogDamaged) as refused:
        rows_of(load_record(4, [change("read", [(None, [1, "a"])])]) | {"metadata": {"load": "l1"}})
    assert {"seqno": 4, "at": "t-0@0"}.items() <= refused.value.where.items()
