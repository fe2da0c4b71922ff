"""What brokers do not send ends with the reason; tests/contract/test_range_reader.py reads from brokers."""

from __future__ import annotations

from contextlib import closing

import pytest

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka import arrow_reader, large_messages
from connector.kafka.range_reader import PATIENCE, RangeReader
from connector.sandbox.ports import free_port
from tests.support.clock import Slept


class UntilRefused(Slept):
    """A clock whose patience ends once the connection was refused."""

    reader: RangeReader

    def monotonic(self) -> float:
        return PATIENCE + 1 if "cause" in self.reader._consumer.silent("").where else 0.0


def test_brokers_that_do_not_answer_are_reported_with_the_reason() -> None:
    clock = UntilRefused()
    kafka = Kafka(bootstrap=f"127.0.0.1:{free_port()}")
    with closing(RangeReader(kafka, "t", clock)) as reader:
        clock.reader = reader
        with pytest.raises(BrokerUnavailable, match="sends no more messages") as refused:
            list(reader.batches(0, 3, 9))
    assert (refused.value.where["at"], refused.value.where["begin"]) == ("t-0", 3)
    assert "Connect" in str(refused.value.where["cause"])


def test_a_range_that_nobody_waits_for_ends_in_a_second() -> None:
    kafka, asked = Kafka(bootstrap=f"127.0.0.1:{free_port()}"), iter([False, True])
    with closing(RangeReader(kafka, "t", Slept(), lambda: next(asked))) as reader, pytest.raises(BrokerUnavailable):
        list(reader.batches(0, 3, 9))


def test_every_reader_that_waits_in_vain_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka(bootstrap=f"127.0.0.1:{free_port()}")
    for module in (arrow_reader, large_messages):
        monkeypatch.setattr(module, "PATIENCE", 1.0)
    with arrow_reader.ArrowReader(kafka, "t", {0: 3}) as reader, pytest.raises(BrokerUnavailable) as refused:
        reader.next()
    assert "Connect" in str(refused.value.where["cause"])
    with large_messages.LargeMessages(kafka, "t") as large, pytest.raises(BrokerUnavailable) as refused:
        large.fetch(0, 3)
    assert refused.value.where["at"] == "t-0@3"
    assert "Connect" in str(refused.value.where["cause"])
