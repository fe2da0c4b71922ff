"""Images without all columns give the same table as whole ones, in any batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import ConnectorError, LogDamaged, Unsupported
from connector.log.compact.compact import Compactor
from connector.log.compact.net_changes import NetChanges
from connector.log.rules import Rule
from connector.log.transaction.layout import TableName
from connector.targets.default_values import with_whole_inserts
from connector.targets.table import make_table
from tests.support.compact_model import Counted, Partly, Row, decoded
from tests.support.fragments import change, encoded, record, scanned

COLUMNS = ("a", "k1", "b", "k2", "c")
ORDERS = TableName("shop", "orders")
KEY = (3, 1)  # in another order than the columns
DEFAULTS: Row = (7, None, "d", None, None)
VALUE = st.one_of(st.none(), st.integers(-3, 3), st.text("xy", max_size=2))


def bits(columns: set[int]) -> bytes:
    return bytes([sum(1 << column for column in columns)])


def part(row: Row, columns: set[int]) -> list[Any]:
    return [value for index, value in enumerate(row) if index in columns]


def presence(draw: st.DrawFn, needed: set[int]) -> set[int]:
    """Columns of an image: those it must have and others; mostly not all."""
    every = set(range(len(COLUMNS)))
    return draw(st.one_of(st.sets(st.sampled_from(sorted(every))), st.just(every), st.just(set()))) | needed


@st.composite
def histories(draw: st.DrawFn, key: tuple[int, ...]) -> tuple[list[tuple[int, dict[str, Any]]], list[Row]]:
    """Changes, each with the number of its batch; and the rows that are there in the end."""
    rows: list[Row] = []
    changes: list[tuple[int, dict[str, Any]]] = []
    batch = 0
    for _ in range(draw(st.integers(1, 25))):
        batch += draw(st.integers(0, 5)) == 0
        action = draw(st.sampled_from(["insert", "update", "update", "delete"])) if rows else "insert"
        values = [draw(VALUE) for _ in COLUMNS]
        for column in key:
            values[column] = draw(st.integers(0, 4))
        old = draw(st.sampled_from(rows)) if action != "insert" else None
        every = set(range(len(COLUMNS)))
        before = presence(draw, set(key)) if key else every
        after = presence(draw, set(key) if action == "insert" else set())
        base = DEFAULTS if old is None else old
        new: Row = tuple(value if index in after else base[index] for index, value in enumerate(values))
        taken = {tuple(row[column] for column in key) for row in rows if row is not old}
        if action == "delete":
            assert old is not None
            rows.remove(old)
            images: Any = (part(old, before), None)
        elif key and tuple(new[column] for column in key) in taken:
            continue
        else:
            if old is not None:
                rows.remove(old)
            rows.append(new)
            images = (None if old is None else part(old, before), part(new, after))
        told = {"before_present": bits(before), "after_present": bits(after)}
        if draw(st.booleans()):
            told = {name: b"" if value == bits(every) else value for name, value in told.items()}
        changes.append((batch, change(action, [images], columns=COLUMNS, key=key, **told)))
    return changes, rows


def applied(changes: list[tuple[int, dict[str, Any]]], target: Partly | Counted) -> None:
    """Apply changes batch by batch, with one compactor."""
    compactor = Compactor("t")
    for batch in sorted({number for number, _ in changes}):
        values = [encoded(record(n, [one])) for n, (number, one) in enumerate(changes) if number == batch]
        for message in scanned(values):
            compactor.add(message)
        for net in compactor.drain():
            table = make_table(
                net.layout.name, net.layout.columns, [], defaults=dict(zip(COLUMNS, DEFAULTS, strict=True))
            )
            target.do(with_whole_inserts(net, table))


@given(histories(KEY))
def test_keyed_table_with_partial_images_ends_like_the_sources(
    history: tuple[list[tuple[int, dict[str, Any]]], list[Row]],
) -> None:
    changes, rows = history
    target = Partly(KEY)
    applied(changes, target)
    assert sorted(map(str, target.rows.values())) == sorted(map(str, rows))


@given(histories(()))
def test_table_without_a_key_ends_like_the_sources(
    history: tuple[list[tuple[int, dict[str, Any]]], list[Row]],
) -> None:
    changes, rows = history
    target = Counted()
    applied(changes, target)
    assert sorted(map(str, target.rows.elements())) == sorted(map(str, rows))


def net_of(*changes: dict[str, Any]) -> list[NetChanges]:
    compactor = Compactor("t")
    for message in scanned([encoded(record(n, [one])) for n, one in enumerate(changes)]):
        compactor.add(message)
    return compactor.drain()


def minimal(action: str, *images: Any, **told: Any) -> dict[str, Any]:
    return change(action, images, **({"before_present": b"\1", "after_present": b"\2"} | told))


@pytest.mark.parametrize("width", [31, 32, 33, 63, 64, 65, 70, 200])
def test_wide_table_lacks_the_columns_that_its_images_lack(width: int) -> None:
    """A shift in C would take the columns from the 32nd or the 64th on for the first ones."""
    present = [index for index in range(width) if index != width - 2]
    bits = sum(1 << index for index in present).to_bytes((width + 7) // 8, "little")
    names = ("id", *(f"c{index}" for index in range(1, width)))
    (net,) = net_of(change("insert", [(None, present)], columns=names, key=(0,), after_present=bits))
    assert net.partial is not None
    assert len(net.partial.added) == 1


def test_changes_of_one_key_in_one_batch_are_one_change() -> None:
    three = {"columns": ("id", "v", "w"), "key": (0,)}
    (net,) = net_of(
        minimal("update", ([1], ["x"]), ([1], ["y"]), **three),
        minimal("update", ([1], [9, 5]), ([9], [1, 6]), after_present=b"\5", **three),
    )
    assert net.partial is not None
    assert (len(net), len(net.partial.changed)) == (1, 0)
    assert decoded(net.updates, 3) == [(1, "y", 6)]
    (net,) = net_of(minimal("update", ([1], ["x"]), ([1], ["y"]), **three))
    assert net.partial is not None
    assert decoded(net.partial.changed, 5) == [(1, "y", None, b"\3", 1)]


def test_swapped_keys_are_two_moves() -> None:
    swap = minimal("update", ([1], [0]), ([2], [1]), ([0], [2]), after_present=b"\1")
    (net,) = net_of(swap)
    assert net.partial is not None
    assert sorted(decoded(net.partial.moved, 4), key=str) == [(1, None, b"\1", 2), (2, None, b"\1", 1)]
    assert len(net) == 2


@pytest.mark.parametrize(
    ("made", "error", "expected"),
    [
        ([minimal("update", (["x"], [1]), before_present=b"\2")], Unsupported, {"table": ORDERS, "column": "id"}),
        ([minimal("insert", (None, ["x"]))], Unsupported, {"table": ORDERS, "column": "id"}),
        ([minimal("delete", (["x"], None), key=())], Unsupported, {"table": ORDERS, "columns": "v"}),
        ([minimal("delete", ([1], None), ([1], None))], LogDamaged, Rule.KEY_DELETED),
        ([minimal("delete", ([1], None)), minimal("update", ([1], ["x"]))], LogDamaged, Rule.KEY_DELETED),
        ([minimal("update", ([1], ["x"])), change("insert", [(None, [1, "y"])])], LogDamaged, Rule.KEY_EXISTS),
        ([minimal("update", ([1], ["x", "y"]))], LogDamaged, {"rule": Rule.IMAGE_VALUES, "values": "too many"}),
        ([minimal("update", ([1], []))], LogDamaged, {"rule": Rule.IMAGE_VALUES, "values": "too few"}),
        ([minimal("update", ([1], ["x"]), columns=[f"c{n}" for n in range(9)])], LogDamaged, Rule.IMAGE_COLUMNS),
    ],
)
def test_change_that_cannot_be_applied_is_refused_with_its_place(
    made: list[dict[str, Any]], error: type[ConnectorError], expected: Rule | dict[str, object]
) -> None:
    where = {"rule": expected} if isinstance(expected, Rule) else expected
    with pytest.raises(error) as caught:
        net_of(*made)
    assert caught.value.where.items() >= {"seqno": len(made) - 1, **where}.items()


def test_unknown_default_is_refused_with_its_column() -> None:
    (net,) = net_of(minimal("insert", (None, [1]), after_present=b"\1"))
    table = make_table(net.layout.name, net.layout.columns, ["id"])
    with pytest.raises(Unsupported) as stopped:
        with_whole_inserts(net, table)
    assert (str(stopped.value.where["table"]), stopped.value.where["column"]) == ("shop.orders", "v")
    known = make_table(net.layout.name, net.layout.columns, ["id"], defaults={"v": b"\xff"})
    whole = with_whole_inserts(net, known)
    assert (whole.partial, decoded(whole.inserts, 2)) == (None, [(1, b"\xff")])
