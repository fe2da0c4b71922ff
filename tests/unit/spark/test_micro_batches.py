"""What ends a stream is told to the applier, and not to Spark again."""

from __future__ import annotations

import traceback

import pytest

from connector.spark.stream.handover import Handover
from connector.spark.stream.micro_batches import MicroBatches, Told


class Frame:
    """A batch that cannot be collected; the error is as long as a plan is."""

    def toArrow(self) -> None:  # noqa: N802 (Spark's name)
        raise ValueError("a plan " * 20_000)


def test_a_failure_is_told_once_and_in_full() -> None:
    handover = Handover(1, 1)
    stream = MicroBatches.__new__(MicroBatches)
    stream._handover = handover
    with pytest.raises(Told) as raised:
        stream._take(Frame(), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a plan"):
        handover.get(0)
    # Spark's expression takes some stack for every character of it.
    assert len("".join(traceback.format_exception(raised.value))) < 4_000
