"""The server is checked at intervals while its stream is read."""

from __future__ import annotations

import pytest

from connector.errors import PreflightError, SourceUnavailable
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.producer.sources.watched_stream import EVERY, WatchedStream
from tests.support.clock import Slept

PASSED = PositionAdvance(SourcePosition("bin.000001", 4), None)


class Stream:
    ended = False
    closed = False

    def read(self, timeout: float) -> list[Item]:
        del timeout
        return [PASSED]

    def close(self) -> None:
        self.closed = True


def test_a_failed_check_ends_the_stream_and_none_comes_early() -> None:
    clock, looks = Slept(), list[float]()
    problem = PreflightError("changes are not logged")

    def look() -> None:
        looks.append(clock.monotonic())
        if len(looks) == 2:
            raise problem

    stream = WatchedStream(Stream(), look, clock)
    assert stream.read(0) == [PASSED]
    assert looks == []
    clock.sleep(EVERY)
    assert stream.read(0) == stream.read(0) == [PASSED]
    assert len(looks) == 1
    clock.sleep(EVERY)
    with pytest.raises(PreflightError) as failed:
        stream.read(0)
    assert failed.value is problem


def test_a_server_that_cannot_be_checked_does_not_end_the_stream() -> None:
    clock, inner = Slept(), Stream()

    def look() -> None:
        raise SourceUnavailable("too many connections")

    stream = WatchedStream(inner, look, clock)
    clock.sleep(EVERY)
    assert stream.read(0) == [PASSED]
    stream.close()
    assert inner.closed
    assert not stream.ended
