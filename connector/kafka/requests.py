"""Asking a log's producer to go offline, through its control topic: whoever reaches Kafka reaches the producer.

A request names the log's newest epoch, and only the process that began that epoch obeys: one that begins later is not
meant. The answer is the same record again, with the time. Neither is part of a Kafka transaction of the producer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged, PreflightError
from connector.kafka.client import LOG, checked_properties, failure, properties
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage, Property
from connector.kafka.records import OFFLINE_KEY, control_message, offline_request
from connector.log.writing.control import OfflineRequest

LOOK: Final = 0.2  # seconds after which a listener sees that it is to end


def send_request(config: Config, request: OfflineRequest) -> int:
    """Write a request, or an answer.

    Returns:
        Its offset in the control topic.

    Raises:
        BrokerUnavailable: it is not known to be written.
        PreflightError: the brokers refuse us.
    """
    told: list[tuple[KafkaError | None, int]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        told.append((error, message.offset() or 0))

    chosen = properties(config.kafka, acks="all", message_timeout_ms=int(PATIENCE * 1000))
    with checked_properties():
        producer = Producer({**chosen, "on_delivery": delivered}, logger=LOG)
    key, value = control_message(request)
    producer.produce(config.control_topic, value, key, 0)
    producer.flush(PATIENCE + 5)
    if not told:
        raise BrokerUnavailable("Kafka does not take a request", topic=config.control_topic)
    error, offset = told[0]
    if error is not None:
        raise failure(error, "a request cannot be written", topic=config.control_topic)
    return offset


@contextmanager
def listening(config: Config, start: int, heard: Callable[[OfflineRequest], None]) -> Iterator[None]:
    """Hear requests and answers while in the context, in a thread of its own.

    Args:
        config: the service and its brokers; while they are gone nothing is heard, and all of it afterwards.
        start: from which offset of the control topic on.
        heard: called with each, in the thread.
    """
    ended = Event()
    thread = Thread(target=_listen, args=(config, start, heard, ended), name="requests", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _listen(config: Config, start: int, heard: Callable[[OfflineRequest], None], ended: Event) -> None:
    # Uncommitted: what a producer has begun and not decided is not to hide what stands behind it.
    settings: dict[str, Property] = {"auto.offset.reset": "earliest", "enable.partition.eof": False}
    with KafkaConsumer(config.kafka, f"{config.topic}.producer", committed=False, settings=settings) as consumer:
        consumer.assign(config.control_topic, {0: start})
        while not ended.is_set():
            try:
                message = consumer.poll(LOOK)
            except (BrokerUnavailable, PreflightError) as error:
                LOG.debug("requests cannot be read for now: %s", error.message)
                continue
            if isinstance(message, KafkaMessage) and message.key == OFFLINE_KEY:
                try:
                    heard(offline_request(message.value or b""))
                except LogDamaged as damaged:
                    LOG.error("what was asked of the producer cannot be read", extra={"why": damaged})
