"""Whether a target has what a view of a source without GTIDs has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from connector.clock import SystemClock
from connector.log.transaction.source_position import SourcePosition
from connector.verify.source import SourceReader, SourceState
from connector.verify.target import TargetReader, TargetState
from connector.verify.waiting import is_ahead, wait


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
