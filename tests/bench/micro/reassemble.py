"""From a batch of messages to net operations."""

from __future__ import annotations

from connector.reassemble.collapse import Collapse
from connector.reassemble.scan import Scanner
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro


@micro("message", inputs.SMALL)
def scan_headers() -> Work:
    """Checksum and header of small events."""
    batch, scanner = inputs.batch(inputs.small_log()), Scanner("thl.micro")
    return lambda: scanner.scan(batch)


@micro("row", inputs.SMALL_ROWS)
def collapse_small() -> Work:
    return _collapse(inputs.small_log())


@micro("row", inputs.LARGE)
def collapse_large() -> Work:
    return _collapse(inputs.large_log())


def _collapse(log: bytes) -> Work:
    messages, collapse = Scanner("thl.micro").scan(inputs.batch(log)), Collapse("thl.micro")

    def work() -> object:
        for run in messages:
            collapse.add_run(run, 0, len(run), 1 << 40, 1 << 40)
        return collapse.take()

    return work
