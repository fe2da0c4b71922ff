"""Rows of histories: the images of every kind of value, and what happens to them between compaction and target."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from connector.log.compact.compact import Compactor
from connector.log.compact.history import COLUMNS, history_layout, history_tables
from connector.log.compact.join import joined
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.postgres.writer_shares import divide
from connector.targets.values import rows
from tests.support.fragments import change, column, encoded, record, scanned
from tests.support.net import Row

ORDERS = TableName("shop", "orders")


def compacted(*records: dict[str, Any], wanted: str = "shop.orders") -> list[NetChanges]:
    compactor = Compactor("t", history=history_tables([wanted]))
    for message in scanned(list(map(encoded, records))):
        compactor.add(message)
    return compactor.drain()


def rows_of(*nets: NetChanges) -> list[Row]:
    return [row for net in nets for row in rows(net.inserts.data, net.inserts.ends, len(COLUMNS))]


def histories(nets: list[NetChanges]) -> list[NetChanges]:
    return [net for net in nets if net.history_of is not None]


def test_changes_that_compaction_leaves_out_are_rows() -> None:
    changes = [
        change("insert", [(None, [1, "a"]), (None, [2, "b"])]),
        change("update", [([1, "a"], [1, "c"])]),
        change("delete", [([1, "c"], None), ([2, "b"], None)]),
    ]
    (net,) = compacted(record(7, changes))
    assert (net.layout, net.history_of, net.changes) == (history_layout(ORDERS), ORDERS, 5)
    assert [row[:5] for row in rows_of(net)] == [
        (7, 0, "insert", None, '{"id":1,"v":"a"}'),
        (7, 1, "insert", None, '{"id":2,"v":"b"}'),
        (7, 2, "update", '{"id":1,"v":"a"}', '{"id":1,"v":"c"}'),
        (7, 3, "delete", '{"id":1,"v":"c"}', None),
        (7, 4, "delete", '{"id":2,"v":"b"}', None),
    ]
    assert {row[5:] for row in rows_of(net)} == {(None, "2023-11-14 22:13:20.000007")}


def test_only_tables_that_are_named_have_rows_and_the_position_counts_all() -> None:
    changes = [
        change("insert", [(None, [n, "x"])], table=table) for n, table in enumerate(("items", "orders", "orders"))
    ]
    nets = compacted(record(0, changes))
    assert [net.history_of for net in histories(nets)] == [ORDERS]
    assert [row[1] for row in rows_of(*histories(nets))] == [1, 2]
    assert histories(compacted(record(0, changes), wanted="other")) == []
    (one, other) = histories(compacted(record(0, changes), wanted="shop"))
    assert {one.history_of, other.history_of} == {ORDERS, TableName("shop", "items")}


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("bigint", -(2**63), -(2**63)),
        ("bigint unsigned", "18446744073709551615", 2**64 - 1),
        ("decimal(65,30)", "1.100000000000000000000000000000", "1.100000000000000000000000000000"),
        ("float", 0.10000000149011612, 0.1),
        ("double", 0.1 + 0.2, 0.30000000000000004),
        ("double", -0.0, -0.0),
        ("text", 'é"\\\n\0', 'é"\\\n\0'),
        ("blob", b"\0\xff", {"base64": "AP8="}),
        ("json", '{"a": 1.10}', '{"a": 1.10}'),
        ("int", None, None),
    ],
)
def test_value_is_exact_json(type_: str, value: Any, shown: Any) -> None:
    columns = [column("id"), column('a "b"', type_.split(maxsplit=1)[0]) | {"unsigned": "unsigned" in type_}]
    (net,) = histories(compacted(record(0, [change("insert", [(None, [1, value])]) | {"columns": columns}])))
    ((*_, after, _, _),) = rows_of(net)
    assert repr(json.loads(str(after))) == repr({"id": 1, 'a "b"': shown})


def test_column_that_was_not_logged_is_absent_and_one_that_is_null_is_there() -> None:
    partial = {"before_present": b"\1", "after_present": b"\2"}
    (net,) = histories(compacted(record(0, [change("update", [([1], [None])]) | partial])))
    assert [row[3:5] for row in rows_of(net)] == [('{"id":1}', '{"v":null}')]


def test_columns_of_a_wide_image_are_those_of_its_bitmap() -> None:
    columns = [column(f"c{n}") for n in range(20)]
    partial = {"before_present": b"\1\0\0", "after_present": b"\1\2\x08"}
    wide = change("update", [([1], [1, 9, 19])]) | partial | {"columns": columns}
    (net,) = histories(compacted(record(0, [wide])))
    assert [row[3:5] for row in rows_of(net)] == [('{"c0":1}', '{"c0":1,"c9":9,"c19":19}')]


def test_commit_time_of_the_last_fragment_is_in_rows_of_all() -> None:
    first = record(0, [change("insert", [(None, [1, "a"])])], last_frag=False)
    last = record(0, [change("insert", [(None, [2, "b"])])], fragno=1, rows=2)
    compactor = Compactor("t", history=history_tables(["shop"]))
    one, other = scanned([encoded(first), encoded(last)])
    before = compactor.add(one)
    compactor.add(other, before)
    found = rows_of(*histories(compactor.drain()))
    time = "2023-11-14 22:13:20.000000"
    assert [(row[1], row[6]) for row in found] == [(0, time), (1, time)]


def test_rows_count_among_the_bytes_of_a_commit() -> None:
    wide = [change("insert", [(None, [1, "x" * 1000])])]
    sizes = []
    for history in (None, history_tables(["shop"])):
        compactor = Compactor("t", history=history)
        for message in scanned([encoded(record(0, wide))]):
            compactor.add(message)
        sizes.append(compactor.size)
    assert sizes[1] > sizes[0] + 1000


def test_histories_count_among_the_tables_of_a_commit() -> None:
    compactor = Compactor("t", history=history_tables(["shop.orders"]))
    changes = [
        change("insert", [(None, [n, "x"])], table=table) for n, table in enumerate(("items", "orders", "orders"))
    ]
    for message in scanned([encoded(record(0, changes))]):
        compactor.add(message)
    assert compactor.table_count == 3
    compactor.drain()
    assert compactor.table_count == 0


def test_rows_stay_those_of_a_history_when_they_are_pickled_joined_and_divided() -> None:
    parts = [compacted(record(n, [change("insert", [(None, [n, "a"])])])) for n in range(20)]
    one = pickle.loads(pickle.dumps(joined([net for part in parts for net in part], "t")))  # noqa: S301
    (net,) = histories(one)
    assert (net.history_of, len(net), net.changes) == (ORDERS, 20, 20)
    shares = [share for share in divide(net, 3) if share is not None]
    assert [share.history_of for share in shares] == [ORDERS] * 3
    assert sorted(rows_of(*shares), key=lambda row: int(str(row[0]))) == sorted(
        rows_of(net), key=lambda row: int(str(row[0]))
    )
