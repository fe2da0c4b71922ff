"""What the stream does without Spark: no message is lost or given twice, and each partition has a task slot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from connector.config.model import Config
from connector.kafka.message_batch import message_batch
from connector.log.compact.segment import Unread
from connector.spark.stream.parts import Batch
from connector.spark.stream.stream import LogStream


def stream(**parts: Any) -> LogStream:
    made = LogStream.__new__(LogStream)
    vars(made).update(_config=Config(), **parts)
    return made


def messages(partition: int, *offsets: int) -> pa.RecordBatch:
    return message_batch([partition] * len(offsets), offsets, [b"x"] * len(offsets))


def offsets_of(found: Batch | None) -> list[int]:
    parts = [] if found is None else found.parts
    return [offset for part in parts if isinstance(part, pa.RecordBatch) for offset in part["offset"].to_pylist()]


@pytest.mark.parametrize(
    ("read", "unseen"),
    [
        ((3, 4, 5, 6, 7), [5, 6, 7]),  # the other mode returned those before 5
        ((4, 5), [5]),
        ((3, 4), []),
        ((4, 6), [6]),  # 5 is a marker of a Kafka transaction
        ((5, 6), [5, 6]),
        ((6, 7), [6, 7]),
        ((), []),
    ],
)
def test_messages_read_by_both_modes_are_returned_once(read: tuple[int, ...], unseen: list[int]) -> None:
    one = stream(_offsets={0: 2, 1: 5})
    assert offsets_of(one._unseen(Batch.of([messages(1, *read)]))) == unseen
    assert one._offsets == {0: 2, 1: max([5, *(offset + 1 for offset in unseen)])}
    assert offsets_of(one._unseen(Batch.of([messages(1, *read)]))) == []


def test_chunks_of_several_partitions_have_offsets_of_their_own() -> None:
    one = stream(_offsets={0: 2, 1: 5})
    both = Batch.of([messages(1, 4, 5), messages(0, 2, 3), messages(1, 6)])
    assert offsets_of(one._unseen(both)) == [5, 2, 3, 6]
    assert one._offsets == {0: 4, 1: 7}


def test_what_a_task_has_made_of_messages_is_returned_whole_once() -> None:
    """A part of it cannot be left out; the log's reader refuses it if it overlaps with what was read."""
    one = stream(_offsets={0: 5})
    segment, overlapping = Unread(0, 5, 9, 3, 300), Unread(0, 8, 12, 4, 400)
    assert one._unseen(Batch.of([segment])) == Batch([segment], 3, 300)
    assert one._unseen(Batch.of([segment])) is None
    assert one._unseen(Batch.of([overlapping])) == Batch([overlapping], 4, 400)
    assert one._offsets == {0: 12}


@pytest.mark.parametrize(("slots", "sufficient"), [(2, False), (3, False), (4, True)])
def test_continuous_mode_needs_a_slot_more_than_partitions(slots: int, sufficient: bool) -> None:
    one = stream(_offsets=dict.fromkeys(range(3), 0), _session=SimpleNamespace(slots=slots))
    assert one._slots_suffice() is sufficient
