"""Net changes give the same table as all changes one by one, in any batches."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import LogDamaged, Unsupported
from connector.log.compact.compact import Compactor
from connector.log.compact.join import joined as join
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import Column, TableName
from tests.support.compact_model import Counted, Keyed, Row, decoded
from tests.support.fragments import PREFIX, change, encoded, record, scanned, statement

VALUE = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=8), st.binary(max_size=8)
)


def collapsed(*changes: dict[str, Any], times: int = 1) -> list[NetChanges]:
    """Each change a fragment of its own; `times`: how often the same compactor is used before."""
    compactor = Compactor("t")
    for _ in range(times):
        for message in scanned([encoded(record(n, [one])) for n, one in enumerate(changes)]):
            compactor.add(message)
        net = compactor.drain()
    return net


def joined(parts: Iterable[Iterable[dict[str, Any]]], *, apart: bool = False) -> list[NetChanges]:
    """The net changes of parts, each compacted alone."""
    return join([net for part in parts for net in collapsed(*part)], "t", apart=apart)


def counts(net: NetChanges) -> tuple[int, int, int]:
    return len(net.inserts), len(net.updates), len(net.deletes)


INSERT = change("insert", [(None, [1, "a"])])
UPDATE = change("update", [([1, "a"], [1, "b"])])
DELETE = change("delete", [([1, "b"], None)])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([INSERT], (1, 0, 0)),
        ([INSERT, UPDATE], (1, 0, 0)),
        ([INSERT, UPDATE, DELETE], None),
        ([INSERT, DELETE, INSERT], (1, 0, 0)),
        ([UPDATE], (0, 1, 0)),
        ([UPDATE, UPDATE], (0, 1, 0)),
        ([UPDATE, DELETE], (0, 0, 1)),
        ([DELETE], (0, 0, 1)),
        ([DELETE, INSERT], (0, 1, 0)),
        ([DELETE, INSERT, UPDATE], (0, 1, 0)),
        ([DELETE, INSERT, DELETE], (0, 0, 1)),
        ([change("update", [([1, "a"], [2, "a"])])], (1, 0, 1)),
        ([INSERT, change("update", [([1, "a"], [2, "a"])])], (1, 0, 0)),
    ],
)
def test_first_and_last_change_of_a_key_decide_its_net_change(
    changes: list[dict[str, Any]], expected: tuple[int, int, int]
) -> None:
    net = collapsed(*changes)
    assert [counts(one) for one in net] == ([expected] if expected else [])


@pytest.mark.parametrize(
    "changes",
    [
        [INSERT, INSERT],
        [DELETE, DELETE],
        [DELETE, UPDATE],
        [UPDATE, INSERT],
        [INSERT, DELETE, DELETE],
        [INSERT, DELETE, UPDATE],
    ],
)
def test_contradictory_changes_of_a_key_are_refused(changes: list[dict[str, Any]]) -> None:
    with pytest.raises(LogDamaged) as damaged:
        collapsed(*changes)
    assert str(damaged.value.where["at"]).startswith("t-0@")


def test_swapped_keys_are_two_updates() -> None:
    steps = [([1, "a"], [3, "a"]), ([2, "b"], [1, "b"]), ([3, "a"], [2, "a"])]
    (net,) = collapsed(*(change("update", [step]) for step in steps))
    assert counts(net) == (0, 2, 0)
    assert set(decoded(net.updates, 2)) == {(1, "b"), (2, "a")}


def test_last_image_of_a_key_remains() -> None:
    (net,) = collapsed(INSERT, UPDATE)
    assert decoded(net.inserts, 2) == [(1, "b")]
    assert net.changes == 2


def test_keys_that_differ_in_case_are_two_keys() -> None:
    (net,) = collapsed(change("insert", [(None, ["a", 1]), (None, ["A", 1])]))
    assert counts(net) == (2, 0, 0)


def test_key_of_columns_that_are_not_adjacent_is_compared_whole() -> None:
    one = {"columns": ["a", "v", "b"], "key": [2, 0]}
    (net,) = collapsed(
        change("insert", [(None, [1, "x", 2]), (None, [2, "x", 1]), (None, [12, "x", 1])], **one),
        change("update", [([2, "x", 1], [2, "y", 1])], **one),
        change("update", [([1, "x", 2], [1, "x", 3])], **one),
    )
    assert sorted(decoded(net.inserts, 3)) == [(1, "x", 3), (2, "y", 1), (12, "x", 1)]


def test_rows_without_a_key_are_counted() -> None:
    one = {"key": []}
    (net,) = collapsed(
        change("insert", [(None, [1, "a"])] * 3, **one),
        change("delete", [([1, "a"], None), ([2, None], None), ([2, None], None)], **one),
        change("update", [([3, "x"], [3, "y"]), ([3, "y"], [3, "x"])], **one),
    )
    assert decoded(net.inserts, 2) == [(1, "a")] * 2
    assert decoded(net.deletes, 2) == [(2, None)] * 2
    assert len(net.updates) == 0


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "a batch each"])
def test_newest_of_equal_rows_without_a_key_is_deleted_first(together: bool) -> None:
    """Which one is seen by the transaction's columns: the oldest event's row is what is left."""
    row = [(None, [1, "a"])]
    steps = [change("insert", row, key=[]), change("insert", row, key=[]), change("delete", [([1, "a"], None)], key=[])]
    messages = scanned([encoded(record(5 + n, [one])) for n, one in enumerate(steps)])
    compactor = Compactor("t", metadata_columns([("seqno", "_seqno")]))
    left: list[tuple[Any, ...]] = []
    for message in messages:
        compactor.add(message)
        if together and message is not messages[-1]:
            continue
        for net in compactor.drain():
            left += decoded(net.inserts, 3)
            assert len(net.deletes) == (not together and message is messages[-1])
    assert left == ([(1, "a", 5)] if together else [(1, "a", 5), (1, "a", 6)])


def test_an_earlier_layout_comes_before_a_later_one_of_the_same_table() -> None:
    later = change("insert", [(None, [2, "b", 7])], columns=["id", "v", "w"])
    other = change("insert", [(None, [1, "b"])], table="items")
    net = collapsed(INSERT, other, later, other | {"rows": [{"before": None, "after": [2, "z"]}]}, times=2)
    assert [(str(one.layout.name), len(one.layout.columns), counts(one)) for one in net] == [
        ("shop.orders", 2, (1, 0, 0)),
        ("shop.items", 2, (2, 0, 0)),
        ("shop.orders", 3, (1, 0, 0)),
    ]


def test_repeated_layout_is_one_object() -> None:
    described = {
        "name": "v",
        "type": "enum",
        "unsigned": True,
        "charset": "latin1",
        "labels": ["ä", "b"],
        "nullable": False,
    }
    one = INSERT | {"columns": [INSERT["columns"][0], described]}
    compactor = Compactor("t")
    layouts = []
    for _ in range(2):
        for message in scanned([encoded(record(0, [one]))]):
            compactor.add(message)
        layouts.append(compactor.drain()[0].layout)
    assert layouts[0] is layouts[1]
    assert layouts[0].name == TableName("shop", "orders")
    assert layouts[0].columns[1] == Column("v", "enum", True, "latin1", ("ä", "b"), False)
    assert layouts[0].key == (0,)


def test_fragment_with_changes_of_several_tables_gives_one_net_change_each() -> None:
    other = change("insert", [(None, [9, None])], table="items")
    compactor = Compactor("t")
    (message,) = scanned([encoded(record(0, [INSERT, other, UPDATE]))])
    assert compactor.add(message) == 3
    assert compactor.rows == 3
    assert [str(net.layout.name) for net in compactor.drain()] == ["shop.orders", "shop.items"]
    assert (compactor.rows, compactor.drain()) == (0, [])


def test_statement_among_rows_is_refused() -> None:
    with pytest.raises(Unsupported) as caught:
        collapsed(INSERT, statement("UPDATE t SET a = 1"))
    assert caught.value.where["sql"] == "UPDATE t SET a = 1"
    assert "seqno" in caught.value.where


def test_a_savepoint_among_rows_changes_nothing() -> None:
    assert collapsed(statement("SAVEPOINT `a`"), INSERT) == collapsed(INSERT)
    with pytest.raises(Unsupported) as caught:
        collapsed(statement("SAVEPOINT `a`"), INSERT, statement("ROLLBACK TO `a`"))
    assert caught.value.where["sql"] == "ROLLBACK TO `a`"


def test_a_bitmap_of_all_columns_is_the_same_as_none() -> None:
    assert counts(collapsed(change("insert", [(None, [1, 2])], after_present=b"\x03"))[0]) == (1, 0, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        change("insert", [(None, [1])]),
        change("insert", [([1, 2], [1, 2])]),
        change("delete", [(None, [1, 2])]),
        change("update", [(None, [1, 2])]),
        change("insert", [(None, [1, 2])], key=[2]),
        change("insert", [(None, [1, 2])], key=[-1]),
        change("insert", [(None, [])], columns=[], key=[]),
    ],
)
def test_image_that_layout_or_action_do_not_allow_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LogDamaged):
        collapsed(wrong)


@given(st.data())
def test_damaged_changes_raise_errors_of_this_package_alone(data: st.DataObject) -> None:
    """With a right checksum: whatever the bytes, an error of the connector or rows, never anything else."""
    good = encoded(record(0, [change("update", [([1, "a", None], [1, b"b", 2.5])] * 2, columns=["a", "b", "c"])]))
    body = bytearray(good[len(PREFIX) : -4])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(60, len(body) - 1))] = data.draw(st.integers(0, 255))
    compactor = Compactor("t")
    try:
        for message in scanned([PREFIX + bytes(body) + zlib.crc32(bytes(body)).to_bytes(4, "big")]):
            compactor.add(message)
        compactor.drain()
    except (LogDamaged, Unsupported):
        return


@st.composite
def keyed_history(draw: st.DrawFn) -> tuple[list[int], list[Row], list[dict[str, Any]]]:
    """Rows that are there, and changes that a source could log."""
    key = draw(st.sampled_from([[0], [1], [0, 1], [2, 0], [1, 2]]))
    small = st.tuples(st.integers(0, 3), st.sampled_from(["", "a", "A", "aa"]), st.integers(0, 2))
    model = Keyed(key)
    for row in draw(st.lists(small, max_size=8)):
        model.rows[model.of(row)] = row
    before = list(model.rows.values())
    changes = []
    for _ in range(draw(st.integers(0, 25))):
        row = draw(small)
        there = sorted(model.rows.values(), key=repr)
        match draw(st.sampled_from(["insert", "update", "delete"])):
            case "insert" if model.of(row) not in model.rows:
                model.rows[model.of(row)] = row
                changes.append(change("insert", [(None, row)], columns="abc", key=key))
            case "update" if there:
                old = draw(st.sampled_from(there))
                if model.of(row) == model.of(old) or model.of(row) not in model.rows:
                    del model.rows[model.of(old)]
                    model.rows[model.of(row)] = row
                    changes.append(change("update", [(old, row)], columns="abc", key=key))
            case "delete" if there:
                old = draw(st.sampled_from(there))
                del model.rows[model.of(old)]
                changes.append(change("delete", [(old, None)], columns="abc", key=key))
    return key, before, changes


def cut(draw: st.DrawFn, items: list[Any]) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    for item in items:
        if draw(st.booleans()):
            parts.append([])
        parts[-1].append(item)
    return parts


@settings(max_examples=300)
@given(keyed_history(), st.data())
def test_net_changes_of_a_keyed_table_end_like_the_log_in_any_batches(
    history: tuple[list[int], list[Row], list[dict[str, Any]]], data: st.DataObject
) -> None:
    key, before, changes = history
    expected, target = Keyed(key), Keyed(key)
    for row in before:
        expected.rows[expected.of(row)] = target.rows[target.of(row)] = row
    for one in changes:
        for net in collapsed(one):
            expected.do(net)
    parts = cut(data.draw, changes)
    for part in parts:
        for net in collapsed(*part):
            target.do(net)
            assert sum(counts(net)) <= 2 * net.changes
    assert target.rows == expected.rows
    # Their order is roughly that of their keys within each part, and of all in what is compacted at once.
    assert [in_any_order(net) for net in joined(parts)] == [in_any_order(net) for net in collapsed(*changes)]
    assert expected.rows == replayed(key, before, changes)


def as_read(net: NetChanges) -> list[list[object]]:
    """Its rows, of which those of a delete count by their key alone."""
    width, key = len(net.layout.columns), net.layout.key
    deletes = [tuple(row[i] for i in key) if key else row for row in decoded(net.deletes, width)]
    return [decoded(net.inserts, width), decoded(net.updates, width), deletes]


def in_any_order(net: NetChanges) -> list[list[object]]:
    return [sorted(rows, key=repr) for rows in as_read(net)]


def replayed(key: list[int], before: list[Row], changes: list[dict[str, Any]]) -> dict[Row, Row]:
    """What the changes say, without any of our code."""
    model = Keyed(key)
    model.rows = {model.of(row): row for row in before}
    for one in changes:
        for row in one["rows"]:
            if row["before"] is not None:
                del model.rows[model.of(row["before"])]
            if row["after"] is not None:
                model.rows[model.of(row["after"])] = tuple(row["after"])
    return model.rows


@given(st.data())
def test_net_changes_without_a_key_end_like_the_log_in_any_batches(data: st.DataObject) -> None:
    small = st.tuples(st.integers(0, 1), st.sampled_from(["x", None]))
    before = data.draw(st.lists(small, max_size=6))
    rows, changes = Counter(before), []
    for _ in range(data.draw(st.integers(0, 20))):
        old = data.draw(st.sampled_from(sorted(rows.elements(), key=repr))) if rows.total() else None
        new = data.draw(small)
        action = data.draw(st.sampled_from(["insert", "update", "delete"])) if old is not None else "insert"
        if action != "insert":
            rows -= Counter([old])
        if action != "delete":
            rows += Counter([new])
        changes.append(
            change(action, [(old if action != "insert" else None, new if action != "delete" else None)], key=[])
        )
    target = Counted(before)
    parts = cut(data.draw, changes)
    for part in parts:
        for net in collapsed(*part):
            target.do(net)
    assert target.rows == rows
    target = Counted(before)
    for net in joined(parts):
        target.do(net)
    assert target.rows == rows


@pytest.mark.parametrize("parts", [[[INSERT], [INSERT]], [[DELETE], [UPDATE]], [[INSERT, UPDATE], [DELETE], [DELETE]]])
def test_net_changes_that_contradict_earlier_ones_are_refused(parts: list[list[dict[str, Any]]]) -> None:
    with pytest.raises(LogDamaged, match=r"key.*topic=t table=shop\.orders"):
        joined(parts)


def test_net_changes_of_another_layout_follow_the_earlier_ones() -> None:
    wide = change("insert", [(None, [2, "b", 7])], columns=["id", "v", "w"])
    net = joined([[INSERT], [wide], [change("delete", [([2, "b", 7], None)], columns=["id", "v", "w"])]])
    assert [(len(one.layout.columns), counts(one)) for one in net] == [(2, (1, 0, 0))]


def test_net_changes_that_stay_as_they_are_keep_their_turn() -> None:
    partial = change("update", [([1], [1, "b"])], before_present=b"\x01")
    net = joined([[INSERT], [partial], [UPDATE], [UPDATE]])
    assert [(one.partial is not None, one.changes) for one in net] == [(False, 1), (True, 1), (False, 2)]
    keyless = [change("insert", [(None, [1, "a"])], key=[]), change("delete", [([1, "a"], None)], key=[])]
    assert [counts(one) for one in joined([[one] for one in keyless], apart=True)] == [(1, 0, 0), (0, 0, 1)]
    assert joined([[one] for one in keyless]) == []


@given(st.lists(st.tuples(VALUE, VALUE), unique_by=repr, max_size=10))
def test_values_pass_through_unchanged(rows: list[Row]) -> None:
    numbered = [(n, *row) for n, row in enumerate(rows)]
    net = collapsed(change("insert", [(None, row) for row in numbered], columns="abc"))
    assert [row for one in net for row in decoded(one.inserts, 3)] == numbered


KEYS = st.one_of(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1)), unique=True),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-(2**40), 2**40)), unique=True),
    st.lists(st.tuples(st.integers(-9, 9), st.text("ab", min_size=8, max_size=8)), unique=True),
    st.lists(st.tuples(st.text("abÿ", max_size=15).filter(lambda text: len(text.encode()) < 16)), unique=True),
)


@given(KEYS)
def test_net_rows_are_in_the_order_of_their_keys(keys: list[tuple[int | str, ...]]) -> None:
    if not keys:
        return
    columns = "abc"[: len(keys[0]) + 1]
    rows: list[Row] = [(*key, None) for key in keys]
    one = {"columns": columns, "key": list(range(len(keys[0])))}
    (net,) = collapsed(change("insert", [(None, row) for row in rows], **one))
    in_bytes = [tuple(part.encode() if isinstance(part, str) else part for part in key) for key in keys]
    expected = [row for _, row in sorted(zip(in_bytes, rows, strict=True))]
    assert decoded(net.inserts, len(columns)) == expected
    (net,) = collapsed(change("delete", [(row, None) for row in rows], **one))
    assert decoded(net.deletes, len(columns)) == expected


def test_keys_beyond_64_bits_lose_no_row() -> None:
    keys: list[int | str | None] = ["18446744073709551615", 3, None, "x" * 40, -1, "x" * 39 + "y"]
    (net,) = collapsed(change("insert", [(None, [key, 1]) for key in keys]))
    assert Counter(row[0] for row in decoded(net.inserts, 2)) == Counter(keys)
