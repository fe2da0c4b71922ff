"""Requests to a log's producer, through the control topic: to go offline, and to load tables.

A request to go offline names the log's newest epoch. Only the process that began this epoch obeys; a producer that
begins later does not. The producer answers with the same record and the time. Neither record is part of the producer's
transactions. A request to load a table is answered by `TableLoad` records, which are.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from connector.background import in_background
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged, PreflightError
from connector.kafka.client import LOG, Refusals, checked_properties, failure, properties
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage, Property
from connector.kafka.records import Request, control_message, request_of

POLL_SECONDS: Final = 0.2  # seconds after which a listener checks for its end


def new_load_id() -> str:
    """The ID of a new load; random."""
    return secrets.token_hex(8)


def send_request(config: Config, request: Request) -> int:
    """Write a request, or the answer to one.

    Returns:
        Its offset in the control topic.

    Raises:
        BrokerUnavailable: Kafka did not confirm it.
        PreflightError: the brokers refuse access.
    """
    (offset,) = send_requests(config, [request])
    return offset


def send_requests(config: Config, requests: Sequence[Request]) -> list[int]:
    """Write requests in their order, with one producer.

    Returns:
        The offset of each in the control topic.

    Raises:
        BrokerUnavailable: Kafka did not confirm all of them: it may have some.
        PreflightError: the brokers refuse access.
    """
    reports: list[tuple[KafkaError | None, int]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        reports.append((error, message.offset() or 0))

    chosen = properties(config.kafka, acks="all", max_in_flight=1, message_timeout_ms=int(PATIENCE * 1000))
    refusals = Refusals()
    with checked_properties():
        producer = Producer({**chosen, "on_delivery": delivered, "error_cb": refusals}, logger=LOG)
    for request in requests:
        key, value = control_message(request)
        producer.produce(config.control_topic, value, key, 0)
    producer.flush(PATIENCE + 5)
    if error := next((error for error, _ in reports if error is not None), None):
        raise refusals.explain(failure(error, "a request cannot be written", topic=config.control_topic))
    if len(reports) < len(requests):
        raise refusals.explain(
            BrokerUnavailable("Kafka does not confirm a request in time", topic=config.control_topic)
        )
    return [offset for _, offset in reports]


@contextmanager
def listening(
    config: Config, start: int, listener: Callable[[Request], None], *, role: str = "reader"
) -> Iterator[None]:
    """Receive requests and answers while in the context, in a thread of its own.

    Args:
        config: the service and its brokers; requests written while they do not answer arrive afterwards.
        start: offset of the control topic to read from.
        listener: called with each request and answer, in the thread.
        role: as of `LogReader`.
    """
    with in_background("requests", partial(_listen, config, start, listener, role), leave=None):
        yield


def _listen(config: Config, start: int, listener: Callable[[Request], None], role: str, ended: Event) -> None:
    # Uncommitted: a producer's open transaction must not hide the requests after it.
    settings: dict[str, Property] = {"auto.offset.reset": "earliest", "enable.partition.eof": False}
    with KafkaConsumer(config.kafka, f"{config.topic}.{role}", committed=False, settings=settings) as consumer:
        consumer.assign(config.control_topic, {0: start})
        while not ended.is_set():
            try:
                message = consumer.poll(POLL_SECONDS)
            except (BrokerUnavailable, PreflightError) as error:
                LOG.debug("requests cannot be read for now: %s", error.message)
                continue
            if isinstance(message, KafkaMessage):
                try:
                    if (request := request_of(message.key or b"", message.value)) is not None:
                        listener(request)
                except LogDamaged as damaged:
                    LOG.error("a request to the producer cannot be read", extra={"why": damaged})
