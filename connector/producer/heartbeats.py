"""Writes heartbeat rows on the source at intervals, and labels their events with the heartbeat's name.

A heartbeat's event is an ordinary transaction with the name as `heartbeat` in its metadata, as in Tungsten. So targets
replicate the heartbeat table, too.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, Final

import fastavro

from connector.background import in_background
from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError
from connector.log.format.header import HEARTBEAT
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, TransactionBatch, TransactionStart
from connector.log.transaction.definition import Item
from connector.mysql.server.heartbeat_table import heartbeat_table, write_heartbeat
from connector.schema import fragment_schema

LOG: Final = logging.getLogger(__name__)
POLL: Final = 0.2
ONLINE, INTERVAL = "online", "interval"  # names of the producer's own heartbeats


class HeartbeatLabels:
    """Adds the name of each heartbeat of this service to the metadata of its event.

    Args:
        config: the service and its heartbeat table.

    Raises:
        ConfigError: source.heartbeat_table is not a table name, or the table is not published.
    """

    def __init__(self, config: Config) -> None:
        self._service = config.service
        table = heartbeat_table(config.source)
        self._table = (table.schema.lower(), table.table.lower())  # some servers keep names in lower case
        self._row = fastavro.parse_schema(_row_schema())

    def labelled(self, items: list[Item]) -> list[Item]:
        """Return the items; a heartbeat's batch has its name in the metadata."""
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
def heartbeats(config: Config, online: Callable[[], bool]) -> Iterator[None]:
    """Write a heartbeat now and at every interval while in the context, if an interval is configured.

    If the source refuses a write, a warning is logged and reading continues.

    Args:
        config: the service and its source.
        online: returns True once the producer publishes. With source.semi_sync the first heartbeat is written then: its
            commit waits for this producer, and on MariaDB a statement that waits can block the producer's checks.

    Raises:
        ConfigError: there is an interval but no table.
    """
    interval = config.source.heartbeat_interval
    if interval is None:
        yield
        return
    if config.source.semi_sync:
        heartbeat_table(config.source)
    else:
        _beat(config, ONLINE)

    def at_intervals(ended: Event) -> None:
        if config.source.semi_sync:
            while not online():
                if ended.wait(POLL):
                    return
            _beat(config, ONLINE)
        while not ended.wait(interval):
            _beat(config, INTERVAL)

    with in_background("heartbeats", at_intervals):
        yield


def _beat(config: Config, name: str) -> None:
    try:
        write_heartbeat(config.source, config.service, name)
    except ConfigError:
        raise
    except ConnectorError as error:
        LOG.warning("no heartbeat could be written", extra={"service": config.service, "why": error})


def _row_schema() -> Any:
    """Return the Avro schema of a row, in schemas/fragment.avsc."""
    changes = next(field for field in fragment_schema()["fields"] if field["name"] == "changes")
    change = next(branch for branch in changes["type"]["items"] if branch["name"] == "RowChange")
    return next(field for field in change["fields"] if field["name"] == "rows")["type"]["items"]
