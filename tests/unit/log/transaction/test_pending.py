"""Pending XA transactions, and their count and checksum in the position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.transaction.pending import NOTHING, Pending, PendingChecksum, PendingSet
from connector.log.transaction.position import SourcePosition
from connector.log.writing.progress import Progress
from connector.log.writing.tail import check_prepared
from tests.support.log_objects import position
from tests.unit.log.writing.test_progress import fragment


def prepared(xid: str, attempt: str = "1.1", *, time: int = 0) -> Pending:
    return Pending(
        xid=xid, attempt=attempt, batches=1, messages=1, gtid=None, start=SourcePosition("f.1", 4), time=time
    )


steps = st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), max_size=30)


@given(steps)
def test_checksum_is_that_of_the_pending_transactions_after_any_history(happened: list[tuple[bool, str]]) -> None:
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


def test_another_attempt_at_a_transaction_has_another_checksum() -> None:
    assert PendingSet([prepared("a", "1.1")]).kept != PendingSet([prepared("a", "1.2")]).kept
    assert PendingSet([prepared("a")]).kept != PendingSet([prepared("b")]).kept


def test_oldest_pending_transaction_has_its_time() -> None:
    assert PendingSet().oldest is None
    assert PendingSet([prepared("a", time=7), prepared("b", time=5)]).oldest == 5


def test_topic_with_other_transactions_than_the_position_is_refused() -> None:
    kept = PendingSet([prepared("a")]).kept
    progress = Progress(position())
    progress.keep(kept)
    now = progress.record()
    check_prepared(now, kept)
    for found in (NOTHING, PendingChecksum(1, kept.check + 1), PendingChecksum(2, kept.check)):
        with pytest.raises(LogDamaged):
            check_prepared(now, found)
    with pytest.raises(LogDamaged):
        check_prepared(None, kept)


def test_pending_transactions_cannot_change_within_an_event() -> None:
    progress = Progress(position())
    progress.keep(PendingChecksum(1, 5))
    progress.accept(fragment(0, last=False))
    with pytest.raises(LogDamaged):
        progress.keep(NOTHING)
    assert progress.record().prepared == PendingChecksum(1, 5)
