"""Heartbeats: written on the source at intervals, and known again in what it logs.

An event that a heartbeat made is a transaction like any other, and has its name as `heartbeat` in its metadata, as
Tungsten's has. So targets keep the table like any other, too.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import fastavro

from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError
from connector.log.format.header import HEARTBEAT
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, TransactionBatch, TransactionStart
from connector.log.transaction.definition import Item
from connector.mysql.server.heartbeat_table import heartbeat_table, write_heartbeat
from connector.schema import fragment_schema

LOG: Final = logging.getLogger(__name__)
LEAVE: Final = 1.0
ONLINE, INTERVAL = "online", "interval"  # names of what the producer writes itself


class Marker:
    """Marks the events that heartbeats of this service are.

    Args:
        config: the service, and its table.

    Raises:
        ConfigError: the table is none, or not published.
    """

    def __init__(self, config: Config) -> None:
        self._service = config.service
        table = heartbeat_table(config.source)
        self._table = (table.schema.lower(), table.table.lower())  # some servers keep names so
        self._row = fastavro.parse_schema(_row_schema())

    def marked(self, items: list[Item]) -> list[Item]:
        """The same, pieces that are heartbeats with their names."""
        return [self._marked(item) if isinstance(item, TransactionBatch) else item for item in items]

    def _marked(self, piece: TransactionBatch) -> TransactionBatch:
        begin = piece.begin
        if begin is None or piece.ending is None or not 1 <= len(piece.changes) <= 2:
            return piece
        insert = piece.changes[-1]
        if not isinstance(insert, Rows) or insert.action is not Action.INSERT or insert.count != 1:
            return piece
        name = insert.layout.name
        if (name.schema.lower(), name.table.lower()) != self._table:
            return piece
        found: Any = fastavro.schemaless_reader(io.BytesIO(bytes(insert.data)), self._row, None)
        values = dict(zip((column.name for column in insert.layout.columns), found["after"], strict=False))
        if values.get("service") != self._service:
            return piece
        told = TransactionStart(
            begin.server_id,
            begin.thread_id,
            begin.gtid,
            begin.last_committed,
            begin.sequence_number,
            begin.start,
            begin.kind,
            {**begin.metadata, HEARTBEAT: str(values.get("name", ""))},
        )
        return TransactionBatch(told, piece.changes, piece.ending)


@contextmanager
def heartbeats(config: Config) -> Iterator[None]:
    """Write one now, and one at every interval, while in the context; none where no interval is configured.

    A source that cannot be written to for a while gets none for that while: it is no reason not to read it.

    Raises:
        ConfigError: there is an interval and no table for it.
    """
    interval = config.source.heartbeat_interval
    if interval is None:
        yield
        return
    _beat(config, ONLINE)
    ended = Event()

    def at_intervals() -> None:
        while not ended.wait(interval):
            _beat(config, INTERVAL)

    thread = Thread(target=at_intervals, name="heartbeats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LEAVE)  # no longer: a source that does not answer keeps no producer that is told to stop


def _beat(config: Config, name: str) -> None:
    try:
        write_heartbeat(config.source, config.service, name)
    except ConfigError:
        raise
    except ConnectorError as error:
        LOG.warning("no heartbeat could be written", extra={"service": config.service, "why": error})


def _row_schema() -> Any:
    """The record of a row, of schemas/fragment.avsc."""
    changes = next(field for field in fragment_schema()["fields"] if field["name"] == "changes")
    change = next(branch for branch in changes["type"]["items"] if branch["name"] == "RowChange")
    return next(field for field in change["fields"] if field["name"] == "rows")["type"]["items"]
