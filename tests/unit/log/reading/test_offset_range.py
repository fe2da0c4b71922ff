"""However a partition is cut into portions, each finished event is whole in one of them, and no hole goes unseen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import ranges_of
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, LogId, Seqno
from connector.log.reading.event_range import EventRange, follows, is_plain
from connector.log.reading.offset_range import DONE, GIVE_UP, OTHER, TAKE, WHOLE, OffsetRange, OffsetRangeReader
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


def read(messages: list[Message], wanted: OffsetRange, *, in_runs: bool = False) -> dict[int, list[int]]:
    """Whole events that a portion gives, each with its fragments' offsets."""
    portion, found, held = OffsetRangeReader("t", wanted), dict[int, list[int]](), list[int]()
    rest = [one for one in messages if one[0] >= wanted.begin]
    while rest:
        if in_runs and (run := run_of(rest)) and portion.accept_range(run):
            found |= {run.first + index: [at] for index, at in enumerate(run.offsets)}
            rest = rest[len(run.offsets) :]
        else:
            offset, one = rest.pop(0)
            verdict = portion.accept(one, offset)
            if verdict == DONE:
                return found
            if verdict == GIVE_UP:
                held = []
            if verdict in (TAKE, WHOLE):
                held.append(offset)
            if verdict == WHOLE:
                assert one.seqno not in found
                found[one.seqno], held = held, []
        if portion.finished:
            return found
    raise AssertionError("the portion did not end")


def run_of(rest: list[Message]) -> EventRange[None] | None:
    count = 1
    while count < len(rest) and follows(rest[count - 1][1], rest[count][1]):
        count += 1
    if count == 1 or not is_plain(rest[0][1]):
        return None
    one = rest[0][1]
    offsets = [offset for offset, _ in rest[:count]]
    return EventRange(0, one.seqno, one.prev_seqno, one.last_barrier, offsets, rest[count - 1][1], None)


def cuts(log: Log, step: int) -> list[tuple[int, int]]:
    return [(at, min(at + step, log.end)) for at in range(0, log.end, step)]


@given(logs(), st.integers(1, 30), st.booleans(), st.data())
def test_each_event_is_whole_in_one_portion(log: Log, step: int, in_runs: bool, data: st.DataObject) -> None:
    after = data.draw(st.integers(-1, max(log.finished)))
    upto = data.draw(st.integers(after, max(log.finished)))
    found: dict[int, list[int]] = {}
    for begin, end in cuts(log, step):
        part = read(log.messages, bounds(log, begin, end, first=begin == 0, after=after, upto=upto), in_runs=in_runs)
        assert not found.keys() & part.keys()
        found |= part
    assert found == {seqno: places for seqno, places in log.finished.items() if after < seqno <= upto}


@given(logs(), st.integers(1, 30), st.booleans(), st.data())
def test_trapped_events_are_passed_over(log: Log, step: int, in_runs: bool, data: st.DataObject) -> None:
    trapped = data.draw(st.sets(st.sampled_from(sorted(log.finished))))
    found: dict[int, list[int]] = {}
    for begin, end in cuts(log, step):
        wanted = replace(bounds(log, begin, end, first=begin == 0), trapped=ranges_of(map(Seqno, trapped)))
        found |= read(log.messages, wanted, in_runs=in_runs)
    assert found == {seqno: places for seqno, places in log.finished.items() if seqno not in trapped}


@given(logs(), st.integers(1, 30), st.data())
def test_what_is_missing_is_seen_by_a_portion(log: Log, step: int, data: st.DataObject) -> None:
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


def test_an_event_that_began_before_the_portion_is_not_its() -> None:
    log = Log(
        [(0, marker(1, 0)), (1, header(0, last=False, prev=-1)), (2, header(0, 1, prev=-1)), (3, header(1))],
        {0: [1, 2], 1: [3]},
    )
    assert read(log.messages, bounds(log, 2, 4, first=False)) == {1: [3]}
    assert read(log.messages, bounds(log, 0, 2, first=True)) == {0: [1, 2]}


def test_a_portion_within_one_event_ends_where_it_ends() -> None:
    fragments = [(at, header(0, at, last=at == 9, prev=-1)) for at in range(10)]
    portion = OffsetRangeReader("t", bounds(Log(fragments, {0: list(range(10))}), 3, 5, first=False))
    assert [portion.accept(one, at) for at, one in fragments[3:6]] == [OTHER, OTHER, DONE]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (header(2, prev=0), "Events are missing"),
        (header(2, 1, prev=1), "A fragment is missing"),
        (header(2, epoch=2), "marker is missing"),
        (header(2, barrier=5), "names a later one"),
        (marker(3, 2, prev=1), "An epoch is missing"),
        (marker(2, 2, prev=0), "Events are missing"),
    ],
)
def test_what_cannot_be_there_is_refused(one: FragmentHeader, why: str) -> None:
    log = Log([(0, marker(1, 0)), (1, header(0)), (2, header(1))], {0: [1], 1: [2], 2: [3]})
    portion = OffsetRangeReader("t", bounds(log, 0, 9, first=True))
    for at, before in log.messages:
        portion.accept(before, at)
    with pytest.raises(LogDamaged, match=why):
        portion.accept(one, 3)


def opened(*messages: Message, first: bool = True, begin: int = 0, end: int = 9, upto: int = 9) -> OffsetRangeReader:
    """A portion that has taken messages, behind which others are wanted."""
    portion = OffsetRangeReader("t", bounds(Log([], {9: [9]}), begin, end, first=first, upto=upto))
    for offset, one in messages:
        portion.accept(one, offset)
    return portion


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (header(1, 1, prev=0), "Event 2 is not finished"),
        (header(3, 1, prev=1), "Event 2 is not finished"),
        (header(2, 3, prev=1, rows=9), "Fragment 2 is missing"),
        (header(2, 2, prev=1, rows=4), "fewer rows than the 5"),
        (header(2, 2, prev=0, rows=9), "first said that it follows 1"),
        (header(2, 2, prev=1, rows=9, epoch=0), "An older producer"),
    ],
)
def test_what_cannot_go_on_with_an_event_is_refused(one: FragmentHeader, why: str) -> None:
    portion = opened(
        (0, marker(1, 0)),
        (1, header(1, prev=-1)),
        (2, header(2, last=False, prev=1, rows=2)),
        (3, header(2, 1, last=False, prev=1, rows=5)),
    )
    with pytest.raises(LogDamaged, match=why) as raised:
        portion.accept(one, 4)
    assert raised.value.where["at"] == "t-0@4"


@pytest.mark.parametrize("before", [header(3, 4, prev=2), header(3, prev=2)])
def test_what_is_read_first_tells_the_epoch(before: FragmentHeader) -> None:
    portion = opened((5, before), first=False, begin=5)
    with pytest.raises(LogDamaged, match="marker is missing after epoch 1"):
        portion.accept(header(4, prev=3, epoch=2), 6)


def test_a_marker_behind_the_end_ends_it() -> None:
    assert opened((0, marker(1, 0)), end=1).accept(marker(2, 0), 1) == DONE
    assert opened((0, marker(1, 0)), end=2).accept(marker(2, 0), 1) == OTHER


def test_it_is_finished_when_the_last_event_that_is_wanted_is() -> None:
    portion = opened((0, marker(1, 0)), (1, header(8, prev=-1)))
    assert not portion.finished
    portion.accept(header(9, last=False, prev=8), 2)
    assert not portion.finished
    portion.accept(header(9, 1, prev=8), 3)
    assert portion.finished


def run_to_take(*, epoch: int = 1) -> EventRange[None]:
    """The events 2 to 4, at these offsets."""
    last = header(4, epoch=epoch)
    return EventRange(0, Seqno(2), Seqno(1), Seqno(-1), [2, 3, 4], last, None)


BEFORE: list[Message] = [(0, marker(1, 0)), (1, header(1, prev=-1))]


def test_a_run_that_comes_next_is_taken() -> None:
    portion = opened(*BEFORE)
    assert portion.accept_range(run_to_take())
    assert portion.accept(header(5, prev=4), 5) == WHOLE


@pytest.mark.parametrize(
    "portion",
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
def test_a_run_that_does_not_simply_come_next_is_not_taken(portion: OffsetRangeReader) -> None:
    assert not portion.accept_range(run_to_take())


def test_a_run_of_another_epoch_or_of_trapped_or_known_events_is_not_taken() -> None:
    assert not opened(*BEFORE).accept_range(run_to_take(epoch=2))
    log = Log([], {9: [9]})
    for change in ({"trapped": ranges_of([Seqno(3)])}, {"after": Seqno(2)}):
        portion = OffsetRangeReader("t", replace(bounds(log, 0, 9, first=True), **change))
        for offset, one in BEFORE:
            portion.accept(one, offset)
        assert not portion.accept_range(run_to_take())


@pytest.mark.parametrize("other", ["b" * 32, "0" * 32])
def test_another_log_is_refused(other: str) -> None:
    portion = OffsetRangeReader("t", bounds(Log([], {0: [1]}), 0, 2, first=True))
    with pytest.raises(HistoriesDiffer, match="another log"):
        portion.accept(marker(1, 0, log_id=LogId(other)), 0)
