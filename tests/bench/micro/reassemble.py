"""Benchmarks from a batch of messages to net changes."""

from __future__ import annotations

from connector.log.compact.compact import Compactor
from connector.log.compact.scan import Messages, Scanner
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import TargetPosition
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro

ALL = 1 << 62


@micro("message", inputs.SMALL)
def scan_headers() -> Work:
    """Reads checksum and header of small events."""
    batch, scanner = inputs.batch(inputs.small_log()), Scanner("thl.micro")
    return lambda: scanner.scan(batch)


@micro("event", inputs.SMALL)
def ledger_run() -> Work:
    """Events that follow the first one, taken and released at once."""
    (messages,) = _scanned(inputs.small_log())
    first, run = messages.message(0), messages.since(1).event_range()

    def work() -> int:
        sequencer = EventSequencer[object, Messages](
            topic="thl.micro", partitions=1, position=TargetPosition(service="micro")
        )
        sequencer.accept(first.header, first.partition, first.offset, first)
        if not sequencer.accept_range(run):
            raise AssertionError("the events of the benchmark are no run")
        return len(sequencer.release())

    return work


@micro("row", inputs.SMALL_ROWS)
def collapse_small() -> Work:
    scanned, collapse = _scanned(inputs.small_log()), Compactor("thl.micro")

    def work() -> object:
        for messages in scanned:
            collapse.add_range(messages, 0, len(messages), ALL, ALL)
        return collapse.drain()

    return work


@micro("row", inputs.LARGE)
def collapse_large() -> Work:
    scanned, collapse = _scanned(inputs.large_log()), Compactor("thl.micro")

    def work() -> object:
        rows = 0
        for messages in scanned:
            for message in messages:
                rows = collapse.add(message, rows)
        return collapse.drain()

    return work


def _scanned(log: bytes) -> list[Messages]:
    return list(Scanner("thl.micro").scan(inputs.batch(log)))
