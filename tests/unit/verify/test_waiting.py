"""Whether a target has what a view of a source has, and how long it is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from connector.clock import SystemClock
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.source_position import SourcePosition
from connector.verify.source import SourceReader, SourceState
from connector.verify.target import TargetReader, TargetState
from connector.verify.waiting import NO_PRODUCER, POLL_SECONDS, is_ahead, wait
from tests.support.clock import Slept
from tests.support.log_objects import finished


class Source:
    """A source whose GTIDs are letters.

    Args:
        reads: answers to whether a producer reads its log, the last of them again and again; None: not known.
    """

    def __init__(self, *reads: bool | None) -> None:
        self._reads = [*(reads or (None,))]

    def read(self) -> bool | None:
        return self._reads.pop(0) if len(self._reads) > 1 else self._reads[0]

    def missing(self, gtid_set: str, from_set: str) -> str:
        return "".join(sorted({*gtid_set} - {*from_set}))


class Target:
    """A target that stands at one event, or goes on to others.

    Args:
        event_id: that event.
        later: its states after some looks.
        applies: whether its applier runs; None: it is not known.
    """

    def __init__(self, event_id: str, later: Sequence[TargetState] = (), applies: bool | None = None) -> None:
        self.state = TargetState(7, event_id, None, True, {}, {})
        self._later, self._applies = [*later], applies

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        yield self.state
        if self._later:
            self.state = self._later.pop(0)

    def applied(self, service: str) -> bool | None:
        return self._applies


@pytest.mark.parametrize(
    ("event_id", "has", "ahead"),
    [
        ("binlog.999999:0000000000000500;3", False, False),
        ("binlog.1000000:0000000000000099;3", False, False),
        ("binlog.1000000:0000000000000100;3", True, False),
        ("binlog.1000000:0000000000000101;3", True, True),
        ("binlog.1000001:0000000000000004;3", True, True),
    ],
)
def test_files_are_ordered_by_their_numbers_also_the_millionth(event_id: str, has: bool, ahead: bool) -> None:
    seen, target = SourceState(SourcePosition("binlog.1000000", 100), None, exact=True), Target(event_id)
    source, reader = cast(SourceReader, Source()), cast(TargetReader, target)
    missing = wait(source, reader, seen, service="shop", patience=0.0, clock=SystemClock())
    assert (missing == "") is has
    assert is_ahead(source, seen, target.state) is ahead


class Log:
    """A log that stands at one position, and passes transactions that are not captured within three seconds."""

    idle_seconds = 3.0

    def __init__(self, offset: int, last: int, gtid_set: str | None = None) -> None:
        resume = SourcePosition("binlog.1000000", offset)
        self._position = PositionRecord(finished=finished(last), resume=resume, gtid_set=gtid_set, open=None, tails={})

    def position(self) -> PositionRecord | None:
        return self._position


@pytest.mark.parametrize(
    ("offset", "last", "has", "seconds"),
    [
        (100, 7, True, 0.0),  # the log has passed the view, and the target has the log's last event
        (99, 7, False, 4.0),  # it may still pass it
        (100, 6, True, 0.0),  # and has even later ones
        (100, 8, False, 1.0),
    ],
)
def test_a_target_has_a_view_that_the_log_has_passed_if_it_has_the_last_event(
    offset: int, last: int, has: bool, seconds: float
) -> None:
    seen, target = SourceState(SourcePosition("binlog.1000000", 100), None, exact=True), Target("binlog.1000000:50;3")
    source, reader, clock = cast(SourceReader, Source()), cast(TargetReader, target), Slept()
    missing = wait(source, reader, seen, service="shop", patience=1.0, clock=clock, log=Log(offset, last))
    assert (missing == "") is has
    assert seconds <= clock.seconds < seconds + 1


SEEN = SourceState(SourcePosition("binlog.1000000", 100), None, exact=True)


def waited(source: Source, target: Target, seen: SourceState = SEEN, log: Log | None = None) -> tuple[str, float]:
    """Wait for a target, at most three seconds without progress; return the answer, and the seconds that it took."""
    clock = Slept()
    given = cast(SourceReader, source), cast(TargetReader, target), seen
    return wait(*given, service="shop", patience=3.0, clock=clock, log=log), clock.seconds


def test_a_target_that_is_not_consistent_does_not_have_a_view_although_its_position_has_passed_it() -> None:
    target = Target("binlog.1000000:100;3")
    assert waited(Source(), target)[0] == ""
    target.state = replace(target.state, consistent=False)
    assert waited(Source(), target)[0]


@pytest.mark.parametrize(
    ("target_has", "log_has", "has"),
    [("abcd", "", True), ("ab", "abcd", True), ("ab", "ab", False), ("abd", "abd", False)],
)
def test_by_gtids_a_target_has_a_view_or_its_log_has_passed_it(target_has: str, log_has: str, has: bool) -> None:
    target = Target("binlog.1000000:100;3")
    target.state = replace(target.state, gtid_set=target_has)
    seen = replace(SEEN, gtid_set="abc")
    assert (waited(Source(), target, seen, Log(100, 7, log_has))[0] == "") is has


@pytest.mark.parametrize(
    ("reads", "applies", "said"),
    [
        (False, True, NO_PRODUCER),
        (True, False, "no applier has a session with the target: thl apply"),
        (True, True, "producer and applier run"),
        (None, True, "whether producer and applier run is not known: thl status tells how far each is"),
    ],
)
def test_the_process_that_is_missing_is_named_and_without_a_producer_no_log_passes_a_view(
    reads: bool | None, applies: bool, said: str
) -> None:
    answer, seconds = waited(Source(reads), Target("binlog.1000000:50;3", applies=applies), log=Log(99, 7))
    assert answer == said
    least = 3.0 if reads is False else 6.0
    assert least <= seconds < least + 1


def test_a_target_that_goes_on_is_waited_for_again_and_the_processes_are_looked_for_again() -> None:
    target = Target("binlog.1000000:50;3")
    target = Target("binlog.1000000:50;3", [*[target.state] * int(2.5 / POLL_SECONDS), replace(target.state, seqno=8)])
    answer, seconds = waited(Source(True, True, False), target)
    assert (answer, 5.0 < seconds < 6.0) == (NO_PRODUCER, True)
