"""Wherever a partition is cut into ranges, each finished event is whole in one of them, and no hole is missed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import ranges_of
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, LogId, Seqno
from connector.log.reading.event_range import EventRange, is_plain, linked
from connector.log.reading.offset_range import DONE, GIVE_UP, OTHER, PART, WHOLE, OffsetRange, OffsetRangeReader
from connector.log.rules import Rule
from tests.support.broken_rules import breaks
from tests.support.log_objects import LOG, header, marker

Message = tuple[int, FragmentHeader]


@dataclass
class Log:
    """One partition: messages at offsets, and which seqnos are finished in it, each with its fragments' offsets."""

    messages: list[Message] = field(default_factory=list)
    finished: dict[int, list[int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.finished[max(self.finished)][-1] + 1


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Events of one or more fragments, given up ones with the marker that voids them, gaps in offsets and seqnos."""
    log, offset, seqno, tail, epoch = Log(), 0, 0, -1, 1
    log.messages.append((0, marker(1, 0)))
    for _ in range(draw(st.integers(1, 12))):
        seqno += draw(st.integers(0, 2))
        count = draw(st.sampled_from([1, 1, 1, 2, 5]))
        given_up = draw(st.booleans()) and draw(st.booleans())
        places = []
        for fragno in range(count):
            offset += draw(st.integers(1, 2))
            places.append(offset)
            last = fragno == count - 1 and not given_up
            one = header(seqno, fragno, last=last, epoch=epoch, prev=tail, rows=fragno + 1)
            log.messages.append((offset, one))
        if given_up:
            epoch, offset = epoch + 1, offset + 1
            log.messages.append((offset, marker(epoch, seqno, prev=tail)))
            seqno += draw(st.integers(0, 1))  # given again here, or in another partition
        else:
            log.finished[seqno] = places
            tail, seqno = seqno, seqno + 1
    if not log.finished:
        log.messages.append((offset + 1, header(seqno, epoch=epoch, prev=tail)))
        log.finished[seqno] = [offset + 1]
    return log


def bounds(log: Log, begin: int, end: int, *, first: bool, after: int = -1, upto: int | None = None) -> OffsetRange:
    upto = max(log.finished) if upto is None else upto
    return OffsetRange(
        partition=0, begin=begin, end=end, after=Seqno(after), upto=Seqno(upto), tail=NO_SEQNO if first else None,
        last=Seqno(max((one for one in log.finished if one <= upto), default=-1)), log_id=LOG,
    )  # fmt: skip


def read(messages: list[Message], wanted: OffsetRange, *, in_ranges: bool = False) -> dict[int, list[int]]:
    """The whole events of a range, each with its fragments' offsets."""
    reader, found, held = OffsetRangeReader("t", wanted), dict[int, list[int]](), list[int]()
    rest = [one for one in messages if one[0] >= wanted.begin]
    while rest:
        if in_ranges and (events := range_of(rest)) and reader.accept_range(events):
            found |= {events.first + index: [at] for index, at in enumerate(events.offsets)}
            rest = rest[len(events.offsets) :]
        else:
            offset, one = rest.pop(0)
            verdict = reader.accept(one, offset)
            if verdict == DONE:
                return found
            if verdict == GIVE_UP:
                held = []
            if verdict in (PART, WHOLE):
                held.append(offset)
            if verdict == WHOLE:
                assert one.seqno not in found
                found[one.seqno], held = held, []
        if reader.finished:
            return found
    raise AssertionError("the reader did not finish")


def range_of(rest: list[Message]) -> EventRange[None] | None:
    count = 1
    while count < len(rest) and is_plain(rest[count][1]) and linked(rest[count - 1][1], rest[count][1]):
        count += 1
    if count == 1 or not is_plain(rest[0][1]):
        return None
    one = rest[0][1]
    offsets = [offset for offset, _ in rest[:count]]
    seqnos = [header.seqno for _, header in rest[:count]]
    return EventRange(0, seqnos, one.prev_seqno, one.last_barrier, offsets, offsets[-1] + 1, rest[count - 1][1], None)


def cuts(log: Log, step: int) -> list[tuple[int, int]]:
    return [(at, min(at + step, log.end)) for at in range(0, log.end, step)]


@given(logs(), st.integers(1, 30), st.booleans(), st.data())
def test_event_is_whole_in_exactly_one_range(log: Log, step: int, in_ranges: bool, data: st.DataObject) -> None:
    after = data.draw(st.integers(-1, max(log.finished)))
    upto = data.draw(st.integers(after, max(log.finished)))
    found: dict[int, list[int]] = {}
    for begin, end in cuts(log, step):
        part = read(
            log.messages, bounds(log, begin, end, first=begin == 0, after=after, upto=upto), in_ranges=in_ranges
        )
        assert not found.keys() & part.keys()
        found |= part
    assert found == {seqno: places for seqno, places in log.finished.items() if after < seqno <= upto}


@given(logs(), st.integers(1, 30), st.booleans(), st.data())
def test_range_with_trapped_events_is_read_without_them(
    log: Log, step: int, in_ranges: bool, data: st.DataObject
) -> None:
    trapped = data.draw(st.sets(st.sampled_from(sorted(log.finished))))
    found: dict[int, list[int]] = {}
    for begin, end in cuts(log, step):
        wanted = replace(bounds(log, begin, end, first=begin == 0), trapped=ranges_of(map(Seqno, trapped)))
        found |= read(log.messages, wanted, in_ranges=in_ranges)
    assert found == {seqno: places for seqno, places in log.finished.items() if seqno not in trapped}


@given(logs(), st.integers(1, 30), st.data())
def test_missing_fragment_fails_one_of_the_ranges(log: Log, step: int, data: st.DataObject) -> None:
    lost = data.draw(st.sampled_from(sorted(log.finished)))
    at = data.draw(st.sampled_from(log.finished[lost]))
    left = [one for one in log.messages if one[0] != at]
    seen = False
    for begin, end in cuts(log, step):
        try:
            read(left, bounds(log, begin, end, first=begin == 0))
        except (LogDamaged, AssertionError):  # a hole; or what is waited for at the end does not come
            seen = True
    assert seen, "the hole was not seen"


def test_event_that_began_before_the_range_is_left_out() -> None:
    log = Log(
        [(0, marker(1, 0)), (1, header(0, last=False, prev=-1)), (2, header(0, 1, prev=-1)), (3, header(1))],
        {0: [1, 2], 1: [3]},
    )
    assert read(log.messages, bounds(log, 2, 4, first=False)) == {1: [3]}
    assert read(log.messages, bounds(log, 0, 2, first=True)) == {0: [1, 2]}


def test_range_within_one_event_ends_at_its_end() -> None:
    fragments = [(at, header(0, at, last=at == 9, prev=-1)) for at in range(10)]
    reader = OffsetRangeReader("t", bounds(Log(fragments, {0: list(range(10))}), 3, 5, first=False))
    assert [reader.accept(one, at) for at, one in fragments[3:6]] == [OTHER, OTHER, DONE]


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (header(2, prev=0), Rule.EVENT_MISSING),
        (header(2, 1, prev=1), Rule.FRAGMENT_MISSING),
        (header(2, epoch=2), Rule.MARKER_MISSING),
        (header(2, barrier=5), Rule.LATER_EVENT_NAMED),
        (marker(3, 2, prev=1), Rule.EPOCH_MISSING),
        (marker(2, 2, prev=0), Rule.EVENT_MISSING),
    ],
)
def test_message_that_does_not_follow_an_event_is_refused(one: FragmentHeader, rule: Rule) -> None:
    log = Log([(0, marker(1, 0)), (1, header(0)), (2, header(1))], {0: [1], 1: [2], 2: [3]})
    reader = OffsetRangeReader("t", bounds(log, 0, 9, first=True))
    for at, before in log.messages:
        reader.accept(before, at)
    with breaks(rule, at="t-0@3", seqno=one.seqno):
        reader.accept(one, 3)


def opened(*messages: Message, first: bool = True, begin: int = 0, end: int = 9, upto: int = 9) -> OffsetRangeReader:
    """A reader that has accepted messages, with others to come."""
    reader = OffsetRangeReader("t", bounds(Log([], {9: [9]}), begin, end, first=first, upto=upto))
    for offset, one in messages:
        reader.accept(one, offset)
    return reader


@pytest.mark.parametrize(
    ("one", "rule", "where"),
    [
        (header(1, 1, prev=0), Rule.EVENT_UNFINISHED, {"unfinished": 2}),
        (header(3, 1, prev=1), Rule.EVENT_UNFINISHED, {"unfinished": 2}),
        (header(2, 3, prev=1, rows=9), Rule.FRAGMENT_MISSING, {"next_fragno": 2}),
        (header(2, 2, prev=1, rows=4), Rule.ROWS_DECREASED, {"rows": 4, "rows_before": 5}),
        (header(2, 2, prev=0, rows=9), Rule.PREVIOUS_CHANGED, {"last_read": 1}),
        (header(2, 2, prev=1, rows=9, epoch=0), Rule.OLDER_PRODUCER, {"epoch_read": 1}),
    ],
)
def test_message_that_does_not_continue_an_event_is_refused(
    one: FragmentHeader, rule: Rule, where: dict[str, int]
) -> None:
    reader = opened(
        (0, marker(1, 0)),
        (1, header(1, prev=-1)),
        (2, header(2, last=False, prev=1, rows=2)),
        (3, header(2, 1, last=False, prev=1, rows=5)),
    )
    with breaks(rule, at="t-0@4", **where):
        reader.accept(one, 4)


@pytest.mark.parametrize("before", [header(3, 4, prev=2), header(3, prev=2)])
def test_newer_epoch_without_a_marker_after_the_first_message_is_refused(before: FragmentHeader) -> None:
    reader = opened((5, before), first=False, begin=5)
    with breaks(Rule.MARKER_MISSING, epoch_read=1):
        reader.accept(header(4, prev=3, epoch=2), 6)


def test_marker_at_the_end_of_the_range_ends_it() -> None:
    assert opened((0, marker(1, 0)), end=1).accept(marker(2, 0), 1) == DONE
    assert opened((0, marker(1, 0)), end=2).accept(marker(2, 0), 1) == OTHER


def test_range_is_finished_with_its_last_event() -> None:
    reader = opened((0, marker(1, 0)), (1, header(8, prev=-1)))
    assert not reader.finished
    reader.accept(header(9, last=False, prev=8), 2)
    assert not reader.finished
    reader.accept(header(9, 1, prev=8), 3)
    assert reader.finished


def next_range(*, epoch: int = 1) -> EventRange[None]:
    """The events 2 to 4, at these offsets."""
    last = header(4, epoch=epoch)
    return EventRange(0, range(2, 5), Seqno(1), Seqno(-1), [2, 3, 4], 5, last, None)


BEFORE: list[Message] = [(0, marker(1, 0)), (1, header(1, prev=-1))]


def test_event_range_that_comes_next_is_accepted() -> None:
    reader = opened(*BEFORE)
    assert reader.accept_range(next_range())
    assert reader.accept(header(5, prev=4), 5) == WHOLE


@pytest.mark.parametrize(
    "reader",
    [
        opened(*BEFORE, (2, header(2, last=False, prev=1))),
        opened((1, header(1, 1, last=False, prev=0)), first=False, begin=1),
        opened((0, marker(1, 0)), (1, header(0, prev=-1))),
        opened(*BEFORE, end=4),
        opened(*BEFORE, upto=3),
    ],
    ids=[
        "within an event",
        "before the first that is known",
        "not behind its last",
        "to its end",
        "above what is wanted",
    ],
)
def test_event_range_that_does_not_come_next_is_not_accepted(reader: OffsetRangeReader) -> None:
    assert not reader.accept_range(next_range())


def test_event_range_of_another_epoch_or_of_trapped_or_applied_events_is_not_accepted() -> None:
    assert not opened(*BEFORE).accept_range(next_range(epoch=2))
    log = Log([], {9: [9]})
    for change in ({"trapped": ranges_of([Seqno(3)])}, {"after": Seqno(2)}):
        reader = OffsetRangeReader("t", replace(bounds(log, 0, 9, first=True), **change))
        for offset, one in BEFORE:
            reader.accept(one, offset)
        assert not reader.accept_range(next_range())


@pytest.mark.parametrize("other", ["b" * 32, "0" * 32])
def test_marker_of_another_log_is_refused(other: str) -> None:
    reader = OffsetRangeReader("t", bounds(Log([], {0: [1]}), 0, 2, first=True))
    with breaks(Rule.OTHER_LOG, HistoriesDiffer, log_id=other, expected=LOG):
        reader.accept(marker(1, 0, log_id=LogId(other)), 0)
