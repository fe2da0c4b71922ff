"""Promise 1 and 3, one rule at a time: what a reader takes for whole, for a hole, and for given up."""

from __future__ import annotations

import pytest

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.history import History
from connector.log.ids import UNKNOWN_SHARD, Epoch, Kind, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.transaction.position import TargetPosition
from tests.support.log_objects import LOG, control, header, marker


def ledger(
    partitions: int = 1,
    *,
    seqno: int = -1,
    epoch: int = 0,
    offsets: dict[int, int] | None = None,
    history: History | None = None,
) -> EventSequencer[str, list[str]]:
    at = TargetPosition(service="shop", seqno=Seqno(seqno), epoch=Epoch(epoch), offsets=offsets or {})
    return EventSequencer(topic="thl.shop", partitions=partitions, position=at, history=history)


def told(of: EventSequencer[str, list[str]]) -> list[str]:
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


def test_events_of_one_fragment_come_out_in_order() -> None:
    it = ledger()
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


def test_the_next_event_comes_in_parts_and_is_complete_with_its_last() -> None:
    it = ledger()
    it.accept(header(0, 0, last=False), 0, 0, "a")
    it.accept(header(0, 1, last=False), 0, 1, "b")
    assert told(it) == ["0[ab"]
    it.accept(header(0, 2, last=False), 0, 2, "c")
    assert told(it) == ["0-c"]
    assert it.released == -1
    it.accept(header(0, 3), 0, 3, "d")
    assert told(it) == ["0]d"]


def test_an_event_waits_for_the_one_before_it_on_another_partition() -> None:
    it = ledger(2)
    it.accept(header(1, prev=-1), 1, 0, "b")
    it.accept(header(2, 0, last=False, prev=1), 1, 1, "c")
    assert told(it) == []
    assert it.waiting == 2
    it.accept(header(0, prev=-1), 0, 0, "a")
    assert told(it) == ["0[a]", "1[b]", "2[c"]
    assert it.waiting == 0


def test_what_a_marker_voids_is_forgotten_and_comes_again() -> None:
    it = ledger()
    it.accept(header(0, 0, last=False), 0, 0, "a")
    assert told(it) == ["0[a"]
    it.accept(marker(2, 0), 0, 5, "m")
    it.accept(header(0, epoch=2), 0, 6, "A")
    assert told(it) == ["0x", "0[A]"]


def test_a_marker_on_another_partition_voids_too() -> None:
    it = ledger(2)
    it.accept(header(0, 0, last=False), 0, 0, "a")
    it.accept(marker(2, 0), 1, 0, "m")
    it.accept(header(0, epoch=2), 1, 1, "A")
    it.accept(header(0, 1, last=False), 0, 1, "b")  # more of the given up one
    assert told(it) == ["0[A]"]
    it.accept(marker(2, 0), 0, 3, "m")
    it.accept(header(1, epoch=2, prev=-1), 0, 4, "B")
    assert told(it) == ["1[B]"]


def test_the_given_up_event_met_after_the_new_one_is_passed_over() -> None:
    it = ledger(2)
    it.accept(marker(1, 0), 1, 0, "m")
    it.accept(marker(2, 0), 1, 2, "m")
    it.accept(header(0, epoch=2), 1, 3, "A")
    assert told(it) == ["0[A]"]
    it.accept(marker(1, 0), 0, 0, "m")
    it.accept(header(0, 0, last=False), 0, 2, "a")
    it.accept(marker(2, 0), 0, 5, "m")
    assert told(it) == []


def test_history_tells_a_given_up_event_whose_marker_was_read_before_the_restart() -> None:
    known = History.of(control(0, 5, count=2), Seqno(5))
    it = ledger(2, seqno=4, epoch=1, offsets={0: 11, 1: 4}, history=known)
    it.accept(header(5, 3, last=False, prev=4), 0, 11, "d")  # from its middle
    it.accept(marker(2, 5, prev=4), 0, 13, "m")
    it.accept(header(5, epoch=2, prev=3), 1, 4, "A")
    assert told(it) == ["5[A]"]


def test_what_the_target_has_is_skipped_when_it_is_read_again() -> None:
    it = ledger(seqno=1, epoch=1, offsets={0: 3})
    it.accept(header(1, 1, rows=9), 0, 3, "b")
    it.accept(header(2), 0, 4, "c")
    assert told(it) == ["2[c]"]


HOLES = {
    "an event is missing": [header(0), header(2)],
    "an event is missing before a marker": [header(0), marker(2, 2, prev=1)],
    "a fragment is missing": [header(0, 0, last=False), header(0, 2)],
    "the first fragment is missing": [header(0), header(1, 1)],
    "the log begins in an event": [header(0, 1)],
    "the log begins after its first event": [header(1)],
    "the last fragment is missing": [header(0, 0, last=False), header(1)],
    "a marker is missing": [header(0), header(1, epoch=2)],
    "one of two markers is missing": [marker(1, 0), marker(3, 0)],
    "an older producer wrote on": [marker(2, 0), header(0, epoch=1)],
    "a fragment is there twice": [header(0, 0, last=False), header(0, 0, last=False)],
    "an event is there twice": [header(0), header(0, prev=0)],
    "the epoch gives a finished event again": [header(0), header(1), marker(2, 1, prev=1)],
    "the epoch begins too late": [header(0, 0, last=False), marker(2, 1)],
    "a barrier is missing": [header(0), header(1, barrier=0)],
    "a barrier is forgotten": [header(0, shard=UNKNOWN_SHARD), header(1, barrier=-1)],
    "rows get fewer": [header(0, 0, last=False, rows=5), header(0, 1, rows=4)],
    "the chain changes within the event": [header(0), header(1, last=False), header(1, 1, prev=-1)],
}


@pytest.mark.parametrize("messages", HOLES.values(), ids=HOLES.keys())
def test_damage_is_an_error_and_never_skipped(messages) -> None:
    it = ledger()
    with pytest.raises(LogDamaged) as error:
        for offset, message in enumerate(messages):
            it.accept(message, 0, offset, "x")
    assert "thl.shop-0" in str(error.value)
    assert f"seqno={messages[-1].seqno}" in str(error.value)


def test_a_partition_is_not_read_backwards() -> None:
    it = ledger(offsets={0: 7})
    with pytest.raises(LogDamaged, match="earlier offset"):
        it.accept(header(0), 0, 6, "a")


def test_an_event_on_two_partitions_is_damage() -> None:
    it = ledger(2)
    it.accept(header(0), 0, 0, "a")
    with pytest.raises(LogDamaged, match="twice"):
        it.accept(header(0), 1, 0, "a")


def test_a_finished_event_that_a_newer_epoch_gives_again_is_damage() -> None:
    it = ledger(3)
    it.accept(header(1, prev=-1), 0, 0, "b")  # waits for 0
    with pytest.raises(LogDamaged, match="which was finished"):
        it.accept(marker(2, 1), 1, 0, "m")


def test_a_finished_event_of_an_epoch_that_had_to_give_it_up_is_damage() -> None:
    it = ledger(2)
    it.accept(marker(2, 0), 1, 0, "m")
    with pytest.raises(LogDamaged, match="a newer epoch gives it again"):
        it.accept(header(0), 0, 0, "a")


def test_a_barrier_elsewhere_than_on_partition_0_is_damage() -> None:
    it = ledger(2)
    with pytest.raises(LogDamaged, match="partition 0"):
        it.accept(header(0, kind=Kind.DDL), 1, 0, "a")


def test_an_epoch_older_than_the_targets_is_damage() -> None:
    it = ledger(seqno=3, epoch=2, offsets={0: 4})
    with pytest.raises(LogDamaged, match="epoch 2"):
        it.accept(header(4, epoch=1), 0, 4, "a")


def test_a_marker_that_contradicts_the_history_is_damage() -> None:
    it = ledger(history=History.of(control(0, 3), Seqno(3)))
    with pytest.raises(LogDamaged, match="began with 3"):
        it.accept(marker(2, 2, prev=-1), 0, 0, "m")


def test_a_marker_of_another_log_is_another_log() -> None:
    it = ledger(history=History.of(control(0), Seqno(-1)))
    with pytest.raises(HistoriesDiffer) as refused:
        it.accept(marker(1, 0, log_id="b" * 32), 0, 0, "m")
    assert refused.value.where["log_id"] == "b" * 32
    unknowing = ledger()
    unknowing.accept(marker(1, 0, log_id=LOG), 0, 0, "m")
    with pytest.raises(HistoriesDiffer):
        unknowing.accept(marker(2, 0, log_id="b" * 32), 0, 1, "m")


def test_resumable_is_the_first_fragment_of_what_is_not_on_the_target() -> None:
    it = ledger(2, offsets={1: 40})
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


def test_resumable_leaves_what_was_given_up() -> None:
    it = ledger()
    it.accept(header(0, 0, last=False), 0, 4, "a")
    assert it.resumable(Seqno(-1)) == {0: 4}
    it.accept(marker(2, 0), 0, 9, "m")
    assert it.resumable(Seqno(-1)) == {0: 10}


def test_resumable_is_not_asked_for_what_is_not_released_nor_backwards() -> None:
    it = ledger()
    it.accept(header(0), 0, 0, "a")
    it.accept(header(1), 0, 1, "b")
    with pytest.raises(ValueError, match=r"resumable\(2\)"):
        it.resumable(Seqno(2))
    it.resumable(Seqno(1))
    with pytest.raises(ValueError, match=r"resumable\(0\)"):
        it.resumable(Seqno(0))
