"""Reads binary logs with the connector, and their rows with fastavro."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import fastavro

from connector.config.filters import Filters
from connector.config.source import Source
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.position import StreamStart
from connector.log.transaction.xa import Logged
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.events.column_names import ColumnNameResolver
from connector.mysql.binlog.frames import PacketFrames
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.server.dump import open_stream
from connector.mysql.transforms.filters import Filter
from tests.support.servers.environment import SqlServer

Image = list[Any] | None
ALL = Filter(Filters())


def _row_schema() -> Any:
    fragment = json.loads(Path("schemas/fragment.avsc").read_text())
    changes = next(field for field in fragment["fields"] if field["name"] == "changes")
    change = next(kind for kind in changes["type"]["items"] if kind["name"] == "RowChange")
    rows = next(field for field in change["fields"] if field["name"] == "rows")
    return fastavro.parse_schema(rows["type"]["items"])


ROW = _row_schema()


def images(rows: Rows) -> list[tuple[Image, Image]]:
    """Decodes before and after of every row; checks that the end offsets are those of the rows."""
    stream = io.BytesIO(rows.data)
    found = []
    for end in rows.ends:
        row = fastavro.schemaless_reader(stream, ROW, None)
        assert stream.tell() == end
        found.append((row["before"], row["after"]))
    assert stream.tell() == len(rows.data)
    return found


def changes(found: Iterable[Logged]) -> Iterator[Rows | Statement]:
    for piece in found:
        if isinstance(piece, TransactionBatch):
            yield from piece.changes


def row_changes(found: Iterable[Logged], table: str) -> list[tuple[str, Image, Image]]:
    """(action, before, after) of every row of a table."""
    return [
        (change.action.name, *image)
        for change in changes(found)
        if isinstance(change, Rows) and change.layout.name.table == table
        for image in images(change)
    ]


def whole_file(path: Path, *, batch_bytes: int = 1 << 20, filters: Filter = ALL) -> list[Logged]:
    reader = BinlogReader.from_file(path, filters=filters, service="test", batch_bytes=batch_bytes)
    found = []
    try:
        while not reader.ended:
            found += reader.read()
    finally:
        reader.close()
    return found


def source_of(server: SqlServer, **settings: Any) -> Source:
    return Source(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        **{"dump_heartbeat": 1.0} | settings,
    )


def reader_of_stream(
    stream: ByteSource, filters: Filter, *, batch_bytes: int = 1 << 20, resolver: ColumnNameResolver | None = None
) -> BinlogReader:
    """A reader of a server's dump."""
    return BinlogReader(
        stream, PacketFrames(), filters=filters, service="test", batch_bytes=batch_bytes, resolver=resolver
    )


def read_from(
    server: SqlServer,
    start: StreamStart,
    until: Callable[[list[Logged]], bool],
    *,
    batch_bytes: int = 1 << 20,
    filters: Filter = ALL,
    seconds: float = 60,
    **settings: Any,
) -> list[Logged]:
    """Reads a server's log until a condition on the items holds."""
    stream = open_stream(source_of(server, **settings), start)
    reader = reader_of_stream(stream, filters, batch_bytes=batch_bytes)
    found: list[Logged] = []
    deadline = time.monotonic() + seconds
    try:
        while not until(found):
            assert time.monotonic() < deadline, f"not there after {seconds} s; last: {found[-1:]}"
            found += reader.read()
    finally:
        reader.close()
    return found
