"""Benchmarks from transaction batches to fragments."""

from __future__ import annotations

from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableLayout
from connector.producer.encode.fragment import EventHeader, FragmentWriter
from connector.schema import single_object_header
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro


@micro("event", inputs.SMALL)
def small_events() -> Work:
    """Five changes of one row each: one fragment."""
    pieces, encoder = inputs.pieces(inputs.small_log()), inputs.encoder()
    return lambda: [encoder.encode(piece) for piece in pieces]


@micro("row", inputs.LARGE)
def large_event() -> Work:
    """One event that is cut into fragments."""
    pieces, encoder = inputs.pieces(inputs.large_log()), inputs.encoder()
    return lambda: [encoder.encode(piece) for piece in pieces]


@micro("fragment", 100)
def fragment_writer() -> Work:
    """Five changes with known headers, written with their checksum."""
    writer = FragmentWriter(single_object_header(), "db:3306")
    head = EventHeader(1, 1, 0, "s", 0, -1, 1, 7, "3e11fa47-71ca-11e1-9e33-c80aa9429562:23", 4, 5, b"\x00")
    head.end("binlog.000001:0000000000002081;7", 1_700_000_000_000_000, 0)
    rows = [change for change in inputs.pieces(inputs.small_log())[0].changes if isinstance(change, Rows)]
    changes: list[object] = [(_some_head(rows[0].layout), 1, change.data, 0, len(change.data)) for change in rows]
    return lambda: [writer.write(head, 0, True, 5, changes) for _ in range(100)]


def _some_head(layout: TableLayout) -> bytes:
    """Bytes of the length of a change's header."""
    return bytes(20 * len(layout.columns))
