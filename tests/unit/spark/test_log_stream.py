"""What the stream does without Spark: no message is lost or given twice, and each partition has a task slot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from connector.config.model import Config
from connector.spark.stream.stream import LogStream


def stream(**parts: Any) -> LogStream:
    made = LogStream.__new__(LogStream)
    vars(made).update(_config=Config(), **parts)
    return made


def messages(partition: int, *offsets: int) -> pa.Table:
    return pa.table(
        {
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "value": pa.array([b"x"] * len(offsets), pa.binary()),
        }
    )


def offsets_of(found: pa.Table | None) -> list[int]:
    return [] if found is None else found["offset"].to_pylist()


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
    assert offsets_of(one._unseen(messages(1, *read))) == unseen
    assert one._offsets == {0: 2, 1: max([5, *(offset + 1 for offset in unseen)])}
    assert offsets_of(one._unseen(messages(1, *read))) == []


def test_chunks_of_several_partitions_have_offsets_of_their_own() -> None:
    one = stream(_offsets={0: 2, 1: 5})
    both = pa.concat_tables([messages(1, 4, 5), messages(0, 2, 3), messages(1, 6)])
    assert offsets_of(one._unseen(both)) == [5, 2, 3, 6]
    assert one._offsets == {0: 4, 1: 7}


@pytest.mark.parametrize(("slots", "sufficient"), [(2, False), (3, False), (4, True)])
def test_continuous_mode_needs_a_slot_more_than_partitions(slots: int, sufficient: bool) -> None:
    one = stream(_offsets=dict.fromkeys(range(3), 0), _session=SimpleNamespace(slots=slots))
    assert one._slots_suffice() is sufficient
