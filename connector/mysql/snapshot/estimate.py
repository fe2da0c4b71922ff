"""The amount that an initial load would read: tables, rows, bytes, and about how long; nothing is locked or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.config.source import Source
from connector.mysql.server.connection import Connection, session
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.snapshot.information_schema import SourceTable, read_tables
from connector.mysql.snapshot.key_ranges import KeyRange
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter

SAMPLED: Final = 8  # the largest tables, whose rate is measured
SAMPLE_SECONDS: Final = 0.5
SAMPLE_ROWS: Final = 5_000  # of a batch
SAMPLE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TableEstimate:
    """A table of the load.

    Args:
        table: the table.
        seconds: the time in which one connection would read it.
    """

    table: SourceTable
    seconds: float

    def chunks(self, chunk_rows: int) -> int:
        """The number of chunks into which several connections would divide it."""
        return max(1, round(self.table.estimate / chunk_rows)) if self.table.divided_by else 1


def estimate_load(source: Source, filter: Filter, clock: Clock) -> list[TableEstimate]:
    """The captured tables, largest first, by the server's own estimates and a sample of the largest tables.

    Raises:
        SourceUnavailable, PreflightError, ConnectorError: see `speaking_to`.
        ValueNotRepresentable: a text in the sample is not valid in its character set.
    """
    with session(source) as connection:
        prepare_session(connection, source)
        tables = [table for table in read_tables(connection, filter) if _loads_rows(table, filter)]
    tables.sort(key=lambda table: table.bytes, reverse=True)
    a_byte: list[float] = []  # seconds, of each sampled table
    found = []
    for table in tables:
        a_row = _seconds_of_a_row(source, table, clock) if len(a_byte) < SAMPLED else None
        if a_row is None:
            seconds = table.bytes * sum(a_byte) / max(1, len(a_byte))
        else:
            seconds = a_row * table.estimate
            a_byte.append(seconds / max(1, table.bytes))
        found.append(TableEstimate(table, seconds))
    return found


def _loads_rows(table: SourceTable, filter: Filter) -> bool:
    return "insert" in filter.actions(*table.layout.name)


def _seconds_of_a_row(source: Source, table: SourceTable, clock: Clock) -> float | None:
    """Reads the beginning of a table; None if it has no rows."""
    with session(source) as connection:
        prepare_session(connection, source)
        began, rows = clock.monotonic(), 0
        for _, ends in table_rows(connection, table, KeyRange(), SAMPLE_ROWS, SAMPLE_BYTES):
            rows += len(ends)
            if clock.monotonic() - began > SAMPLE_SECONDS:
                break
        seconds = clock.monotonic() - began
        _give_up(connection)
    return seconds / rows if rows else None


def _give_up(connection: Connection) -> None:
    """Ends the session although rows are left to be read."""
    connection._force_close()  # type: ignore[attr-defined]
