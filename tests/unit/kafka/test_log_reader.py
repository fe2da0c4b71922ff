"""A partition's last message and its events are found by probes, whatever offsets have no message."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest

from connector.config.model import Config
from connector.kafka.consumer import KafkaMessage
from connector.kafka.log_reader import LogReader
from connector.log.epochs.control import EpochRecord
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.position import PositionRecord, SourcePosition
from tests.support.fragments import encoded, marker, record, statement

BEGAN = EpochRecord(epoch=Epoch(1), first_seqno=Seqno(0), source_id="h", server_uuid="u", started=0, reason="online")
HISTORY = History(LogId("a" * 32), (BEGAN,), Seqno(99))
POSITION = PositionRecord(finished=None, resume=SourcePosition("f", 4), gtid_set=None, open=None, tails={0: Seqno(5)})


class Partition(LogReader):
    """A reader of messages that are not on brokers."""

    def __init__(self, at: dict[int, bytes], start: int, end: int) -> None:
        super().__init__(Config(service="s"))
        self._at = at
        self._bounds = start, end

    def _ends(self, topic: str, partition: int) -> tuple[int, int]:
        return self._bounds

    def _between(self, topic: str, partition: int, start: int, end: int) -> Generator[KafkaMessage, None, None]:
        for offset in range(start, end):
            if offset in self._at:
                yield KafkaMessage(partition, offset, b"", self._at[offset])


def fragment(seqno: int, fragno: int = 0, *, last: bool = True, prev: int | None = None) -> bytes:
    before = seqno - 1 if prev is None else prev
    return encoded(record(seqno, [statement("x")], fragno=fragno, last_frag=last, prev_seqno=before))


@pytest.mark.parametrize("end", [12, 13, 28, 29, 200, 5000])
def test_newest_message_before_offsets_without_messages_is_the_tail(end: int) -> None:
    """Aborted messages and Kafka's markers have offsets."""
    tail = Partition({offset: fragment(offset) for offset in range(3, 12)}, 3, end).tail(0)
    assert (tail.seqno, tail.start, tail.end) == (11, 3, end)


def test_tail_of_an_unfinished_event_is_the_event_before_it() -> None:
    at = {0: fragment(4, prev=2), 1: fragment(6, last=False, prev=4), 2: fragment(6, 1, last=False, prev=4)}
    assert Partition(at, 0, 3).tail(0).seqno == 4
    assert Partition(at, 0, 3).tail(0, before=1).seqno == 4
    assert not Partition(at, 0, 3).tail(0, before=0).readable


@pytest.mark.parametrize(
    ("first", "last_finished", "tail"),
    [
        (fragment(8, prev=6), 9, 6),  # whole: the event before it is gone
        (fragment(8, 1, prev=6), 9, 8),  # its first fragment is gone: it is no more whole
        (fragment(8, 1, last=False, prev=6), 7, 6),  # it is not finished
        (fragment(8, last=False, prev=6), 7, 6),
    ],
)
@pytest.mark.parametrize("end", [42, 400])
def test_partition_whose_events_were_deleted_begins_after_what_its_first_message_tells(
    first: bytes, last_finished: int, tail: int, end: int
) -> None:
    history = replace(HISTORY, last_finished=Seqno(last_finished))
    assert Partition({41: first}, 40, end).after(0, Seqno(5), history, POSITION) == (41, tail)


def test_partition_begins_after_deleted_parts_of_what_was_given_up() -> None:
    again = replace(BEGAN, epoch=Epoch(2), first_seqno=Seqno(8))
    history = replace(HISTORY, epochs=(BEGAN, again), last_finished=Seqno(7))
    at = {41: fragment(8, 1, last=False, prev=6), 43: encoded(marker(2, 8, 7, log_id=HISTORY.log_id, tail=6))}
    assert Partition(at, 40, 50).after(0, Seqno(7), history, POSITION) == (43, 6)
    assert Partition(at, 40, 50).incomplete_upto({0: (40, 50)}, history, POSITION) == 6


@pytest.mark.parametrize("end", [60, 4000])
@pytest.mark.parametrize(("upto", "found"), [(9, (10, 9)), (20, (21, 20)), (49, (50, 49)), (99, (50, 49))])
def test_partition_is_read_after_its_last_event_up_to_a_seqno(upto: int, found: tuple[int, int], end: int) -> None:
    log = Partition({offset: fragment(offset) for offset in range(50)}, 0, end)
    assert log.after(0, Seqno(upto), HISTORY, POSITION) == found


def test_empty_partition_has_the_event_that_the_position_names_if_retention_deleted_all() -> None:
    assert Partition({}, 7, 70).after(0, Seqno(5), HISTORY, POSITION) == (70, 5)
    assert Partition({}, 0, 70).after(0, Seqno(5), HISTORY, POSITION) == (70, NO_SEQNO)


@pytest.mark.parametrize(
    ("at", "span", "upto"),
    [
        ({41: fragment(8, prev=6)}, (41, 42), 6),
        ({41: fragment(8, 1, prev=6)}, (41, 42), 8),
        ({}, (41, 42), 5),  # retention has deleted all: what the position names
        ({0: fragment(8, prev=6)}, (0, 42), NO_SEQNO),
    ],
)
def test_event_before_a_span_may_be_incomplete(at: dict[int, bytes], span: tuple[int, int], upto: int) -> None:
    assert Partition(at, *span).incomplete_upto({0: span}, HISTORY, POSITION) == upto
