"""Benchmarks from fragments to librdkafka."""

from __future__ import annotations

from unittest import mock

from confluent_kafka import Producer

from connector.clock import SystemClock
from connector.config.model import Config
from connector.kafka import transactions
from connector.kafka.records import position_message
from connector.kafka.transactions import Transactions
from connector.log.writing.progress import Progress
from connector.producer.publish.queue import WorkQueue
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro

MESSAGES = 200
VALUE = bytes(300)


@micro("work", 100)
def work_queue() -> Work:
    """One thread puts, another takes, without waiting."""
    queue = WorkQueue(64 << 20)
    work = list(inputs.fragments(inputs.small_log()))

    def run() -> None:
        for _ in range(100):
            queue.put(list(work))
            queue.poll(0.0)

    return run


@micro("message", MESSAGES)
def send_to_nothing() -> Work:
    """The connector's part of producing: the producer accepts everything and does nothing."""
    with mock.patch.object(transactions, "Producer", _Nothing):
        sending = Transactions(Config(), SystemClock())
    return lambda: [sending.send("thl.micro", 0, b"s", VALUE) for _ in range(MESSAGES)]


@micro("message", MESSAGES, counted=False)
def send_to_librdkafka() -> Work:
    """Producing into librdkafka, without a broker and without a transaction."""
    producer = Producer({"test.mock.num.brokers": 1, "linger.ms": 5, "compression.type": "lz4"})

    def work() -> None:
        for _ in range(MESSAGES):
            producer.produce("thl.micro", VALUE, b"s", 0)
        producer.flush(10)

    return work


@micro("record")
def position_as_message() -> Work:
    progress = Progress(inputs.nowhere())
    for fragment in inputs.fragments(inputs.small_log()):
        progress.accept(fragment)
    progress.snapshot_ended(f"{inputs.UUID}:1-1000000")
    return lambda: position_message(progress.record())


class _Nothing:
    """A producer that accepts everything."""

    def __init__(self, *arguments: object, **named: object) -> None:
        pass

    def produce(self, *arguments: object, **named: object) -> None:
        pass
