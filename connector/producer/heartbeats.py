"""Heartbeats: rows written on the source at intervals, whose events carry the heartbeat's name in the log.

An event of a heartbeat is a transaction like any other, with the heartbeat's name as `heartbeat` in its metadata, as in
Tungsten. So targets keep the table like any other, too.
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


class HeartbeatLabels:
    """Adds the name of a heartbeat to the metadata of its event, for the heartbeats of this service.

    Args:
        config: the service and its heartbeat table.

    Raises:
        ConfigError: the name is no table's, or the table is not published.
    """

    def __init__(self, config: Config) -> None:
        self._service = config.service
        table = heartbeat_table(config.source)
        self._table = (table.schema.lower(), table.table.lower())  # some servers keep names in lower case
        self._row = fastavro.parse_schema(_row_schema())

    def labelled(self, items: list[Item]) -> list[Item]:
        """The items; each batch that is a heartbeat has its name in the metadata."""
        return [self._labelled(item) if isinstance(item, TransactionBatch) else item for item in items]

    def _labelled(self, batch: TransactionBatch) -> TransactionBatch:
        begin = batch.begin
        if begin is None or batch.ending is None or not 1 <= len(batch.changes) <= 2:
            return batch
        insert = batch.changes[-1]
        if not isinstance(insert, Rows) or insert.action is not Action.INSERT or insert.count != 1:
            return batch
        name = insert.layout.name
        if (name.schema.lower(), name.table.lower()) != self._table:
            return batch
        found: Any = fastavro.schemaless_reader(io.BytesIO(bytes(insert.data)), self._row, None)
        values = dict(zip((column.name for column in insert.layout.columns), found["after"], strict=False))
        if values.get("service") != self._service:
            return batch
        begin = TransactionStart(
            begin.server_id,
            begin.thread_id,
            begin.gtid,
            begin.last_committed,
            begin.sequence_number,
            begin.start,
            begin.kind,
            {**begin.metadata, HEARTBEAT: str(values.get("name", ""))},
        )
        return TransactionBatch(begin, batch.changes, batch.ending)


@contextmanager
def heartbeats(config: Config) -> Iterator[None]:
    """Write a heartbeat now, and one at every interval, while in the context; none where no interval is configured.

    While the source refuses writes no heartbeat is written; reading goes on.

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
        thread.join(LEAVE)  # seconds: a source that does not answer must not keep the producer from stopping


def _beat(config: Config, name: str) -> None:
    try:
        write_heartbeat(config.source, config.service, name)
    except ConfigError:
        raise
    except ConnectorError as error:
        LOG.warning("no heartbeat could be written", extra={"service": config.service, "why": error})


def _row_schema() -> Any:
    """The Avro record of a row, in schemas/fragment.avsc."""
    changes = next(field for field in fragment_schema()["fields"] if field["name"] == "changes")
    change = next(branch for branch in changes["type"]["items"] if branch["name"] == "RowChange")
    return next(field for field in change["fields"] if field["name"] == "rows")["type"]["items"]
