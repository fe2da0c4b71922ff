"""Promises 1 and 3, one rule at a time: events that are whole, missing or given up."""

from __future__ import annotations

import pytest

from connector.errors import HistoriesDiffer
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import UNKNOWN_SHARD, Epoch, Kind, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.rules import Rule
from connector.log.transaction.position import TargetPosition
from tests.support.broken_rules import breaks
from tests.support.log_objects import LOG, control, header, marker


def sequencer(
    partitions: int = 1,
    *,
    seqno: int = -1,
    epoch: int = 0,
    offsets: dict[int, int] | None = None,
    history: History | None = None,
) -> EventSequencer[str, list[str]]:
    at = TargetPosition(service="shop", seqno=Seqno(seqno), epoch=Epoch(epoch), offsets=offsets or {})
    return EventSequencer(topic="thl.shop", partitions=partitions, position=at, history=history)


def released(of: EventSequencer[str, list[str]]) -> list[str]:
    """Releases in short: `3[ab` began, `3]c` ended, `3[abc]` whole, `3-b` a middle part, `3x` voided."""
    out = []
    for item in of.release():
        if isinstance(item, Voided):
            out.append(f"{item.seqno}x")
        else:
            left = "[" if item.first else "]" if item.complete else "-"
            right = "]" if item.first and item.complete else ""
            out.append(f"{item.seqno}{left}{''.join(item.bodies)}{right}")
    return out


def test_events_of_one_fragment_are_released_in_order() -> None:
    it = sequencer()
    it.accept(marker(1, 0), 0, 0, "m")
    it.accept(header(0), 0, 2, "a")
    it.accept(header(1), 0, 3, "b")

    (first, second) = it.release()
    assert isinstance(first, Release)
    assert (first.seqno, first.epoch, first.bodies, first.first, first.complete) == (0, 1, ["a"], True, True)
    assert isinstance(second, Release)
    assert second.header.event_id == "mysql-bin.000001:0000000000000200;7"
    assert it.release() == []
    assert it.released == 1


def test_next_event_is_released_in_parts_and_complete_with_its_last_fragment() -> None:
    it = sequencer()
    it.accept(header(0, 0, last=False), 0, 0, "a")
    it.accept(header(0, 1, last=False), 0, 1, "b")
    assert released(it) == ["0[ab"]
    it.accept(header(0, 2, last=False), 0, 2, "c")
    assert released(it) == ["0-c"]
    assert it.released == -1
    it.accept(header(0, 3), 0, 3, "d")
    assert released(it) == ["0]d"]


def test_an_event_waits_for_the_one_before_it_on_another_partition() -> None:
    it = sequencer(2)
    it.accept(header(1, prev=-1), 1, 0, "b")
    it.accept(header(2, 0, last=False, prev=1), 1, 1, "c")
    assert released(it) == []
    assert it.waiting == 2
    it.accept(header(0, prev=-1), 0, 0, "a")
    assert released(it) == ["0[a]", "1[b]", "2[c"]
    assert it.waiting == 0


def test_event_voided_by_a_marker_is_released_again_from_its_beginning() -> None:
    it = sequencer()
    it.accept(header(0, 0, last=False), 0, 0, "a")
    assert released(it) == ["0[a"]
    it.accept(marker(2, 0), 0, 5, "m")
    it.accept(header(0, epoch=2), 0, 6, "A")
    assert released(it) == ["0x", "0[A]"]


def test_marker_in_another_partition_voids_the_event() -> None:
    it = sequencer(2)
    it.accept(header(0, 0, last=False), 0, 0, "a")
    it.accept(marker(2, 0), 1, 0, "m")
    it.accept(header(0, epoch=2), 1, 1, "A")
    it.accept(header(0, 1, last=False), 0, 1, "b")  # more of the given up one
    assert released(it) == ["0[A]"]
    it.accept(marker(2, 0), 0, 3, "m")
    it.accept(header(1, epoch=2, prev=-1), 0, 4, "B")
    assert released(it) == ["1[B]"]


def test_given_up_event_read_after_its_repetition_is_left_out() -> None:
    it = sequencer(2)
    it.accept(marker(1, 0), 1, 0, "m")
    it.accept(marker(2, 0), 1, 2, "m")
    it.accept(header(0, epoch=2), 1, 3, "A")
    assert released(it) == ["0[A]"]
    it.accept(marker(1, 0), 0, 0, "m")
    it.accept(header(0, 0, last=False), 0, 2, "a")
    it.accept(marker(2, 0), 0, 5, "m")
    assert released(it) == []


def test_given_up_event_whose_marker_precedes_the_restart_is_left_out() -> None:
    known = History.of(control(0, 5, count=2), Seqno(5))
    it = sequencer(2, seqno=4, epoch=1, offsets={0: 11, 1: 4}, history=known)
    it.accept(header(5, 3, last=False, prev=4), 0, 11, "d")  # from its middle
    it.accept(marker(2, 5, prev=4), 0, 13, "m")
    it.accept(header(5, epoch=2, prev=3), 1, 4, "A")
    assert released(it) == ["5[A]"]


def test_event_that_the_target_has_is_left_out() -> None:
    it = sequencer(seqno=1, epoch=1, offsets={0: 3})
    it.accept(header(1, 1, rows=9), 0, 3, "b")
    it.accept(header(2), 0, 4, "c")
    assert released(it) == ["2[c]"]


HOLES = {
    "an event is missing": ([header(0), header(2)], Rule.EVENT_MISSING),
    "an event is missing before a marker": ([header(0), marker(2, 2, prev=1)], Rule.EVENT_MISSING),
    "a fragment is missing": ([header(0, 0, last=False), header(0, 2)], Rule.FRAGMENT_MISSING),
    "the first fragment is missing": ([header(0), header(1, 1)], Rule.FRAGMENT_MISSING),
    "the log begins in an event": ([header(0, 1)], Rule.FRAGMENT_MISSING),
    "the log begins after its first event": ([header(1)], Rule.EVENT_MISSING),
    "the last fragment is missing": ([header(0, 0, last=False), header(1)], Rule.EVENT_UNFINISHED),
    "a marker is missing": ([header(0), header(1, epoch=2)], Rule.MARKER_MISSING),
    "one of two markers is missing": ([marker(1, 0), marker(3, 0)], Rule.EPOCH_MISSING),
    "an older producer wrote on": ([marker(2, 0), header(0, epoch=1)], Rule.OLDER_PRODUCER),
    "a fragment is there twice": ([header(0, 0, last=False), header(0, 0, last=False)], Rule.FRAGMENT_MISSING),
    "an event is there twice": ([header(0), header(0, prev=0)], Rule.LATER_EVENT_NAMED),
    "the epoch gives a finished event again": ([header(0), header(1), marker(2, 1, prev=1)], Rule.LATER_EVENT_NAMED),
    "the epoch begins too late": ([header(0, 0, last=False), marker(2, 1)], Rule.END_MISSING),
    "a barrier is missing": ([header(0), header(1, barrier=0)], Rule.BARRIER_MISSING),
    "a barrier is forgotten": ([header(0, shard=UNKNOWN_SHARD), header(1, barrier=-1)], Rule.BARRIER_NOT_NAMED),
    "rows get fewer": ([header(0, 0, last=False, rows=5), header(0, 1, rows=4)], Rule.ROWS_DECREASED),
    "the chain changes within the event": (
        [header(0), header(1, last=False), header(1, 1, prev=-1)],
        Rule.PREVIOUS_CHANGED,
    ),
}


@pytest.mark.parametrize(("messages", "rule"), HOLES.values(), ids=HOLES.keys())
def test_damaged_partition_is_refused_with_the_broken_rule(messages: list[FragmentHeader], rule: Rule) -> None:
    it = sequencer()
    with breaks(rule, seqno=messages[-1].seqno) as error:
        for offset, message in enumerate(messages):
            it.accept(message, 0, offset, "x")
    assert str(error.value.where["at"]).split("@")[0] == "thl.shop-0"


def test_lower_offset_is_refused() -> None:
    it = sequencer(offsets={0: 7})
    with breaks(Rule.OFFSET_REREAD, at="thl.shop-0@6", next_offset=7):
        it.accept(header(0), 0, 6, "a")


def test_event_in_two_partitions_is_refused() -> None:
    it = sequencer(2)
    it.accept(header(0), 0, 0, "a")
    with breaks(Rule.EVENT_TWICE, at="thl.shop-1@0", seqno=0):
        it.accept(header(0), 1, 0, "a")


def test_marker_of_an_epoch_that_begins_with_a_finished_event_is_refused() -> None:
    it = sequencer(3)
    it.accept(header(1, prev=-1), 0, 0, "b")  # waits for 0
    with breaks(Rule.GIVEN_AGAIN, epoch=2, finished=1):
        it.accept(marker(2, 1), 1, 0, "m")


def test_marker_of_an_epoch_that_begins_with_a_released_event_is_refused() -> None:
    it = sequencer(2)
    it.accept(header(0), 0, 0, "a")
    it.accept(header(1), 0, 1, "b")
    with breaks(Rule.GIVEN_AGAIN, at="thl.shop-1@0", epoch=2, seqno=1, finished=1):
        it.accept(marker(2, 1, prev=-1), 1, 0, "m")


def test_finished_event_of_an_epoch_that_gave_it_up_is_refused() -> None:
    it = sequencer(2)
    it.accept(marker(2, 0), 1, 0, "m")
    with breaks(Rule.FINISHED_LATE, epoch=1, newer_epoch_from=0):
        it.accept(header(0), 0, 0, "a")


def test_barrier_outside_partition_0_is_refused() -> None:
    it = sequencer(2)
    with breaks(Rule.BARRIER_ELSEWHERE, at="thl.shop-1"):
        it.accept(header(0, kind=Kind.DDL), 1, 0, "a")


def test_epoch_older_than_the_targets_is_refused() -> None:
    it = sequencer(seqno=3, epoch=2, offsets={0: 4})
    with breaks(Rule.EPOCH_DECREASED, epoch=1, epoch_before=2):
        it.accept(header(4, epoch=1), 0, 4, "a")


def test_marker_that_contradicts_the_history_is_refused() -> None:
    it = sequencer(history=History.of(control(0, 3), Seqno(3)))
    with breaks(Rule.EPOCH_BEGIN_CHANGED, seqno=2, began_with=3):
        it.accept(marker(2, 2, prev=-1), 0, 0, "m")


def test_marker_of_another_log_is_refused() -> None:
    it = sequencer(history=History.of(control(0), Seqno(-1)))
    with pytest.raises(HistoriesDiffer) as refused:
        it.accept(marker(1, 0, log_id="b" * 32), 0, 0, "m")
    assert refused.value.where["log_id"] == "b" * 32
    unknowing = sequencer()
    unknowing.accept(marker(1, 0, log_id=LOG), 0, 0, "m")
    with pytest.raises(HistoriesDiffer):
        unknowing.accept(marker(2, 0, log_id="b" * 32), 0, 1, "m")


def test_resumable_is_the_first_fragment_that_the_target_lacks() -> None:
    it = sequencer(2, offsets={1: 40})
    assert it.resumable(Seqno(-1)) == {1: 40}
    it.accept(header(0), 0, 10, "a")
    it.accept(header(1), 0, 12, "b")
    it.accept(header(3, prev=1), 0, 14, "d")  # waits for 2 on partition 1
    it.release()
    assert it.resumable(Seqno(-1)) == {0: 10, 1: 40}
    assert it.resumable(Seqno(0)) == {0: 12, 1: 40}
    assert it.resumable(Seqno(1)) == {0: 14, 1: 40}
    it.accept(header(2, 0, prev=-1, last=False), 1, 41, "c")
    assert it.resumable(Seqno(1)) == {0: 14, 1: 41}
    it.accept(header(2, 1, prev=-1), 1, 42, "c")
    assert it.resumable(Seqno(3)) == {0: 15, 1: 43}


def test_resumable_is_after_a_given_up_event() -> None:
    it = sequencer()
    it.accept(header(0, 0, last=False), 0, 4, "a")
    assert it.resumable(Seqno(-1)) == {0: 4}
    it.accept(marker(2, 0), 0, 9, "m")
    assert it.resumable(Seqno(-1)) == {0: 10}


def test_resumable_before_an_earlier_call_or_after_the_released_events_is_refused() -> None:
    it = sequencer()
    it.accept(header(0), 0, 0, "a")
    it.accept(header(1), 0, 1, "b")
    with pytest.raises(ValueError):
        it.resumable(Seqno(2))
    it.resumable(Seqno(1))
    with pytest.raises(ValueError):
        it.resumable(Seqno(0))
