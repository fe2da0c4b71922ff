"""The entrance of the folder (`TargetKind`): opens, checks and reads a DuckDB target."""

from __future__ import annotations

from collections.abc import Callable, Collection

from connector.clock import Clock, SystemClock
from connector.config.apply import Target as Options
from connector.config.target_url import check_writable, duckdb_file
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.transaction.layout import TableName
from connector.targets.duckdb import progress
from connector.targets.duckdb.file import opened_to_read
from connector.targets.duckdb.signal_table import DuckDbSignalSession
from connector.targets.duckdb.target import DuckDbTarget
from connector.targets.position import TargetRow


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> DuckDbTarget:
    """Open the file; create it if it does not exist."""
    return DuckDbTarget(
        duckdb_file(options.url.get_secret_value()),
        clock,
        audit=options.audit,
        columns=columns,
        history=history_tables(options.history),
    )


def open_session(url: str) -> DuckDbSignalSession:
    """Open the existing file."""
    return DuckDbSignalSession(duckdb_file(url))


def check(options: Options, databases: Callable[[], Collection[str] | None]) -> str:
    """Check that the file, or the folder in which it will be created, can be written to."""
    del databases  # what is granted covers all of them
    file = duckdb_file(options.url.get_secret_value())
    check_writable(file)
    if not file.exists():
        return f"DuckDB, {file}, which does not exist yet"
    with opened_to_read(file, SystemClock()) as session:
        ((version,),) = session.run("SELECT version()")
    return f"DuckDB {str(version).removeprefix('v')}, {file}"


def read_position(url: str, service: str) -> TargetRow | None:
    """Read the position of a service."""
    return progress.read_position(duckdb_file(url), service)


def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
    """Read the time of a heartbeat."""
    return progress.read_heartbeat(duckdb_file(url), service, table, name)


def unverified(url: str) -> str:
    """Return "": no password is sent."""
    duckdb_file(url)
    return ""
