"""The contract of every target after a rewind: a replay leaves the same rows, and later events apply."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from connector.applier.undo import compact_inverse
from connector.errors import TargetDiffers
from connector.log.compact.compact import Compactor
from connector.log.compact.net_changes import once_more
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.position import TargetPosition
from tests.contract.target_suite import LOOSE, USERS, Applier, Place
from tests.support.fragments import change, column, in_parts, record, statement
from tests.support.long import long
from tests.support.net import layout, net
from tests.unit.applier.test_core import Rig, history, log, table

ORDERS = layout("shop.orders", ["id int", "v varchar(100)"], ["id"])
COLUMNS = [column("id"), column("v", "varchar(100)") | {"charset": "utf8mb4"}]


def random_records(random: Random, events: int) -> tuple[list[dict[str, Any]], list[dict[int, str]], list[int]]:
    """A table's creation and random transactions of one fragment or more; its rows after each, where each begins."""
    create = "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(100))"
    records = [record(0, [statement(create)], kind="ddl", shard="#UNKNOWN")]
    rows: dict[int, str] = {}
    states: list[dict[int, str]] = [{}]
    starts = [1]  # after the marker
    for seqno in range(1, events):
        changes = random_changes(random, rows, 12, most=5, version=seqno)
        starts.append(len(records) + 1)
        if len(changes) == 1 and random.random() < 0.3:
            *some, last = in_parts(changes[0], 3)
            records += [record(seqno, [part], last_frag=False, fragno=n, last_barrier=0) for n, part in enumerate(some)]
            records.append(record(seqno, [last], fragno=2, rows=1, last_barrier=0))
        elif len(changes) > 2:
            records.append(record(seqno, changes[:1], last_frag=False, last_barrier=0))
            records.append(record(seqno, changes[1:], fragno=1, rows=len(changes), last_barrier=0))
        else:
            records.append(record(seqno, changes, last_barrier=0))
        states.append(dict(rows))
    return records, states, starts


def random_changes(random: Random, rows: dict[int, str], keys: int, *, most: int, version: int) -> list[dict[str, Any]]:
    """Change the rows of a table at random; return the changes.

    Args:
        random: the randomness.
        rows: the value of each key, before and after.
        keys: the number of different keys.
        most: the number of attempts is at most this.
        version: what the new values begin with.
    """
    changes = []
    for _ in range(random.randint(0, most)):
        key, to, value = random.randrange(keys), random.randrange(keys), f"{version}.{random.randrange(3)}"
        match random.choice("iudk"):
            case "i" if key not in rows:
                changes.append(made("insert", None, [key, value]))
                rows[key] = value
            case "u" if key in rows:
                changes.append(made("update", [key, rows[key]], [key, value]))
                rows[key] = value
            case "d" if key in rows:
                changes.append(made("delete", [key, rows.pop(key)], None))
            case "k" if key in rows and to not in rows:
                changes.append(made("update", [key, rows.pop(key)], [to, value]))
                rows[to] = value
    return changes


def made(action: str, before: Any, after: Any) -> dict[str, Any]:
    return change(action, [(before, after)]) | {"columns": COLUMNS}


@pytest.mark.parametrize("seed", [0, 1, *long(*range(2, 6))])
def test_replay_from_any_event_with_crashes_converges(place: Place, seed: int) -> None:
    random = Random(seed)
    events = 90
    records, states, starts = random_records(random, events)
    values = log(*records)
    known = history([0], events - 1)
    head = random.randint(20, events - 2)
    target = place.open(audit=True)
    Rig(target, known).accept(table(values[: starts[head + 1]]))
    for _ in range(2):  # the second time from within the first
        at = target.claim("shop")
        first = random.randint(1, max(at.seqno, 1))
        target.commit(taken_back(at, first, starts[first]), [])
        target.close()
        target = place.open(audit=True)
        Rig(target, known).accept(table(values[starts[first] : starts[first] + 2], offset=starts[first]))
    position = target.claim("shop")
    while position.seqno < events - 1:
        assert position.consistent is (position.rewound_from == NO_SEQNO)
        assert (position.rewound_from, position.seqno < head) in ((head, True), (NO_SEQNO, False))
        if position.consistent:
            assert place.read(ORDERS) == sorted(states[position.seqno].items())
        rig, start = Rig(target, known), position.offsets[0]
        for _ in range(random.randint(1, 3)):
            step = random.randint(1, 12)
            rig.accept(table(values[start : start + step], offset=start))
            start += step
            if rig.core.position.seqno == events - 1:
                break
        if random.random() < 0.5:
            target.close()
            target = place.open(audit=True)
        position = target.claim("shop")
    assert place.read(ORDERS) == sorted(states[-1].items())
    assert [seqno for seqno, _ in place.applied()] == list(range(events))


def taken_back(at: TargetPosition, first: int, offset: int) -> TargetPosition:
    """Rewind a target as `connector.applier.rewind` does."""
    return replace(
        at,
        seqno=Seqno(first - 1),
        epoch=Epoch(1),
        offsets={0: offset},
        consistent=False,
        rewound_from=max(at.rewound_from, at.seqno),
    )


@pytest.mark.parametrize("seed", [0, *long(1, 2)])
def test_undone_events_can_be_applied_again(place: Place, seed: int) -> None:
    random = Random(seed)
    events = 80
    records, states, starts = random_records(random, events)
    values = log(*records)
    Rig(place.open(audit=True), history([0], events - 1)).accept(table(values))
    for _ in range(3):
        target = place.open_for_undo()
        at = target.claim("shop")
        to = random.randrange(at.seqno)
        collapse = Compactor("thl.shop")
        for seqno in range(at.seqno, to, -1):
            end = starts[seqno + 1] if seqno + 1 < events else len(values)
            compact_inverse(collapse, "thl.shop", values[starts[seqno] : end])
        target.stage(collapse.drain(), last=True)
        target.commit(replace(at, seqno=Seqno(to), offsets={0: starts[to + 1]}), [])
        target.close()
        assert place.read(ORDERS) == sorted(states[to].items())
        rig, end = Rig(place.open(audit=True), history([0], events - 1)), random.randint(to + 1, events - 1)
        rig.accept(table(values[starts[to + 1] : starts[end]], offset=starts[to + 1]))
        assert place.read(ORDERS) == sorted(states[end - 1].items())
        assert [seqno for seqno, _ in place.applied()] == list(range(end))


class TestAgain:
    def test_replayed_rows_may_exist_or_not(self, place: Place, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", None)]))
        before = net(
            USERS, inserts=[(1, "x", None)], updates=[(2, "y", None), (3, "z", None)], deletes=[(4, "d", None)]
        )
        applier.rows(once_more(before))
        assert place.read(USERS) == [(1, "x", None), (2, "y", None), (3, "z", None)]

    def test_row_counts_are_checked_again_after_the_replay(self, place: Place, applier: Applier) -> None:
        applier.rows(once_more(net(USERS, deletes=[(9, None, None)])))
        with pytest.raises(TargetDiffers):
            applier.rows(net(USERS, deletes=[(9, None, None)]))

    def test_changes_in_several_stages_apply_in_order(self, place: Place, applier: Applier) -> None:
        for value in ("a", "b"):
            applier.target.stage([once_more(net(USERS, inserts=[(1, value, None)]))], last=False)
        applier.target.stage([once_more(net(USERS, deletes=[(1, "b", None)]))], last=False)
        applier.target.stage([once_more(net(USERS, inserts=[(1, "c", None)]))], last=True)
        applier.commit(rows=4)
        assert place.read(USERS) == [(1, "c", None)]

    def test_a_table_without_a_key_is_not_written_again(self) -> None:
        with pytest.raises(ValueError, match=r"shop\.loose"):
            once_more(net(LOOSE, inserts=[(1, None, None, None)]))
