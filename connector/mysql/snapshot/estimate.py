"""Estimates the rows, chunks and time of a load; locks and writes nothing.

Rows and bytes are the server's own estimates. The time is what one connection needs to read and decode the rows, by
the beginning of the largest tables, which is read now; or what `max_rows_per_second` lets it take, if that is longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from connector.clock import Clock
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.errors import PreflightError, ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, session
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.snapshot.division import rows_of_a_chunk
from connector.mysql.snapshot.information_schema import SourceTable, read_tables
from connector.mysql.snapshot.key_ranges import KeyRange
from connector.mysql.snapshot.loadable import LoadCandidate, Purpose, candidates, initially_captured, unloadable
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter

SAMPLED: Final = 8  # the largest tables, whose rate is measured
SAMPLE_SECONDS: Final = 0.5
SAMPLE_ROWS: Final = 5_000  # of a batch
SAMPLE_BYTES: Final = 1 << 20


class ReadMode(StrEnum):
    """The way in which a table is read."""

    CHUNKS = "chunks"  # ranges of the primary key
    ONE_CHUNK = "one_chunk"  # its primary key cannot be divided
    WHOLE_TABLE = "whole_table"  # it has no primary key


@dataclass(frozen=True, slots=True)
class TableEstimate:
    """A table of the load.

    Args:
        table: the table.
        chunks: the number of chunks in which it is read.
        seconds: the time in which one connection would read it.
        sampled: the rows by which that was measured; 0: it is by the bytes of the other tables.
        failed: the error with which its load would stop; None: no row of the sample is a reason for one.
    """

    table: SourceTable
    chunks: int
    seconds: float
    sampled: int = 0
    failed: ValueNotRepresentable | None = None

    @property
    def name(self) -> TableName:
        """Its name on the source."""
        return self.table.layout.name

    @property
    def read_mode(self) -> ReadMode:
        """The way in which it is read."""
        if not self.table.layout.key:
            return ReadMode.WHOLE_TABLE
        return ReadMode.CHUNKS if self.table.divided_by else ReadMode.ONE_CHUNK

    @property
    def divided_by(self) -> list[str]:
        """The columns by which it is divided."""
        return [column.name.strip("`") for column in self.table.divided_by] if self.read_mode is ReadMode.CHUNKS else []

    def __str__(self) -> str:
        """The table for people."""
        waited = f"as a whole, for about {self.seconds:.0f} s in which transactions wait"
        how = {
            ReadMode.CHUNKS: f"in {f'about {self.chunks} chunks' if self.chunks > 1 else 'one chunk'} by "
            + ", ".join(self.divided_by),
            ReadMode.ONE_CHUNK: f"{waited}, because its primary key cannot be divided",
            ReadMode.WHOLE_TABLE: f"{waited}, because it has no primary key",
        }[self.read_mode]
        problem = f"; its load would stop: {self.failed.located}" if self.failed else ""
        return f"{self.name}: about {self.table.estimate} rows, {_megabytes(self.table.bytes)}, {how}{problem}"


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """A load of tables.

    Args:
        tables: the tables, largest first.
        settings: `source.snapshot`.
        refused: tables, or what was to name them, that would not be loaded, with the reason.
    """

    tables: Sequence[TableEstimate]
    settings: InitialLoad
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Their rows."""
        return sum(each.table.estimate for each in self.tables)

    @property
    def bytes(self) -> int:
        """The size of their rows on the server."""
        return sum(each.table.bytes for each in self.tables)

    @property
    def reading(self) -> float:
        """Seconds in which one connection reads and decodes them."""
        return sum(each.seconds for each in self.tables)

    @property
    def seconds(self) -> float:
        """The expected time."""
        most = self.settings.max_rows_per_second
        return max(self.reading, self.rows / most if most else 0.0)

    @property
    def based_on(self) -> str:
        """The basis of the expected time, in words."""
        if self.seconds > self.reading:
            return f"source.snapshot.max_rows_per_second ({self.settings.max_rows_per_second})"
        sampled = [each.sampled for each in self.tables if each.sampled]
        others = len(self.tables) - len(sampled)
        return (
            f"the time in which one connection read and decoded {sum(sampled)} rows, from the beginning of "
            f"{len(sampled)} of the tables, just now"
            + (f"; the other {others} by their bytes" if sampled and others else "")
        )

    @property
    def exit_code(self) -> int:
        """The exit code of a command that says so: that of the first error of the load, 0 if there is none."""
        if self.refused:
            return PreflightError.exit_code
        return next((each.failed.exit_code for each in self.tables if each.failed), 0)

    def as_object(self) -> dict[str, object]:
        """The load for JSON."""
        return {
            "tables": [
                {
                    "table": str(each.name),
                    "rows": each.table.estimate,
                    "bytes": each.table.bytes,
                    "read_mode": each.read_mode,
                    "divided_by": each.divided_by,
                    "chunks": each.chunks,
                    "seconds": each.seconds,
                    "sampled_rows": each.sampled,
                    "stops": each.failed.located if each.failed else "",
                }
                for each in self.tables
            ],
            "refused": [{"table": name, "why": why} for name, why in self.refused.items()],
            "rows": self.rows,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "based_on": self.based_on,
        }

    def lines(self) -> list[str]:
        """The load for people: a line for each table, then the sum."""
        many = "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"
        connections = self.settings.connections
        side_by_side = f"The {connections} connections of source.snapshot.connections can be faster; " * (
            connections > 1
        )
        lines = [
            *map(str, self.tables),
            *(f"{name}: refused: {why}" for name, why in self.refused.items()),
            f"{many}, about {self.rows} rows, {_megabytes(self.bytes)}",
            f"Expected: about {self.seconds:.0f} s, by {self.based_on}",
            f"{side_by_side}Kafka, and the transactions that are published meanwhile, can make it slower",
        ]
        return lines if self.tables else lines[:-2]


def estimate_load(
    source: Source, filter: Filter, clock: Clock, purpose: Purpose, only: Collection[TableName] | None = None
) -> LoadEstimate:
    """Estimates the load of the captured tables, or of `only`.

    Args:
        source: the source.
        filter: the captured tables.
        clock: the clock that measures the samples.
        purpose: what the load is for: `Purpose.INITIAL` or `Purpose.AGAIN`.
        only: tables; of those that are published under one name all or none.

    Raises:
        SourceUnavailable, PreflightError, ConnectorError: see `source_errors`.
    """
    with session(source) as connection:
        prepare_session(connection, source)
        read = read_tables(connection, filter)
        tried = initially_captured(candidates(connection), filter)
    tried = [one for one in tried if only is None or one.name in only]
    refused = _refused(tried, filter, purpose)
    names = {one.name for one in tried if str(one.name) not in refused}
    tables = sorted(
        (table for table in read if table.layout.name in names), key=lambda table: table.bytes, reverse=True
    )
    a_byte: list[float] = []  # seconds, of each sampled table
    found = []
    for table in tables:
        rows, seconds, failed = _sample(source, table, clock) if len(a_byte) < SAMPLED else (0, 0.0, None)
        if rows:
            seconds *= max(1.0, table.estimate / rows)
            a_byte.append(seconds / max(1, table.bytes))
        else:
            seconds = table.bytes * sum(a_byte) / max(1, len(a_byte))
        found.append(TableEstimate(table, _chunks(table, source.snapshot), seconds, rows, failed))
    return LoadEstimate(found, source.snapshot, refused)


def _chunks(table: SourceTable, settings: InitialLoad) -> int:
    return max(1, -(-table.estimate // rows_of_a_chunk(table, settings))) if table.divided_by else 1


def _refused(tables: Collection[LoadCandidate], filter: Filter, purpose: Purpose) -> dict[str, str]:
    """The tables that would not be loaded, with the reason: what keeps one of a published name keeps all of them."""
    kept_out = unloadable(tables, filter, purpose)
    errors = [(one, kept_out.get(filter.published_name(one.name))) for one in tables]
    return {str(one.name): f"{why.error.located}: {why.error.hint}" for one, why in errors if why is not None}


def _sample(source: Source, table: SourceTable, clock: Clock) -> tuple[int, float, ValueNotRepresentable | None]:
    """Reads the beginning of a table: returns rows, seconds, and the error of a value."""
    with session(source) as connection:
        prepare_session(connection, source)
        began, rows, failed = clock.monotonic(), 0, None
        try:
            for _, ends in table_rows(connection, table, KeyRange(), SAMPLE_ROWS, SAMPLE_BYTES):
                rows += len(ends)
                if clock.monotonic() - began > SAMPLE_SECONDS:
                    break
        except ValueNotRepresentable as error:
            failed = error
        seconds = clock.monotonic() - began
        _give_up(connection)
    return rows, seconds, failed


def _give_up(connection: Connection) -> None:
    """Ends the session although rows are left to be read."""
    connection._force_close()  # type: ignore[attr-defined]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else "less than 0.1 MB"
