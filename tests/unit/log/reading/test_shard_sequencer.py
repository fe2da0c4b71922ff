"""Events of some shards and the barriers are released in order, and damage is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import HistoriesDiffer, ShardsChanged
from connector.log.epochs.fork import TRAPPED, TRAPPED_EVENTS, Forked, Range
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.format.shard_rule import SINCE, VERSION
from connector.log.ids import UNKNOWN_SHARD, LogId, Seqno, ShardId
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.rules import Rule
from tests.support.broken_rules import breaks
from tests.support.log_objects import LOG, epochs, header, marker

Message = tuple[int, int, FragmentHeader]  # partition, offset

FORK = {TRAPPED: "x:3-4", TRAPPED_EVENTS: "2-3"}


def forked(prev: int, barrier: int = -1) -> FragmentHeader:
    """The marker of an epoch that goes on without the events 2 and 3."""
    one = marker(2, 4, prev=prev, barrier=barrier)
    return replace(one, metadata={**one.metadata, **FORK})


LOG_OF_TWO: list[Message] = [
    (0, 0, marker(1, 0)),
    (1, 0, marker(1, 0)),
    (1, 1, header(0, prev=-1)),
    (1, 2, header(1, prev=0)),
    (1, 3, header(2, prev=1)),
    (0, 1, header(3, prev=-1, shard="#UNKNOWN")),
    (0, 2, forked(prev=3, barrier=3)),
    (1, 4, forked(prev=2, barrier=3)),
    (1, 5, header(4, prev=2, epoch=2, barrier=3)),
]


def sequencer(history: History | None = None) -> ShardSequencer[int]:
    return ShardSequencer(topic="t", log_id=LOG, shards=[ShardId("shop")], offsets={0: 0, 1: 0}, history=history)


def given(one: ShardSequencer[int]) -> list[int]:
    found = []
    while (event := one.next()) is not None:
        found.append(int(event.seqno))
    return found


def test_trapped_events_and_barriers_of_the_history_are_left_out() -> None:
    first, second = epochs(0, 4)
    second = replace(second, forked=Forked("x:3-4", (Range(Seqno(2), Seqno(3)),)))
    one = sequencer(History(LOG, (first, second), Seqno(4)))
    for partition, offset, message in LOG_OF_TWO:
        one.accept(message, partition, offset, offset)
    assert given(one) == [0, 1, 4]


def test_trapped_events_read_after_the_marker_are_left_out() -> None:
    one, found = sequencer(), []
    for partition, offset, message in [*LOG_OF_TWO[:4], *LOG_OF_TWO[6:7]]:
        shift = replace(message, prev_seqno=Seqno(-1)) if partition == 0 and offset == 2 else message
        one.accept(shift, partition, offset, offset)
        found += given(one)
    assert found == [0, 1]
    one.accept(header(2, prev=1), 1, 3, 3)
    assert given(one) == []


def test_fork_after_a_released_trapped_event_is_refused() -> None:
    one = sequencer()
    for partition, offset, message in LOG_OF_TWO[:6]:
        one.accept(message, partition, offset, offset)
    assert given(one) == [0, 1, 2]
    with pytest.raises(HistoriesDiffer) as told:
        one.accept(LOG_OF_TWO[6][2], 0, 2, 2)
    assert told.value.where["trapped_events"] == "2-3"


BEGUN: list[Message] = [
    (0, 0, marker(1, 0)),
    (1, 0, marker(1, 0)),
    (1, 1, header(0, prev=-1)),
    (1, 2, header(1, prev=0)),
]


def barrier(seqno: int, *, prev: int = -1, last: int = -1) -> FragmentHeader:
    return header(seqno, prev=prev, barrier=last, shard=UNKNOWN_SHARD)


def reading(*messages: Message, floor: int = -1) -> ShardSequencer[int]:
    """A sequencer that has accepted messages; the body of each is its offset."""
    one: ShardSequencer[int] = ShardSequencer(
        topic="t", log_id=LOG, shards=[ShardId("shop")], offsets={0: 0, 1: 0}, floor=Seqno(floor)
    )
    for partition, offset, message in messages:
        one.accept(message, partition, offset, offset)
    return one


@pytest.mark.parametrize(
    ("at", "message", "rule"),
    [
        (2, header(2, prev=1), Rule.OFFSET_REREAD),
        (3, header(2, prev=0), Rule.EVENT_MISSING),
        (3, header(2, 1, prev=1), Rule.FRAGMENT_MISSING),
        (3, header(2, prev=1, epoch=2), Rule.MARKER_MISSING),
        (3, header(2, prev=1, epoch=0), Rule.OLDER_PRODUCER),
        (3, header(2, prev=1, barrier=5), Rule.LATER_EVENT_NAMED),
        (3, header(1, prev=1), Rule.LATER_EVENT_NAMED),
        (3, marker(3, 2, prev=1), Rule.EPOCH_MISSING),
        (3, marker(1, 2, prev=1), Rule.EPOCH_MISSING),
        (3, marker(2, 2, prev=0), Rule.EVENT_MISSING),
    ],
)
def test_message_that_does_not_follow_an_event_is_refused(at: int, message: FragmentHeader, rule: Rule) -> None:
    one = reading(*BEGUN)
    with breaks(rule, at=f"t-1@{at}", seqno=message.seqno):
        one.accept(message, 1, at, at)


@pytest.mark.parametrize(
    ("message", "rule", "where"),
    [
        (header(3, 1, prev=1), Rule.EVENT_UNFINISHED, {"unfinished": 2}),
        (header(1, 1, prev=1), Rule.EVENT_UNFINISHED, {"unfinished": 2}),
        (header(2, 2, prev=1, rows=2), Rule.FRAGMENT_MISSING, {"next_fragno": 1}),
        (header(2, 0, prev=1, rows=2), Rule.FRAGMENT_MISSING, {"next_fragno": 1}),
        (header(2, 1, prev=1, rows=0), Rule.ROWS_DECREASED, {"rows_before": 1}),
        (header(2, 1, prev=0), Rule.PREVIOUS_CHANGED, {"last_read": 1}),
        (header(2, 1, prev=2), Rule.PREVIOUS_CHANGED, {"last_read": 1}),
        (marker(2, 3, prev=1), Rule.END_MISSING, {"unfinished": 2}),
    ],
)
def test_message_that_does_not_continue_an_event_is_refused(
    message: FragmentHeader, rule: Rule, where: dict[str, int]
) -> None:
    one = reading(*BEGUN, (1, 3, header(2, last=False, prev=1)))
    with breaks(rule, at="t-1@4", **where):
        one.accept(message, 1, 4, 4)


@pytest.mark.parametrize("other", ["b" * 32, "0" * 32, ""])
def test_marker_of_another_log_is_refused(other: str) -> None:
    with breaks(Rule.OTHER_LOG, HistoriesDiffer, at="t-1@0", log_id=other, expected=LOG):
        reading((1, 0, marker(1, 0, log_id=LogId(other))))


def test_first_message_must_follow_the_released_events() -> None:
    assert given(reading((1, 0, header(6, prev=5)), floor=5)) == [6]
    with breaks(Rule.EVENT_MISSING, seqno=7, applied=5):
        reading((1, 0, header(7, prev=6)), floor=5)
    with breaks(Rule.EVENT_MISSING, seqno=7, applied=5):
        reading((1, 0, marker(2, 7, prev=6)), floor=5)


def test_newer_epoch_without_a_marker_after_the_first_message_is_refused() -> None:
    one = reading((1, 0, header(6, prev=5)), floor=5)
    with breaks(Rule.MARKER_MISSING, epoch_read=1):
        one.accept(header(7, epoch=2), 1, 1, 1)


def test_event_of_the_shards_is_released_with_all_its_fragments() -> None:
    one = reading(
        (1, 0, marker(1, 0)),
        (1, 1, header(0, prev=-1)),
        (1, 2, header(1, last=False, prev=0)),
        (1, 3, header(1, 1, prev=0, rows=2)),
        (1, 4, header(2, last=False, prev=1, shard="other")),
        (1, 5, header(2, 1, prev=1, shard="other")),
        (1, 6, header(3, last=False, prev=2)),
        floor=0,
    )
    event = one.next()
    assert event is not None
    assert (event.seqno, event.bodies, event.header.rows, event.first, event.complete) == (1, [2, 3], 2, True, True)
    assert one.next() is None


def test_given_up_event_is_left_out() -> None:
    one = reading(*BEGUN, (1, 3, header(2, last=False, prev=1)), (1, 4, marker(2, 2, prev=1)))
    assert one.resume_point() == ({0: 1, 1: 1}, {0: -1, 1: -1})
    one.accept(header(2, prev=1, epoch=2), 1, 5, 5)
    assert given(one) == [0, 1, 2]


def test_events_of_two_partitions_are_released_by_seqno() -> None:
    other = header(1, prev=-1)
    one = reading((0, 0, marker(1, 0)), (0, 1, other), (1, 0, marker(1, 0)), (1, 1, header(0, prev=-1)))
    assert given(one) == [0, 1]
    one = reading((1, 0, marker(1, 0)), (1, 1, header(1, prev=-1)), (0, 0, marker(1, 0)), (0, 1, header(0, prev=-1)))
    assert given(one) == [0, 1]


def test_barrier_waits_for_every_partition_and_later_events_wait_for_it() -> None:
    one = reading(*BEGUN, (0, 1, barrier(2)))
    assert one.lagging() == (2, [1])
    assert given(one) == [0, 1]
    assert one.barrier is None
    one.accept(header(3, prev=1, barrier=2), 1, 3, 3)
    assert one.lagging() == (2, [])
    assert list(one.waiting_bodies(1)) == [3]
    assert given(one) == [2, 3]
    assert one.barrier == 2
    assert list(one.waiting_bodies(1)) == []


def test_barrier_is_released_once_every_partition_was_read_to_its_end() -> None:
    one = reading(*BEGUN, (0, 1, barrier(2)))
    one.reached(1, Seqno(1))
    assert given(one) == [0, 1]
    one.reached(1, Seqno(2))
    assert one.lagging() == (2, [])
    one.reached(1, Seqno(1))
    assert given(one) == [2]
    assert one.lagging() == (-1, [])


def test_first_event_that_is_no_barrier_makes_no_partition_lag() -> None:
    assert reading(*BEGUN, (0, 1, header(2, prev=-1))).lagging() == (-1, [])


def test_an_event_waits_for_a_barrier_that_has_not_been_read() -> None:
    one = reading(*BEGUN, (1, 3, header(3, prev=1, barrier=2)))
    assert given(one) == [0, 1]
    one.accept(barrier(2), 0, 1, 1)
    assert given(one) == [2, 3]


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([(0, 1, barrier(3, last=2)), (1, 3, header(4, prev=1, barrier=3))], Rule.BARRIER_MISSING),
        ([(1, 3, header(4, prev=1, barrier=2)), (0, 1, barrier(3))], Rule.BARRIER_MISSING),
        ([(0, 1, barrier(2)), (1, 3, header(3, prev=1))], Rule.BARRIER_NOT_NAMED),
        ([(1, 3, header(2, prev=1, shard=UNKNOWN_SHARD))], Rule.BARRIER_ELSEWHERE),
    ],
)
def test_contradictory_barriers_are_refused(messages: list[Message], rule: Rule) -> None:
    one = reading(*BEGUN, *messages)
    with breaks(rule):
        given(one)


def test_events_that_were_not_released_are_read_again_from_the_resume_point() -> None:
    one = reading(*BEGUN, (0, 1, barrier(2)))
    assert one.resume_point() == ({0: 1, 1: 1}, {0: -1, 1: -1})
    assert given(one) == [0, 1]
    assert one.resume_point() == ({0: 1, 1: 3}, {0: -1, 1: 1})
    one.accept(header(3, last=False, prev=1, barrier=2), 1, 3, 3)
    one.accept(header(3, 1, last=False, prev=1, barrier=2), 1, 4, 4)
    assert given(one) == [2]
    assert one.resume_point() == ({0: 2, 1: 3}, {0: 2, 1: 1})
    assert reading().resume_point() == ({0: 0, 1: 0}, {})


def test_fork_with_a_marker_in_each_partition_counts_once() -> None:
    """The second marker of the epoch comes when what it goes on with is given already."""
    one = reading(*BEGUN, (0, 1, forked(prev=-1)))
    assert given(one) == [0, 1]
    one.accept(header(4, prev=-1, epoch=2), 0, 2, 2)
    assert given(one) == [4]
    one.accept(header(2, prev=1), 1, 3, 3)
    one.accept(header(3, prev=2), 1, 4, 4)
    one.accept(forked(prev=3), 1, 5, 5)
    one.accept(header(5, prev=3, epoch=2), 1, 6, 6)
    assert given(one) == [5]


def test_nothing_is_released_from_the_first_of_two_shard_rules_on() -> None:
    def changed(epoch: int, first: int, version: int) -> FragmentHeader:
        one = marker(epoch, first, prev=first - 1)
        return replace(one, metadata={**one.metadata, VERSION: str(version), SINCE: str(first)})

    one = reading(
        (0, 0, marker(1, 0)),
        (1, 0, marker(1, 0)),
        (1, 1, header(0, prev=-1)),
        (1, 2, changed(2, 1, 2)),
        (1, 3, header(1, prev=0, epoch=2)),
        (1, 4, changed(3, 2, 3)),
        (1, 5, header(2, prev=1, epoch=3)),
    )
    event = one.next()
    assert event is not None
    assert event.seqno == 0
    with pytest.raises(ShardsChanged) as error:
        one.next()
    assert error.value.where["seqno"] == 1
