"""Whether a target has what a view of a source without GTIDs has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from connector.clock import SystemClock
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.source_position import SourcePosition
from connector.verify.source import SourceReader, SourceState
from connector.verify.target import TargetReader, TargetState
from connector.verify.waiting import is_ahead, wait
from tests.support.clock import Slept
from tests.support.log_objects import finished


class Source:
    """A source without GTIDs; whether a producer reads its log is not known."""

    def read(self) -> bool | None:
        return None


class Target:
    """A target that stands at one event; whether its applier runs is not known."""

    def __init__(self, event_id: str) -> None:
        self.state = TargetState(7, event_id, None, True, {}, {})

    @contextmanager
    def view(self, service: str) -> Iterator[TargetState]:
        yield self.state

    def applied(self, service: str) -> bool | None:
        return None


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

    def __init__(self, offset: int, last: int) -> None:
        resume = SourcePosition("binlog.1000000", offset)
        self._position = PositionRecord(finished=finished(last), resume=resume, gtid_set=None, open=None, tails={})

    def position(self) -> PositionRecord | None:
        return self._position


@pytest.mark.parametrize(
    ("offset", "last", "has", "seconds"),
    [
        (100, 7, True, 0.0),  # the log has passed the view, and the target has the log's last event
        (99, 7, False, 4.0),  # it may still pass it
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
