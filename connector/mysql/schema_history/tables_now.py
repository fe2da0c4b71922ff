"""What the source's tables are at one place of its log, for a log that begins there without an initial load."""

from __future__ import annotations

from typing import Final

from connector.config.model import Source
from connector.errors import SourceChanged
from connector.log.transaction.definition import Definitions
from connector.mysql.server.connection import Connection, query
from connector.mysql.server.snapshot_point import SnapshotPoint, fix_snapshot_point, prepare_session
from connector.mysql.snapshot.information_schema import read_definitions
from connector.mysql.transforms.filters import Filter

ATTEMPTS: Final = 5


def tables_now(connection: Connection, source: Source, filter: Filter) -> tuple[SnapshotPoint, Definitions]:
    """Read the data dictionary before and after a moment is fixed; when both are the same, it was so at the moment.

    Raises:
        SourceUnavailable: a long statement keeps the lock from us.
        SourceChanged: its tables are changed by DDL all the time.
    """
    prepare_session(connection, source)
    before = read_definitions(connection, filter)
    for _ in range(ATTEMPTS):
        moment = fix_snapshot_point(connection)
        query(connection, "ROLLBACK")
        after = read_definitions(connection, filter)
        if after == before:
            return moment, after
        before = after
    raise SourceChanged(f"DDL changed the source's tables in each of {ATTEMPTS} attempts to read them")
