"""A binary search for a seqno or a time finds what reading the partition finds, in few reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connector.log.ids import Seqno
from connector.log.reading.search import FIRST_PROBE, GROWTH, Probe, backward_probes, before_time, first_of


@dataclass(frozen=True)
class Header:
    seqno: Seqno
    commit_time: int | None


@dataclass
class Partition:
    """Offsets with or without a fragment."""

    at: dict[int, Header]
    start: int
    end: int
    reads: int = 0

    def read(self, offset: int) -> Probe[Header] | None:
        self.reads += 1
        assert self.start <= offset < self.end
        behind = [o for o in self.at if o >= offset]
        return Probe(min(behind), self.at[min(behind)]) if behind else None


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """Events of one or many fragments, given up and given again, after markers, with holes; seqnos leave some out."""
    at: dict[int, Header] = {}
    start = offset = draw(st.integers(0, 20))
    seqno, time = draw(st.integers(0, 5)), 1000

    def put(commit_time: int | None) -> None:
        nonlocal offset
        offset += draw(st.sampled_from((0, 0, 0, 1, 2, 9)))
        at[offset] = Header(Seqno(seqno), commit_time)
        offset += 1

    for what in draw(st.lists(st.sampled_from(("one", "one", "many", "given up", "marker")), max_size=30)):
        if what == "marker":
            put(None)
            continue
        for _ in range(0 if what == "one" else draw(st.integers(1, 6))):
            put(None)
        if what == "given up":
            put(None)
        else:
            time += draw(st.integers(-20, 60))
            put(time)
            seqno += draw(st.integers(1, 3))
    return Partition(at, start, offset + draw(st.integers(0, 5)))


@given(partitions(), st.integers(-1, 100))
@example(Partition({}, 0, 0), 0)
@example(Partition({}, 3, 9), 0)
def test_seqno_search_finds_the_first_fragment_of_no_earlier_event(log: Partition, seqno: int) -> None:
    wanted = [offset for offset, header in sorted(log.at.items()) if header.seqno >= seqno]
    found = first_of(log.read, log.start, log.end, seqno)
    assert (found and found.offset) == (wanted[0] if wanted else None)
    assert found is None or found.header is log.at[found.offset]
    assert log.reads <= (log.end - log.start).bit_length()


def far(times: Callable[[int], int | None], size: int) -> Partition:
    log = Partition({}, 0, size)
    log.at = {offset: Header(Seqno(offset), times(offset)) for offset in range(size)}
    return log


@given(partitions(), st.integers(900, 2000))
def test_time_search_passes_no_event_of_that_time_or_later(log: Partition, time: int) -> None:
    """Here times fall by up to 30 times 20."""
    found = before_time(log.read, log.start, log.end, time, 600)
    assert log.start <= found <= log.end
    assert [o for o, h in log.at.items() if o < found and h.commit_time is not None and h.commit_time >= time] == []


def test_time_search_with_ascending_times_finds_the_event() -> None:
    log = far(lambda offset: offset * 10, 1000)
    assert before_time(log.read, 0, 1000, 5005, 0) == 501
    assert before_time(log.read, 0, 1000, -1, 0) == 0
    assert before_time(log.read, 0, 1000, 9991, 0) == 1000
    assert log.reads <= 3 * 10


def test_time_search_continues_after_a_long_event() -> None:
    """One event of 900 fragments in the middle, which tells its time with its last one alone."""
    log = Partition({}, 0, 1000)
    for offset in range(1000):
        long = 50 <= offset < 950
        log.at[offset] = Header(Seqno(50 if long else offset), None if long and offset < 949 else offset)
    assert before_time(log.read, 0, 1000, 980, 0) == 980
    assert 0 <= before_time(log.read, 0, 1000, 900, 0) <= 949
    assert log.reads < 250


def test_time_search_keeps_an_event_before_one_with_an_earlier_time() -> None:
    """The one in the middle is 400 earlier than its neighbours; halving meets it first."""
    log = far(lambda offset: 10 * offset - (400 if offset == 500 else 0), 1000)
    assert before_time(log.read, 0, 1000, 4990, 400) <= 499
    assert before_time(log.read, 0, 1000, 4990, 400) > 400


@pytest.mark.parametrize(("low", "high"), [(0, 0), (5, 5), (3, 4), (0, 16), (0, 17), (7, 5000)])
def test_backward_probes_cover_every_offset_once_from_the_end(low: int, high: int) -> None:
    probes = list(backward_probes(low, high))
    assert [offset for probe in reversed(probes) for offset in probe] == list(range(low, high))
    assert all(len(probe) <= FIRST_PROBE * GROWTH**number for number, probe in enumerate(probes))
