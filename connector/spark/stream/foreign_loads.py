"""Leaves the rows of loads for other targets out of what a task returns.

Their events move a target's position, for which the driver needs their headers alone. Whole events are in segments,
which have no rows of them; these are the messages that stay messages, and large ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from connector.kafka.large_messages import LARGE
from connector.kafka.message_batch import message_batch
from connector.log.compact.scan import Messages
from connector.log.compact.without_rows import without_rows


class ForeignLoads:
    """Shortens the messages of one range.

    Args:
        target: the ID of the target that they are applied to, as that of `for_others`.

    Attributes:
        left_out: the bytes that were left out.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.left_out = 0

    def large(self, value: bytes) -> bytes | None:
        """Return a large message without its rows; None if it is not of a load for other targets."""
        short = without_rows(value, self._target)
        if short is not None:
            self.left_out += LARGE - len(short)  # what a large message counts
        return short

    def without_rows(self, batch: pa.RecordBatch, found: Sequence[Messages | int]) -> pa.RecordBatch:
        """Return a batch whose messages of loads for other targets have no rows.

        Args:
            batch: columns partition, offset, value.
            found: its messages as they were scanned; for large ones that follow each other their number.
        """
        values: list[Any] = batch["value"].to_pylist()
        partitions: Any = batch["partition"].to_pylist()
        offsets: Any = batch["offset"].to_pylist()
        at = 0
        for messages in found:
            if isinstance(messages, int):
                at += messages
                continue
            for index in range(len(messages)):
                if messages.for_others(index):
                    short = without_rows(values[at + index], self._target)
                    self.left_out += len(values[at + index]) - len(short or b"")
                    values[at + index] = short
            at += len(messages)
        return message_batch(partitions, offsets, values)
