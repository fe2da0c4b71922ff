"""Who reads some shards alone is told of a fork, and given nothing that is trapped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import HistoriesDiffer
from connector.thl.fork import TRAPPED, TRAPPED_EVENTS, Forked, Range
from connector.thl.header import FragmentHeader
from connector.thl.history import History
from connector.thl.joined import Joined
from connector.thl.words import Seqno, ShardId
from tests.unit.thl.make import LOG, epochs, header, marker

Message = tuple[int, int, FragmentHeader]  # partition, offset

FORK = {TRAPPED: "x:3-4", TRAPPED_EVENTS: "2-3"}


def forked(prev: int, barrier: int = -1) -> FragmentHeader:
    """The marker of an epoch that goes on without the events 2 and 3."""
    one = marker(2, 4, prev=prev, barrier=barrier)
    return replace(one, metadata={**one.metadata, **FORK})


LOG_OF_TWO: list[Message] = [
    (0, 0, marker(1, 0)),
    (1, 0, marker(1, 0)),
    (1, 1, header(0, prev=-1)),
    (1, 2, header(1, prev=0)),
    (1, 3, header(2, prev=1)),
    (0, 1, header(3, prev=-1, shard="#UNKNOWN")),
    (0, 2, forked(prev=3, barrier=3)),
    (1, 4, forked(prev=2, barrier=3)),
    (1, 5, header(4, prev=2, epoch=2, barrier=3)),
]


def joined(history: History | None = None) -> Joined[int]:
    return Joined(topic="t", log_id=LOG, shards=[ShardId("shop")], offsets={0: 0, 1: 0}, history=history)


def given(one: Joined[int]) -> list[int]:
    found = []
    while (event := one.next()) is not None:
        found.append(int(event.seqno))
    return found


def test_who_knows_the_history_passes_over_what_is_trapped_barriers_too() -> None:
    first, second = epochs(0, 4)
    second = replace(second, forked=Forked("x:3-4", (Range(Seqno(2), Seqno(3)),)))
    one = joined(History(LOG, (first, second), Seqno(4)))
    for partition, offset, message in LOG_OF_TWO:
        one.take(message, partition, offset, offset)
    assert given(one) == [0, 1, 4]


def test_who_was_reading_and_has_taken_none_passes_over_them() -> None:
    one, found = joined(), []
    for partition, offset, message in [*LOG_OF_TWO[:4], *LOG_OF_TWO[6:7]]:
        shift = replace(message, prev_seqno=Seqno(-1)) if partition == 0 and offset == 2 else message
        one.take(shift, partition, offset, offset)
        found += given(one)
    assert found == [0, 1]
    one.take(header(2, prev=1), 1, 3, 3)
    assert given(one) == []


def test_who_has_taken_one_is_told() -> None:
    one = joined()
    for partition, offset, message in LOG_OF_TWO[:6]:
        one.take(message, partition, offset, offset)
    assert given(one) == [0, 1, 2]
    with pytest.raises(HistoriesDiffer, match="may have been taken") as told:
        one.take(LOG_OF_TWO[6][2], 0, 2, 2)
    assert told.value.where["trapped_events"] == "2-3"
