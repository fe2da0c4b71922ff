"""Who reads some shards alone is given their events and the barriers in order, and told of whatever is not right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import TRAPPED, TRAPPED_EVENTS, Forked, Range
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import UNKNOWN_SHARD, LogId, Seqno, ShardId
from connector.log.reading.shard_sequencer import ShardSequencer
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


def joined(history: History | None = None) -> ShardSequencer[int]:
    return ShardSequencer(topic="t", log_id=LOG, shards=[ShardId("shop")], offsets={0: 0, 1: 0}, history=history)


def given(one: ShardSequencer[int]) -> list[int]:
    found = []
    while (event := one.next()) is not None:
        found.append(int(event.seqno))
    return found


def test_who_knows_the_history_passes_over_what_is_trapped_barriers_too() -> None:
    first, second = epochs(0, 4)
    second = replace(second, forked=Forked("x:3-4", (Range(Seqno(2), Seqno(3)),)))
    one = joined(History(LOG, (first, second), Seqno(4)))
    for partition, offset, message in LOG_OF_TWO:
        one.accept(message, partition, offset, offset)
    assert given(one) == [0, 1, 4]


def test_who_was_reading_and_has_taken_none_passes_over_them() -> None:
    one, found = joined(), []
    for partition, offset, message in [*LOG_OF_TWO[:4], *LOG_OF_TWO[6:7]]:
        shift = replace(message, prev_seqno=Seqno(-1)) if partition == 0 and offset == 2 else message
        one.accept(shift, partition, offset, offset)
        found += given(one)
    assert found == [0, 1]
    one.accept(header(2, prev=1), 1, 3, 3)
    assert given(one) == []


def test_who_has_taken_one_is_told() -> None:
    one = joined()
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
    """One that has taken messages; the body of each is its offset."""
    one: ShardSequencer[int] = ShardSequencer(
        topic="t", log_id=LOG, shards=[ShardId("shop")], offsets={0: 0, 1: 0}, floor=Seqno(floor)
    )
    for partition, offset, message in messages:
        one.accept(message, partition, offset, offset)
    return one


@pytest.mark.parametrize(
    ("at", "message", "why"),
    [
        (2, header(2, prev=1), "earlier offset"),
        (3, header(2, prev=0), "Events are missing"),
        (3, header(2, 1, prev=1), "A fragment is missing"),
        (3, header(2, prev=1, epoch=2), "marker is missing"),
        (3, header(2, prev=1, epoch=0), "An older producer"),
        (3, header(2, prev=1, barrier=5), "names a later one"),
        (3, header(1, prev=1), "names a later one"),
        (3, marker(3, 2, prev=1), "An epoch is missing"),
        (3, marker(1, 2, prev=1), "An epoch is missing"),
        (3, marker(2, 2, prev=0), "Events are missing"),
    ],
)
def test_what_cannot_come_next_is_refused(at: int, message: FragmentHeader, why: str) -> None:
    one = reading(*BEGUN)
    with pytest.raises(LogDamaged, match=why) as raised:
        one.accept(message, 1, at, at)
    assert raised.value.where["at"] == f"t-1@{at}"
    assert raised.value.where["seqno"] == message.seqno


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (header(3, 1, prev=1), "Event 2 is not finished"),
        (header(1, 1, prev=1), "Event 2 is not finished"),
        (header(2, 2, prev=1, rows=2), "Fragment 1 is missing"),
        (header(2, 0, prev=1, rows=2), "Fragment 1 is missing"),
        (header(2, 1, prev=1, rows=0), "fewer rows"),
        (header(2, 1, prev=0), "first said that it follows 1"),
        (header(2, 1, prev=2), "first said that it follows 1"),
        (marker(2, 3, prev=1), "Event 2 was finished before, but not here"),
    ],
)
def test_what_cannot_go_on_with_an_event_is_refused(message: FragmentHeader, why: str) -> None:
    one = reading(*BEGUN, (1, 3, header(2, last=False, prev=1)))
    with pytest.raises(LogDamaged, match=why):
        one.accept(message, 1, 4, 4)


@pytest.mark.parametrize("other", ["b" * 32, "0" * 32, ""])
def test_another_log_is_refused(other: str) -> None:
    with pytest.raises(HistoriesDiffer, match="another log") as raised:
        reading((1, 0, marker(1, 0, log_id=LogId(other))))
    assert raised.value.where["at"] == "t-1@0"


def test_what_is_read_first_follows_what_was_taken() -> None:
    assert given(reading((1, 0, header(6, prev=5)), floor=5)) == [6]
    with pytest.raises(LogDamaged, match="those up to 5 were taken"):
        reading((1, 0, header(7, prev=6)), floor=5)
    with pytest.raises(LogDamaged, match="those up to 5 were taken"):
        reading((1, 0, marker(2, 7, prev=6)), floor=5)


def test_an_epoch_that_was_met_without_its_marker_ends_with_one() -> None:
    one = reading((1, 0, header(6, prev=5)), floor=5)
    with pytest.raises(LogDamaged, match="marker is missing after epoch 1"):
        one.accept(header(7, epoch=2), 1, 1, 1)


def test_an_event_is_given_with_all_its_fragments_and_only_if_it_is_wanted() -> None:
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


def test_what_was_given_up_is_not_given() -> None:
    one = reading(*BEGUN, (1, 3, header(2, last=False, prev=1)), (1, 4, marker(2, 2, prev=1)))
    assert one.resume_point() == ({0: 1, 1: 1}, {0: -1, 1: -1})
    one.accept(header(2, prev=1, epoch=2), 1, 5, 5)
    assert given(one) == [0, 1, 2]


def test_of_several_events_the_smallest_is_given_first() -> None:
    other = header(1, prev=-1)
    one = reading((0, 0, marker(1, 0)), (0, 1, other), (1, 0, marker(1, 0)), (1, 1, header(0, prev=-1)))
    assert given(one) == [0, 1]
    one = reading((1, 0, marker(1, 0)), (1, 1, header(1, prev=-1)), (0, 0, marker(1, 0)), (0, 1, header(0, prev=-1)))
    assert given(one) == [0, 1]


def test_a_barrier_waits_for_every_partition_and_what_names_it_for_the_barrier() -> None:
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


def test_a_barrier_goes_past_a_partition_that_was_read_to_its_end() -> None:
    one = reading(*BEGUN, (0, 1, barrier(2)))
    one.reached(1, Seqno(1))
    assert given(one) == [0, 1]
    one.reached(1, Seqno(2))
    assert one.lagging() == (2, [])
    one.reached(1, Seqno(1))
    assert given(one) == [2]
    assert one.lagging() == (-1, [])


def test_what_stands_first_and_is_no_barrier_makes_nobody_lag() -> None:
    assert reading(*BEGUN, (0, 1, header(2, prev=-1))).lagging() == (-1, [])


def test_an_event_waits_for_a_barrier_that_has_not_been_read() -> None:
    one = reading(*BEGUN, (1, 3, header(3, prev=1, barrier=2)))
    assert given(one) == [0, 1]
    one.accept(barrier(2), 0, 1, 1)
    assert given(one) == [2, 3]


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([(0, 1, barrier(3, last=2)), (1, 3, header(4, prev=1, barrier=3))], "A barrier is missing"),
        ([(1, 3, header(4, prev=1, barrier=2)), (0, 1, barrier(3))], "A barrier is missing"),
        ([(0, 1, barrier(2)), (1, 3, header(3, prev=1))], "The barrier 2 came before it"),
        ([(1, 3, header(2, prev=1, shard=UNKNOWN_SHARD))], "A barrier outside partition 0"),
    ],
)
def test_barriers_that_contradict_each_other_are_refused(messages: list[Message], why: str) -> None:
    one = reading(*BEGUN, *messages)
    with pytest.raises(LogDamaged, match=why):
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


def test_each_partition_tells_of_a_fork_and_it_is_one() -> None:
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
