"""A range of events is accepted or refused as its events would be one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import ConnectorError
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import UNKNOWN_SHARD, Epoch, Kind, Outcome, Seqno
from connector.log.reading.event_range import EventRange, is_plain, linked, newest_barrier
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.rules import Rule
from connector.log.transaction.position import TargetPosition
from tests.support.broken_rules import breaks
from tests.support.log_objects import UUID, control, epochs, header, marker
from tests.unit.log.model.ranges import accept_in_ranges

PLAIN = header(5)
CHANGES = st.sampled_from(
    [
        {"seqno": 3},
        {"seqno": 9},
        {"epoch": 1},
        {"epoch": 3},
        {"prev_seqno": 0},
        {"prev_seqno": 7},
        {"last_barrier": -1},
        {"last_barrier": 2},
        {"shard": UNKNOWN_SHARD},
        {"last_frag": False},
        {"fragno": 1},
        {"rows": 0},
        {"outcome": Outcome.VOID},
        {"kind": Kind.DDL},
        {"metadata": {"snapshot": "begin"}},
    ]
)


def flat(sequencer: EventSequencer[Any, Any]) -> list[tuple[Any, ...]]:
    """What is released, event by event."""
    found: list[tuple[Any, ...]] = []
    for item in sequencer.release():
        if isinstance(item, tuple):
            events = [(one.seqno, one.epoch, one, bodies, True, True) for given in item for one, bodies in given.body]
            found += sorted(events, key=lambda event: event[0])
        elif isinstance(item, Voided):
            found.append((item.seqno,))
        else:
            found.append((item.seqno, item.epoch, item.header, item.bodies, item.first, item.complete))
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, FragmentHeader, str]]:
    """A partition: mostly whole events that follow each other, and now and then anything else."""
    messages: list[FragmentHeader] = []
    epoch, barrier, seqno, tail = 1, -1, 0, -1
    for what in draw(st.lists(st.sampled_from(["plain"] * 6 + ["barrier", "parts", "marker", "wrong"]), max_size=25)):
        shard = UNKNOWN_SHARD if what == "barrier" else "shop"
        one = header(seqno, epoch=epoch, prev=tail, barrier=barrier, shard=shard)
        match what:
            case "marker":
                epoch += 1
                messages.append(marker(epoch, seqno, prev=tail, barrier=barrier))
                continue
            case "parts":
                messages += [replace(one, last_frag=False), replace(one, fragno=1)]
            case "wrong":
                messages.append(replace(one, **draw(CHANGES)))
            case _:
                messages.append(one)
        barrier = newest_barrier(one)
        tail, seqno = seqno, seqno + 1
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 0]), min_size=len(messages), max_size=len(messages)))
    offsets = [sum(steps[: at + 1]) for at in range(len(messages))]
    return [(offset, one, f"m{at}") for at, (offset, one) in enumerate(zip(offsets, messages, strict=True))]


@settings(max_examples=500)
@given(logs(), st.data())
def test_ranges_and_single_events_are_accepted_and_refused_alike(
    log: list[tuple[int, FragmentHeader, str]], data: st.DataObject
) -> None:
    at = TargetPosition(service="shop", seqno=Seqno(data.draw(st.integers(-1, 3))), epoch=Epoch(1), offsets={})
    one_by_one, in_ranges = (EventSequencer[Any, Any](topic="t", partitions=2, position=at) for _ in range(2))
    while log:
        size = data.draw(st.integers(1, 12))
        batch, log = log[:size], log[size:]
        ends = []
        for sequencer, by_range in ((one_by_one, False), (in_ranges, True)):
            try:
                if by_range:
                    accept_in_ranges(sequencer, 0, batch)
                else:
                    for offset, one, body in batch:
                        sequencer.accept(one, 0, offset, body)
            except ConnectorError as error:
                ends.append(str(error))
            else:
                ends.append("")
        assert ends[0] == ends[1]
        assert flat(one_by_one) == flat(in_ranges)
        assert one_by_one.released == in_ranges.released
        if ends[0]:
            return
        upto = Seqno(data.draw(st.integers(at.seqno, one_by_one.released)))
        at = replace(at, seqno=upto)
        assert one_by_one.resumable(upto) == in_ranges.resumable(upto)


def test_range_that_comes_next_is_accepted() -> None:
    sequencer = EventSequencer[Any, Any](topic="t", partitions=1, position=TargetPosition(service="shop"))
    sequencer.accept(header(0), 0, 0, "a")
    assert accept_in_ranges(sequencer, 0, [(n, header(n), "b") for n in range(1, 9)]) == 8
    assert sequencer.resumable(Seqno(4)) == {0: 5}
    assert sequencer.resumable(Seqno(8)) == {0: 9}


def test_range_that_does_not_come_next_changes_nothing() -> None:
    sequencer = EventSequencer[Any, Any](topic="t", partitions=1, position=TargetPosition(service="shop"))
    sequencer.accept(header(0), 0, 0, "a")
    assert not sequencer.accept_range(EventRange(0, range(2, 4), Seqno(0), Seqno(-1), [7, 8], 9, header(3), "b"))
    assert sequencer.released == 0
    assert sequencer.resumable(Seqno(0)) == {0: 1}


def range_of(*headers: FragmentHeader, partition: int = 0, offset: int = 10) -> EventRange[str]:
    first = headers[0]
    offsets = range(offset, offset + len(headers))
    return EventRange(
        partition,
        [one.seqno for one in headers],
        first.prev_seqno,
        first.last_barrier,
        list(offsets),
        offsets[-1] + 1,
        headers[-1],
        "b",
    )


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        (range_of(header(1, barrier=0), header(2, barrier=0)), None),
        (range_of(header(1), header(2)), Rule.BARRIER_NOT_NAMED),
        (range_of(header(1, barrier=0, epoch=2), header(2, barrier=0, epoch=2)), Rule.MARKER_MISSING),
        (range_of(header(1, barrier=0, prev=-1), header(2, barrier=0)), Rule.EVENT_MISSING),
        (range_of(header(1, barrier=0), header(2, barrier=0), offset=0), Rule.OFFSET_REREAD),
    ],
)
def test_range_is_accepted_only_after_the_event_barrier_and_epoch_before_it(
    events: EventRange[str], rule: Rule | None
) -> None:
    sequencer = EventSequencer[Any, Any](topic="t", partitions=1, position=TargetPosition(service="shop"))
    sequencer.accept(header(0, shard=UNKNOWN_SHARD), 0, 0, "a")
    sequencer.release()
    assert sequencer.accept_range(events) is (rule is None)
    if rule is not None:
        first = replace(
            events.header, seqno=events.first, prev_seqno=events.prev_seqno, last_barrier=events.last_barrier
        )
        assert sequencer.released == 0
        with breaks(rule):
            sequencer.accept(first, 0, events.offsets[0], "b")


def test_range_with_a_barrier_is_accepted_from_partition_0_alone() -> None:
    """A reader of one shard reads its partition and partition 0, and would miss a barrier elsewhere."""
    for partition in (0, 1):
        sequencer = EventSequencer[Any, Any](topic="t", partitions=2, position=TargetPosition(service="shop"))
        sequencer.accept(header(0), partition, 0, "a")
        headers = header(1), header(2, shard=UNKNOWN_SHARD)
        assert sequencer.accept_range(range_of(*headers, partition=partition)) is (partition == 0)
    sequencer.accept(headers[0], 1, 10, "b")
    with breaks(Rule.BARRIER_ELSEWHERE, at="t-1", seqno=2):
        sequencer.accept(headers[1], 1, 11, "c")


def test_range_with_trapped_events_is_read_without_them() -> None:
    forked = replace(epochs(0, 4)[1], forked=Forked(f"{UUID}:3-4", (Range(Seqno(2), Seqno(3)),)))
    known = History.of(replace(control(0), epochs=(*epochs(0), forked)), Seqno(3))
    sequencer = EventSequencer[Any, Any](
        topic="t", partitions=1, position=TargetPosition(service="shop"), history=known
    )
    messages = [(seqno, header(seqno), f"m{seqno}") for seqno in range(4)]
    sequencer.accept(*_first(messages))
    assert accept_in_ranges(sequencer, 0, messages[1:]) == 0
    assert [seqno for seqno, *_ in flat(sequencer)] == [0, 1]


def _first(messages: list[tuple[int, FragmentHeader, str]]) -> tuple[FragmentHeader, int, int, str]:
    offset, one, body = messages[0]
    return one, 0, offset, body


@pytest.mark.parametrize(
    "change",
    [
        {"fragno": 1},
        {"last_frag": False},
        {"kind": Kind.DDL},
        {"kind": Kind.EPOCH},
        {"outcome": Outcome.VOID},
        {"metadata": {"snapshot": "begin"}},
        {"metadata": {"snapshot": "end"}},
    ],
)
def test_event_with_more_than_rows_is_in_no_range(change: dict[str, Any]) -> None:
    assert is_plain(PLAIN)
    assert not is_plain(replace(PLAIN, **change))


@pytest.mark.parametrize("change", [{"seqno": 7}, {"epoch": 2}, {"prev_seqno": 4}, {"last_barrier": 3}])
def test_event_that_does_not_name_the_one_before_begins_another_range(change: dict[str, int]) -> None:
    assert linked(PLAIN, header(6))
    assert not linked(PLAIN, replace(header(6), **change))


def test_event_after_a_barrier_names_it_as_the_last_barrier() -> None:
    barrier = header(5, shard=UNKNOWN_SHARD)
    assert linked(barrier, header(6, barrier=5))
    assert not linked(barrier, header(6))


def sequencer_of_two(known: History | None = None) -> EventSequencer[Any, Any]:
    """A sequencer that has event 0 of partition 0 and event 1 of partition 1, at offset 0 each."""
    sequencer = EventSequencer[Any, Any](
        topic="t", partitions=2, position=TargetPosition(service="shop"), history=known
    )
    sequencer.accept(header(0), 0, 0, "a")
    sequencer.accept(header(1, prev=-1), 1, 0, "b")
    sequencer.release()
    return sequencer


def run(partition: int, *seqnos: int, prev: int | None = None, offset: int = 10, **fields: Any) -> EventRange[str]:
    """A range of these events, the partition's first ones after those of `sequencer_of_two`."""
    before = [partition if prev is None else prev, *seqnos]
    return range_of(
        *(header(seqno, prev=before[at], **fields) for at, seqno in enumerate(seqnos)),
        partition=partition,
        offset=offset,
    )


def test_ranges_of_partitions_that_complete_each_other_are_accepted_together() -> None:
    sequencer = sequencer_of_two()
    ranges = run(1, 3, 4, 6), run(0, 2, 5), run(0, 7, prev=5, offset=20)
    assert sequencer.accept_range(*ranges)
    assert sequencer.release() == [ranges]
    assert sequencer.released == 7
    assert sequencer.resumable(Seqno(1)) == {0: 10, 1: 10}
    assert sequencer.resumable(Seqno(3)) == {0: 11, 1: 11}
    assert sequencer.resumable(Seqno(5)) == {0: 20, 1: 12}
    assert sequencer.resumable(Seqno(7)) == {0: 21, 1: 13}


def test_event_that_waited_comes_after_the_ranges_before_it() -> None:
    sequencer = sequencer_of_two()
    sequencer.accept(header(4, prev=1), 1, 10, "waits")
    assert sequencer.accept_range(run(0, 2, 3))
    _, waited = sequencer.release()
    assert isinstance(waited, Release)
    assert (waited.seqno, waited.bodies) == (4, ["waits"])
    assert sequencer.released == 4


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param((run(0, 2, 4), run(1, 5)), id="an event is missing"),
        pytest.param((run(0, 2, 4), run(1, 4)), id="an event twice and another not"),
        pytest.param((run(0, 3), run(1, 4)), id="not the next event"),
        pytest.param((run(0, 2, 4), run(1, 3, epoch=2)), id="another epoch"),
        pytest.param((run(0, 2, 4), run(1, 3, prev=0)), id="an event of a partition is missing"),
        pytest.param((run(0, 2), run(1, 3, barrier=1)), id="a barrier is missing"),
        pytest.param((run(0, 2, 4), run(1, 3, offset=0)), id="an offset again"),
        pytest.param((run(0, 2, shard=UNKNOWN_SHARD), run(1, 3)), id="a barrier that is not named"),
        pytest.param((run(0, 2), run(1, 3, shard=UNKNOWN_SHARD)), id="a barrier in another partition"),
        pytest.param((run(0, 2), run(0, 4, prev=2), run(1, 3)), id="an offset of the ranges again"),
        pytest.param(
            (range_of(header(2, shard=UNKNOWN_SHARD, prev=0), header(4, prev=2, barrier=2)), run(1, 3)),
            id="a barrier within",
        ),
    ],
)
def test_ranges_of_partitions_that_do_not_complete_each_other_change_nothing(
    ranges: tuple[EventRange[str], ...],
) -> None:
    sequencer = sequencer_of_two()
    assert not sequencer.accept_range(*ranges)
    assert sequencer.release() == []
    assert sequencer.accept_range(run(0, 2, 4), run(1, 3, 5))


def test_a_barrier_may_be_the_last_event_of_ranges() -> None:
    sequencer = sequencer_of_two()
    last = range_of(header(2, prev=0), header(4, prev=2, shard=UNKNOWN_SHARD))
    assert sequencer.accept_range(last, run(1, 3))
    assert sequencer.accept_range(run(1, 5, prev=3, barrier=4, offset=20))


def test_ranges_that_an_event_waits_within_are_not_accepted() -> None:
    sequencer = sequencer_of_two()
    sequencer.accept(header(3, prev=1), 1, 10, "waits")
    assert not sequencer.accept_range(run(0, 2, 4))


def test_ranges_with_trapped_events_are_not_accepted() -> None:
    forked = replace(epochs(0, 6)[1], forked=Forked(f"{UUID}:4-5", (Range(Seqno(3), Seqno(4)),)))
    known = History.of(replace(control(0), epochs=(*epochs(0), forked)), Seqno(5))
    for history, accepted in ((known, False), (None, True)):
        sequencer = sequencer_of_two(history)
        assert sequencer.accept_range(run(0, 2, 4), run(1, 3, 5)) is accepted
