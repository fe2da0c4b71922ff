"""What is pending, and what the position says of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.transaction.pending import NOTHING, Kept, Pending, PendingSet
from connector.log.transaction.position import SourcePosition
from connector.log.writing.progress import Progress
from connector.log.writing.tail import check_prepared
from tests.support.log_objects import position
from tests.unit.log.writing.test_progress import fragment


def prepared(xid: str, attempt: str = "1.1", *, time: int = 0) -> Pending:
    return Pending(xid=xid, attempt=attempt, pieces=1, messages=1, gtid=None, start=SourcePosition("f.1", 4), time=time)


steps = st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=30)


@given(steps)
def test_whatever_happened_the_sum_is_that_of_those_that_are_left(happened: list[tuple[bool, str]]) -> None:
    pending, left = PendingSet(), dict[str, Pending]()
    for number, (prepares, xid) in enumerate(happened):
        if prepares:
            one = prepared(xid, f"1.{number}")
            assert pending.prepare(one) == left.get(xid)
            left[xid] = one
        else:
            assert pending.end(xid) == left.pop(xid, None)
    assert {one.xid: one for one in pending} == left
    assert pending.kept == PendingSet(reversed(list(left.values()))).kept
    assert (pending.kept == NOTHING) == (not left)


def test_another_attempt_at_the_same_is_another() -> None:
    assert PendingSet([prepared("a", "1.1")]).kept != PendingSet([prepared("a", "1.2")]).kept
    assert PendingSet([prepared("a")]).kept != PendingSet([prepared("b")]).kept


def test_the_oldest_is_told() -> None:
    assert PendingSet().oldest is None
    assert PendingSet([prepared("a", time=7), prepared("b", time=5)]).oldest == 5


def test_a_topic_that_holds_others_than_the_position_says_is_damaged() -> None:
    kept = PendingSet([prepared("a")]).kept
    progress = Progress(position())
    progress.keep(kept)
    now = progress.record()
    check_prepared(now, kept)
    for found in (NOTHING, Kept(1, kept.check + 1), Kept(2, kept.check)):
        with pytest.raises(LogDamaged):
            check_prepared(now, found)
    with pytest.raises(LogDamaged):
        check_prepared(None, kept)


def test_nothing_is_forgotten_within_an_event() -> None:
    progress = Progress(position())
    progress.keep(Kept(1, 5))
    progress.accept(fragment(0, last=False))
    with pytest.raises(LogDamaged):
        progress.keep(NOTHING)
    assert progress.record().prepared == Kept(1, 5)
