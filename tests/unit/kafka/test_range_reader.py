"""A range that brokers do not send ends with the reason; tests/contract/test_range_reader.py reads from brokers."""

from __future__ import annotations

from contextlib import closing

import pytest

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka.range_reader import PATIENCE, RangeReader
from connector.sandbox.ports import free_port
from tests.support.clock import Slept


class UntilRefused(Slept):
    """A clock whose patience ends once the connection was refused."""

    reader: RangeReader

    def monotonic(self) -> float:
        return PATIENCE + 1 if self.reader._consumer.unreached else 0.0


def test_brokers_that_do_not_answer_are_reported_with_the_reason() -> None:
    clock = UntilRefused()
    kafka = Kafka(bootstrap=f"127.0.0.1:{free_port()}")
    with closing(RangeReader(kafka, "t", clock)) as reader:
        clock.reader = reader
        with pytest.raises(BrokerUnavailable, match="sends no more messages") as refused:
            list(reader.batches(0, 3, 9))
    assert (refused.value.where["at"], refused.value.where["begin"]) == ("t-0", 3)
    assert "Connect" in str(refused.value.where["cause"])
