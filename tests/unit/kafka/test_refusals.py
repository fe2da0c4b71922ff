"""Why the brokers did not let us in is told as long as they do not, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from connector.errors import BrokerUnavailable
from connector.kafka.client import Refusals

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "Authentication failed")


class Client:
    """Tells of its connections when it is polled."""

    def __init__(self, refusals: Refusals) -> None:
        self.refusals = refusals
        self.untold: list[KafkaError] = []
        self.assigned: list[int] = []

    def assignment(self) -> list[int]:
        return self.assigned

    def poll(self, timeout: float) -> None:
        assert timeout == 0
        while self.untold:
            self.refusals(self.untold.pop(0))


@pytest.fixture
def client() -> Any:
    return Client(Refusals())


def asked(client: Any, code: int | None = None) -> str:
    """What a call that fails so is told as."""
    try:
        with client.refusals.asking(client, "nothing is read", topic="t"):
            if code is not None:
                raise KafkaException(KafkaError(code, "Local: no answer"))
    except BrokerUnavailable as error:
        return error.message
    return ""


def test_a_lost_connection_is_told_with_the_refusal_that_it_comes_from(client: Any) -> None:
    client.untold = [REFUSED]
    for _ in range(2):  # it is refused still, though librdkafka may not have tried again
        assert asked(client, KafkaError._TRANSPORT) == "nothing is read: Authentication failed"
    assert asked(client, KafkaError.UNKNOWN_TOPIC_OR_PART) == "nothing is read: Local: no answer"


@pytest.mark.parametrize("told", [True, False])
def test_a_refusal_is_over_once_a_call_was_answered(client: Any, told: bool) -> None:
    client.untold = [REFUSED]
    if told:
        client.poll(0)
    assert asked(client) == ""
    assert asked(client, KafkaError._TIMED_OUT) == "nothing is read: Local: no answer"


def test_a_consumer_that_is_reading_is_not_polled_for_it(client: Any) -> None:
    client.assigned, client.untold = [0], [REFUSED]
    assert asked(client) == ""
    assert client.untold == [REFUSED]


def test_other_troubles_of_a_connection_are_no_refusals(client: Any) -> None:
    client.untold = [KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down")]
    assert asked(client, KafkaError._TRANSPORT) == "nothing is read: Local: no answer"
