"""The order of a relay: nothing may be missing in it; its offsets are those of the topic."""

from __future__ import annotations

from typing import Any

import pytest

from connector.errors import LogDamaged
from connector.log.ids import Epoch, Seqno
from connector.log.reading.event_sequencer import Release
from connector.log.reading.relay_sequencer import RelaySequencer
from connector.log.transaction.position import TargetPosition
from tests.support.log_objects import header


def order(after: int = 4, epoch: int = 2) -> RelaySequencer[str, Any]:
    position = TargetPosition(service="shop", seqno=Seqno(after), epoch=Epoch(epoch))
    return RelaySequencer(folder="/relay", position=position)


def test_events_are_released_as_they_come_and_parts_of_a_large_one() -> None:
    made = order()
    made.accept(header(5, epoch=2), 0, 10, "a")
    made.accept(header(6, last=False, epoch=2), 1, 7, "b")
    first, part = made.release()
    assert isinstance(first, Release)
    assert isinstance(part, Release)
    assert (first.seqno, first.complete, part.seqno, part.first, part.complete) == (5, True, 6, True, False)
    made.accept(header(6, 1, epoch=2), 1, 8, "c")
    (rest,) = made.release()
    assert isinstance(rest, Release)
    assert (rest.bodies, rest.first, rest.complete) == (["c"], False, True)
    assert made.resumable(Seqno(5)) == {0: 11}
    assert made.resumable(Seqno(6)) == {0: 11, 1: 9}


@pytest.mark.parametrize(
    "wrong",
    [
        header(4, epoch=2),
        header(6, epoch=2),
        header(5, 1, epoch=2),
        header(5, epoch=1),
    ],
)
def test_what_does_not_come_next_is_refused(wrong: Any) -> None:
    with pytest.raises(LogDamaged) as caught:
        order().accept(wrong, 0, 10, "a")
    assert (caught.value.where["folder"], "topic" in caught.value.where) == ("/relay", False)
    assert "from Kafka" in caught.value.hint


def test_an_event_of_an_older_epoch_than_the_event_before_it_is_refused() -> None:
    """Though its epoch is not older than the target's."""
    made = order()
    made.accept(header(5, epoch=3), 0, 10, "a")
    with pytest.raises(LogDamaged, match="older epoch"):
        made.accept(header(6, epoch=2), 0, 11, "b")


def test_an_event_within_another_is_refused() -> None:
    made = order()
    made.accept(header(5, last=False, epoch=2), 0, 10, "a")
    with pytest.raises(LogDamaged, match="fragment 1 of event 5"):
        made.accept(header(6, epoch=2), 0, 11, "b")


def test_trapped_events_are_passed_over() -> None:
    made = order()
    made.pass_over(Seqno(8))
    made.accept(header(9, epoch=3), 0, 10, "a")
    assert made.released == 9
