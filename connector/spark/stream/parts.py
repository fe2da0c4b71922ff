"""The parts of a batch: segments, offsets that a task has left to the driver, messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from connector.kafka.large_messages import LARGE
from connector.log.compact.segment import Segment, Unread

Part = Segment | Unread | pa.RecordBatch
"""A batch has the columns partition, offset, value; a null value stands for a large message, which is fetched when it
is applied. Its messages are of one partition, but for a batch of a relay, which is in the order of the log: that waits
under the partition of its first message, and the scan divides it."""


def partition_of(part: Part) -> int:
    """The partition of a part; of a relay's batch that of its first message."""
    return part["partition"][0].as_py() if isinstance(part, pa.RecordBatch) else part.partition


def begin_of(part: Part) -> int:
    """The offset of a part's first message."""
    return part["offset"][0].as_py() if isinstance(part, pa.RecordBatch) else part.begin


def end_of(part: Part) -> int:
    """The offset after a part's last message."""
    return part["offset"][part.num_rows - 1].as_py() + 1 if isinstance(part, pa.RecordBatch) else part.end


def since(part: Part, offset: int) -> Part | None:
    """The messages of a part from an offset on; None if there are none.

    A segment counts whole, or not at all: where it begins before the offset, the reader of the partition refuses it.
    """
    if end_of(part) <= offset:
        return None
    if not isinstance(part, pa.RecordBatch) or begin_of(part) >= offset:
        return part
    offsets: Any = part["offset"].to_pylist()
    return part.slice(bisect_left(offsets, offset))


def size_of(part: Part) -> int:
    """The bytes of a part's messages. Of a large one that is not in its batch only this is known, that it is large."""
    return part.nbytes + part["value"].null_count * LARGE if isinstance(part, pa.RecordBatch) else part.size


@dataclass(frozen=True, slots=True)
class Batch:
    """Parts that were read together, those of each partition in order.

    Args:
        parts: the parts; none is empty.
        messages: the number of their messages.
        size: the bytes of their messages; a segment has fewer, and tasks have left some out.
        full: there were more messages than are read at once.
        events: the number of the events in segments.
    """

    parts: Sequence[Part]
    messages: int
    size: int
    full: bool = False
    events: int = 0

    @classmethod
    def of(cls, parts: Iterable[Part], *, full: bool = False, left_out: int = 0) -> Batch:
        """The batch of some parts; `left_out`: the bytes of their messages that tasks have left out."""
        found = [part for part in parts if not isinstance(part, pa.RecordBatch) or part.num_rows]
        messages = sum(part.num_rows if isinstance(part, pa.RecordBatch) else part.messages for part in found)
        size = sum(map(size_of, found)) + left_out
        return cls(found, messages, size, full, sum(len(part) for part in found if isinstance(part, Segment)))
