"""The applier gets the error that ends a query; Spark gets a short one."""

from __future__ import annotations

import traceback

import pytest

from connector.spark.stream.handover import Handover
from connector.spark.stream.micro_batches import MicroBatches, Reported

FAILURE = ValueError("a plan " * 20_000)


class Frame:
    """A batch whose plan cannot be made; the error is as long as a plan is."""

    @property
    def _jdf(self) -> None:
        raise FAILURE


def test_a_failed_batch_reaches_the_applier_in_full_and_spark_in_short() -> None:
    handover = Handover(1, 1)
    stream = MicroBatches.__new__(MicroBatches)
    stream._handover = handover
    with pytest.raises(Reported) as raised:
        stream._accept(Frame(), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as reported:
        handover.get(0)
    assert reported.value is FAILURE
    # Spark's expression takes some stack for every character of it.
    assert len("".join(traceback.format_exception(raised.value))) < 4_000
