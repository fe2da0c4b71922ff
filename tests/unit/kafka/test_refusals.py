"""A lost connection is reported with the brokers' refusal, as long as they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, ConfigError
from connector.kafka.client import Refusals, admin_client

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "Authentication failed")


class Client:
    """Runs its error callback when it is polled."""

    def __init__(self, refusals: Refusals) -> None:
        self.refusals = refusals
        self.waiting: list[KafkaError] = []
        self.assigned: list[int] = []

    def assignment(self) -> list[int]:
        return self.assigned

    def poll(self, timeout: float) -> None:
        assert timeout == 0
        while self.waiting:
            self.refusals(self.waiting.pop(0))


@pytest.fixture
def client() -> Any:
    return Client(Refusals())


def asked(client: Any, code: int | None = None) -> object:
    """The error code that a call reports, which fails with `code`; None if it succeeds."""
    try:
        with client.refusals.asking(client, "nothing is read", topic="t"):
            if code is not None:
                raise KafkaException(KafkaError(code, "Local: no answer"))
    except BrokerUnavailable as error:
        assert error.where["topic"] == "t"
        return error.where["code"]
    return None


def test_a_lost_connection_is_reported_with_the_refusal_that_caused_it(client: Any) -> None:
    client.waiting = [REFUSED]
    for _ in range(2):  # it is refused still, though librdkafka may not have tried again
        assert asked(client, KafkaError._TRANSPORT) == REFUSED.name()
    assert asked(client, KafkaError.UNKNOWN_TOPIC_OR_PART) == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize("polled", [True, False])
def test_an_answered_call_ends_a_refusal(client: Any, polled: bool) -> None:
    client.waiting = [REFUSED]
    if polled:
        client.poll(0)
    assert asked(client) is None
    assert asked(client, KafkaError._TIMED_OUT) == "_TIMED_OUT"


def test_a_consumer_with_an_assignment_is_not_polled(client: Any) -> None:
    client.assigned, client.waiting = [0], [REFUSED]
    assert asked(client) is None
    assert client.waiting == [REFUSED]


def test_another_connection_error_is_not_a_refusal(client: Any) -> None:
    client.waiting = [KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down")]
    assert asked(client, KafkaError._TRANSPORT) == "_TRANSPORT"


def test_the_reason_is_that_of_the_refusal_until_it_is_forgotten() -> None:
    refusals = Refusals()
    assert refusals.reason == ""
    refusals(KafkaError(KafkaError._TRANSPORT, "Connection refused"))
    assert refusals.reason == "Connection refused"
    refusals(REFUSED)
    assert refusals.reason == "Authentication failed"
    refusals.forget()
    assert refusals.reason == ""


def test_sasl_without_a_mechanism_names_the_property() -> None:
    """librdkafka's default, Kerberos, is not in its wheels, and its own words speak of compiling it."""
    with pytest.raises(ConfigError, match="GSSAPI") as raised:
        admin_client(Kafka(properties={"security.protocol": "SASL_SSL"}))
    assert "kafka.properties.sasl.mechanism" in raised.value.hint
