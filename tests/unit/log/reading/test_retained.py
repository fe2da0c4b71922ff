"""What is left of a partition of which retention has deleted the first messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.log.epochs.control import EpochRecord
from connector.log.epochs.history import History
from connector.log.format.first_fields import FirstFields
from connector.log.ids import NO_SEQNO, Epoch, Kind, LogId, Seqno
from connector.log.reading.retained import Retained, retained
from connector.log.transaction.position import Open, PositionRecord, SourcePosition

BEGAN = EpochRecord(epoch=Epoch(1), first_seqno=Seqno(0), source_id="h", server_uuid="u", started=0, reason="online")
AGAIN = replace(BEGAN, epoch=Epoch(2), first_seqno=Seqno(5))  # gave event 5 up
HISTORY = History(LogId("a" * 32), (BEGAN, AGAIN), Seqno(8))
POSITION = PositionRecord(
    finished=None, resume=SourcePosition("f", 4), gtid_set=None, open=None, tails={0: Seqno(8), 1: NO_SEQNO}
)


def message(
    offset: int, seqno: int, fragno: int = 0, epoch: int = 2, kind: Kind = Kind.TRANSACTION
) -> tuple[int, FirstFields]:
    return offset, FirstFields(Seqno(seqno), fragno, False, Epoch(epoch), kind, Seqno(seqno - 1))


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        ([message(10, 4)], Retained(10, Seqno(3))),
        ([message(10, 4, 1)], Retained(10, Seqno(4))),
        ([message(10, 5, 1, epoch=1), message(12, 5, kind=Kind.EPOCH)], Retained(12, Seqno(4))),
        ([message(10, 5, 1)], Retained(10, Seqno(5))),
        ([message(10, 8, 1)], Retained(10, Seqno(8))),  # the last finished event
        ([message(10, 9, 1)], Retained(10, Seqno(8), unfinished=True)),
        ([], Retained(20, Seqno(8))),
    ],
)
def test_partition_is_read_from_its_first_event_that_is_whole(
    messages: list[tuple[int, FirstFields]], left: Retained
) -> None:
    assert retained(messages, 0, 20, HISTORY, POSITION) == left


def test_without_messages_the_event_that_is_not_finished_counts_in_its_partition() -> None:
    within = replace(POSITION, open=Open(Seqno(9), 3, 0))
    assert retained([], 0, 20, HISTORY, within) == Retained(20, Seqno(8), unfinished=True)
    assert retained([], 1, 20, HISTORY, within) == Retained(20, NO_SEQNO)
    assert retained([], 2, 20, HISTORY, within) == Retained(20, NO_SEQNO)  # of which the position says nothing
    assert retained([], 0, 20, HISTORY, None) == Retained(20, Seqno(8))
    assert retained([], 0, 20, replace(HISTORY, last_finished=NO_SEQNO), None) == Retained(20, Seqno(0))
