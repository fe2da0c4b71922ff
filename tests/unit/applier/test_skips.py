"""A skipped event changes only the position, and is recorded with the tables that it would have changed."""

from __future__ import annotations

from typing import Any

import pytest

from connector.applier.skips import Skips
from connector.applier.stop_condition import ToSeqno
from connector.errors import ConfigError, Unsupported
from connector.log.ids import Seqno
from tests.support.fragments import in_parts, statement
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import UUID, Rig, history, ids, insert, log, record, table


def applied(*records: dict[str, Any], skip: int, until: int | None = None, done: int | None = None) -> MemoryTarget:
    """The target after a log from which an event was left out, and of which one was done by hand."""
    target = MemoryTarget()
    skips = Skips([Seqno(skip)], "me@here", "it does not fit", done=None if done is None else Seqno(done))
    last = None if until is None else ToSeqno(Seqno(until))
    values = log(*records)
    rig = Rig(target, history([0], records[-1]["seqno"]), skips=skips, until=last)
    rig.accept(table(values))
    return target


def noted(target: MemoryTarget) -> list[tuple[int, list[str]]]:
    return [(event.seqno, list(map(str, event.tables))) for event in target.left_out]


@pytest.mark.parametrize("skip", range(4))
def test_one_event_of_a_range_is_left_out(skip: int) -> None:
    target = applied(*(record(n, [insert(n), insert(n, table="items")]) for n in range(4)), skip=skip)
    assert ids(target) == ids(target, "shop.items") == set(range(4)) - {skip}
    assert noted(target) == [(skip, ["shop.items", "shop.orders"])]
    assert (target.left_out[0].by, target.left_out[0].reason) == ("me@here", "it does not fit")
    assert [event.seqno for event in target.events] == [0, 1, 2, 3]
    assert f"commit {skip}" in target.log
    assert target.position is not None
    assert target.position.gtid_set == f"{UUID}:1-4"


def test_an_event_of_several_fragments_is_left_out() -> None:
    parts = [record(1, [insert(10 + n)], last_frag=n == 2, fragno=n, rows=n + 1) for n in range(3)]
    target = applied(record(0, [insert(0)]), *parts, record(2, [insert(2)]), skip=1)
    assert ids(target) == {0, 2}
    assert noted(target) == [(1, ["shop.orders"])]


def test_an_event_with_a_change_in_parts_is_left_out() -> None:
    *some, last = in_parts(insert(9), 3)
    parts = [record(1, [part], last_frag=False, fragno=n) for n, part in enumerate(some)]
    parts.append(record(1, [last], fragno=2, rows=1))
    target = applied(record(0, [insert(0)]), *parts, record(2, [insert(2)]), skip=1)
    assert ids(target) == {0, 2}
    assert noted(target) == [(1, ["shop.orders"])]


def test_the_last_event_is_left_out() -> None:
    target = applied(*(record(n, [insert(n)]) for n in range(4)), skip=2, until=2)
    assert ids(target) == {0, 1}
    assert target.position is not None
    assert target.position.seqno == 2


def test_a_ddl_that_is_left_out_concerns_its_whole_schema() -> None:
    ddl = record(1, [statement("CREATE SPATIAL NONSENSE")], kind="ddl", shard="#UNKNOWN")
    target = applied(record(0, [insert(0)]), ddl, record(2, [insert(2)], last_barrier=1), skip=1)
    assert target.statements == []
    assert noted(target) == [(1, ["shop.*"])]


def test_an_unreadable_event_is_left_out_and_concerns_every_table() -> None:
    records = [
        record(0, [insert(0)]),
        record(1, [insert(1), statement("DELETE FROM t")], rows=1),
        record(2, [insert(2)]),
    ]
    with pytest.raises(Unsupported):
        applied(*records, skip=7)
    target = applied(*records, skip=1)
    assert ids(target) == {0, 2}
    assert noted(target) == [(1, ["*.*", "shop.orders"])]


def test_the_beginning_of_an_initial_load_is_not_left_out() -> None:
    begin = record(0, metadata={"snapshot": "begin"}, shard="#UNKNOWN", gtid=None)
    with pytest.raises(ConfigError) as raised:
        applied(begin, skip=0)
    assert raised.value.where["snapshot"] == "begin"


def ddl(seqno: int, *sql: str, barrier: int = -1) -> dict[str, Any]:
    return record(seqno, [statement(one) for one in sql], kind="ddl", shard="#UNKNOWN", last_barrier=barrier)


def test_a_ddl_done_by_hand_reaches_the_target_as_done() -> None:
    target = applied(
        record(0, [insert(0)]), ddl(1, "ALTER TABLE orders NONSENSE"), record(2, [insert(2)], last_barrier=1),
        skip=9, done=1,
    )  # fmt: skip
    assert (target.statements, target.by_hand) == ([], ["ALTER TABLE orders NONSENSE"])
    (event,) = target.left_out
    assert (event.seqno, event.by_hand, list(map(str, event.tables))) == (1, True, ["shop.orders"])
    assert [one for one in target.log if "commit" in one] == ["commit 0", "commit 1", "commit 2"]
    assert ids(target) == {0, 2}


def test_all_statements_of_a_ddl_event_are_done_by_hand_together() -> None:
    texts = ["DROP TABLE IF EXISTS `shop`.`a`", "RENAME TABLE b TO c"]
    target = applied(record(0, [insert(0)]), ddl(1, *texts), record(2, [insert(2)], last_barrier=1), skip=9, done=1)
    assert (target.statements, target.by_hand) == ([], texts)
    assert ids(target) == {0, 2}


@pytest.mark.parametrize(
    "records",
    [
        [record(0, [insert(0)]), record(1, [insert(1)]), record(2, [insert(2)])],
        [record(0, [insert(0)]), ddl(1, "CREATE TABLE a (n INT)") | {"rows": 1}],
    ],
    ids=["rows", "a statement with rows"],
)
def test_an_event_with_rows_is_not_done_by_hand(records: list[dict[str, Any]]) -> None:
    with pytest.raises(ConfigError) as raised:
        applied(*records, skip=9, done=1)
    assert "--skip-seqno" in raised.value.hint
    assert raised.value.where["seqno"] in (1, "1")
