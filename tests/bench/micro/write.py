"""Benchmarks from net changes to a target's input."""

from __future__ import annotations

from connector.log.compact.compact import Compactor
from connector.log.compact.net_changes import NetChanges
from connector.log.compact.scan import Scanner
from connector.targets.postgres.copy import copy_rows
from connector.targets.postgres.types import bit_count, copy_kind
from connector.targets.values import rows as decoded
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro


def _net() -> NetChanges:
    collapse = Compactor("thl.micro")
    held = 0
    for messages in Scanner("thl.micro").scan(inputs.batch(inputs.large_log())):
        for message in messages:
            held = collapse.add(message, held)
    return collapse.drain()[0]


@micro("row", inputs.LARGE)
def rows_to_copy() -> Work:
    """Writes PostgreSQL's binary COPY."""
    net = _net()
    columns = net.layout.columns
    kinds, bits = bytes(map(copy_kind, columns)), bytes(map(bit_count, columns))
    wanted = bytes([1]) * len(columns)
    return lambda: copy_rows(net.inserts.data, net.inserts.ends, 0, kinds, bits, wanted, ord("i"), 1 << 30)


@micro("row", inputs.LARGE)
def rows_to_bind() -> Work:
    """Makes tuples for SQLite's bindings."""
    net = _net()
    return lambda: decoded(net.inserts.data, net.inserts.ends, len(net.layout.columns))
