"""When Kafka's refusal means a newer producer; tests/integration/producer/test_produce_source.py has a real one."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, Fenced
from connector.kafka.transactions import Transactions
from tests.support.clock import Slept


class RefusedProducer:
    """Kafka refuses it as an older one in every step but `begin_transaction`."""

    def begin_transaction(self) -> None:
        """Nothing is asked of the brokers."""

    def init_transactions(self, seconds: float) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    commit_transaction = abort_transaction = init_transactions

    def poll(self, seconds: float) -> int:
        return 0

    flush = poll

    def __len__(self) -> int:
        return 0


def refused(clock: Slept, **properties: str) -> Transactions:
    made = Transactions(Config(service="s", kafka=Kafka(properties=properties)), clock)
    stub: Any = RefusedProducer()
    made._producer = stub
    return made


@pytest.mark.parametrize(
    ("properties", "seconds", "error"),
    [
        ({}, 59.9, Fenced),
        ({}, 60, BrokerUnavailable),
        ({"transaction.timeout.ms": "5000"}, 4.9, Fenced),
        ({"transaction.timeout.ms": "5000"}, 5, BrokerUnavailable),
    ],
)
def test_refused_commit_of_a_transaction_that_outlived_its_timeout_is_no_fencing(
    properties: dict[str, str], seconds: float, error: type[Exception]
) -> None:
    clock = Slept(100.0)
    transactions = refused(clock, **properties)
    transactions.begin()
    clock.sleep(seconds)
    with pytest.raises(error):
        transactions.commit()


def test_refusal_before_the_first_transaction_is_a_fencing() -> None:
    clock = Slept(100.0)
    transactions = refused(clock)
    clock.sleep(1000)
    with pytest.raises(Fenced):
        transactions.open()
