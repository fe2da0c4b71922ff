"""`thl records`: what a store has, whether it can be read, and a new beginning; while no producer has it open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from connector.config.model import Config
from connector.errors import ConfigError
from connector.kafka.log_reader import LogReader
from connector.log.ids import LogId, Seqno
from connector.producer.records.completion import EventCompleter
from connector.producer.records.opening import open_store, rebuild
from connector.producer.records.table_entry import TableEntry
from connector.records.database import OPTION
from connector.records.versions import StoreState

NO_LOG: Final = LogId("")  # of a store that is empty


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of a store.

    Args:
        entry: the table.
        rows: its rows.
    """

    entry: TableEntry
    rows: int

    @property
    def missing(self) -> str:
        """The reason why rows may be missing; "": none are, or none are kept."""
        if self.entry.keyless:
            return ""
        if self.entry.loading:
            return "its load has begun, and not ended"
        return self.entry.reason


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The contents of a store.

    Args:
        state: its position.
        size: bytes on disk.
        tables: its tables, by name.
    """

    state: StoreState
    size: int
    tables: tuple[StoredTable, ...]

    def as_object(self) -> dict[str, Any]:
        """The report for JSON."""
        return {
            "log_id": self.state.log_id,
            "seqno": self.state.seqno,
            "oldest": self.state.oldest,
            "bytes": self.size,
            "tables": [
                {"schema": one.entry.table.name.schema, "table": one.entry.table.name.table, "rows": one.rows}
                | ({"missing": one.missing} if one.missing else {})
                | ({"keyless": True} if one.entry.keyless else {})
                for one in self.tables
            ],
        }

    def as_lines(self) -> list[str]:
        """The report as text."""
        lines = [
            f"log {self.state.log_id}, up to event {self.state.seqno}; can go back to event {self.state.oldest - 1}; "
            f"{self.size} bytes"
        ]
        for one in self.tables:
            if one.entry.keyless:
                lines.append(f"{one.entry.table.name}: no rows are kept: without a key the source logs them whole")
                continue
            missing = f"; rows may be missing: {one.missing}" if one.missing else ""
            lines.append(f"{one.entry.table.name}: {one.rows} rows{missing}")
        return lines


def report(config: Config) -> StoreReport:
    """Read what a store has; reads all of its rows.

    Raises:
        ConfigError: there is no store, or a producer has it open.
        RecordsDamaged: it cannot be read.
    """
    completion = _opened(config)
    try:
        versions = completion.versions
        tables = tuple(
            StoredTable(entry, sum(1 for _ in versions.rows(entry.prefix)))
            for entry in sorted(completion.tables, key=lambda one: one.table.name)
        )
        return StoreReport(versions.state, versions.size, tables)
    finally:
        completion.close()


def verify_store(config: Config) -> tuple[int, int]:
    """Read everything, so that each sum is checked; return the numbers of newest and of replaced versions.

    Raises:
        As `report`.
    """
    completion = _opened(config)
    try:
        return completion.versions.verify()
    finally:
        completion.close()


def rebuild_store(config: Config) -> Seqno:
    """Begin a store again, from the log's events; return the last one.

    Raises:
        ConfigError: there is no log, or a producer has the store open.
        BrokerUnavailable, LogDamaged: the log cannot be read.
    """
    _folder(config)
    with LogReader(config, role="producer") as reader:
        partitions = reader.partitions(config.topic)
        control, position = reader.control(), reader.position()
    config = config.model_copy(update={"kafka": config.kafka.model_copy(update={"partitions": partitions})})
    if control.log is None or position is None:
        raise ConfigError("there is no log yet", hint="thl produce begins it", service=config.service)
    completion = rebuild(config, control, position.last_finished)
    try:
        return completion.versions.state.seqno
    finally:
        completion.close()


def _folder(config: Config) -> None:
    if config.source.records.dir is None:
        raise ConfigError("there is no record store", hint=f"{OPTION} names its folder", option=OPTION)


def _opened(config: Config) -> EventCompleter:
    _folder(config)
    settings = config.source.records
    if settings.dir is None or not settings.dir.is_dir():
        raise ConfigError(
            f"{OPTION}: the folder has no record store yet",
            hint="thl produce begins it; or the folder is misspelt",
            folder=settings.dir,
            option=OPTION,
        )
    return open_store(config, NO_LOG)
