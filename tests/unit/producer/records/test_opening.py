"""The last event that a record store and a log have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import RecordsDamaged
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.producer.records.opening import last_shared
from connector.records.versions import State
from tests.support.log_objects import epochs

LOG = LogId("c" * 32)


def history(last: int, *firsts: int) -> History:
    return History(LOG, epochs(*firsts), Seqno(last))


def state(seqno: int, *written: tuple[int, int]) -> State:
    return State(LOG, Seqno(seqno), tuple((Seqno(first), Epoch(epoch)) for first, epoch in written))


@pytest.mark.parametrize(
    ("found", "log", "shared"),
    [
        (state(7, (0, 1)), history(7, 0), 7),
        (state(5, (0, 1)), history(7, 0), 5),  # it is behind
        (state(9, (0, 1)), history(7, 0), 7),  # it has events that were never finished
        (state(12, (0, 1)), history(15, 0, 10), 9),  # what it has of 10 was given up, and written again
        (state(12, (0, 1), (10, 2)), history(15, 0, 10), 12),
        (state(12, (0, 1), (11, 2)), history(15, 0, 10), 9),  # 10 is of the given up attempt
        (state(12, (0, 1), (5, 7)), history(15, 0), 4),  # an epoch that the log does not have
        (State(LOG), history(15, 0, 10), NO_SEQNO),
        (state(3, (0, 1)), history(-1, 0), NO_SEQNO),
    ],
)
def test_the_last_event_that_store_and_log_have_in_common(found: State, log: History, shared: int) -> None:
    assert last_shared(found, log) == shared


def test_a_store_with_trapped_events_goes_back_to_before_them() -> None:
    first, second = epochs(0, 20)
    second = replace(second, forked=Forked(trapped="u:15-17", events=(Range(Seqno(15), Seqno(17)),)))
    log = History(LOG, (first, second), Seqno(30))
    assert last_shared(state(19, (0, 1)), log) == 14
    assert last_shared(state(14, (0, 1)), log) == 14
    assert last_shared(state(25, (0, 1), (20, 2)), log) == 25  # it has followed the log beyond the fork


def test_a_store_of_another_log_is_not_used() -> None:
    with pytest.raises(RecordsDamaged, match="another log"):
        last_shared(replace(state(3, (0, 1)), log_id=LogId("d" * 32)), history(5, 0))
