"""However a partition is cut into portions, each finished event is whole in one of them, and no hole goes unseen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import HistoriesDiffer, LogDamaged
from connector.thl.fork import ranges_of
from connector.thl.header import FragmentHeader
from connector.thl.portion import DONE, GIVE_UP, OTHER, TAKE, WHOLE, Bounds, Portion
from connector.thl.run import Run, follows, is_plain
from connector.thl.words import NO_SEQNO, LogId, Seqno
from tests.unit.thl.make import LOG, header, marker

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


def bounds(log: Log, begin: int, end: int, *, first: bool, after: int = -1, upto: int | None = None) -> Bounds:
    upto = max(log.finished) if upto is None else upto
    return Bounds(
        partition=0, begin=begin, end=end, after=Seqno(after), upto=Seqno(upto), tail=NO_SEQNO if first else None,
        last=Seqno(max((one for one in log.finished if one <= upto), default=-1)), log_id=LOG,
    )  # fmt: skip


def read(messages: list[Message], wanted: Bounds, *, in_runs: bool = False) -> dict[int, list[int]]:
    """Whole events that a portion gives, each with its fragments' offsets."""
    portion, found, held = Portion("t", wanted), dict[int, list[int]](), list[int]()
    rest = [one for one in messages if one[0] >= wanted.begin]
    while rest:
        if in_runs and (run := run_of(rest)) and portion.take_run(run):
            found |= {run.first + index: [at] for index, at in enumerate(run.offsets)}
            rest = rest[len(run.offsets) :]
        else:
            offset, one = rest.pop(0)
            verdict = portion.take(one, offset)
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


def run_of(rest: list[Message]) -> Run[None] | None:
    count = 1
    while count < len(rest) and follows(rest[count - 1][1], rest[count][1]):
        count += 1
    if count == 1 or not is_plain(rest[0][1]):
        return None
    one = rest[0][1]
    offsets = [offset for offset, _ in rest[:count]]
    return Run(0, one.seqno, one.prev_seqno, one.last_barrier, offsets, rest[count - 1][1], None)


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
    portion = Portion("t", bounds(Log(fragments, {0: list(range(10))}), 3, 5, first=False))
    assert [portion.take(one, at) for at, one in fragments[3:6]] == [OTHER, OTHER, DONE]


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
    portion = Portion("t", bounds(log, 0, 9, first=True))
    for at, before in log.messages:
        portion.take(before, at)
    with pytest.raises(LogDamaged, match=why):
        portion.take(one, 3)


def test_another_log_is_refused() -> None:
    portion = Portion("t", bounds(Log([], {0: [1]}), 0, 2, first=True))
    with pytest.raises(HistoriesDiffer, match="another log"):
        portion.take(marker(1, 0, log_id=LogId("b" * 32)), 0)
