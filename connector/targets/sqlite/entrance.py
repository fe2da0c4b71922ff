"""The entrance of the folder (`TargetKind`): opens, checks and reads a SQLite target."""

from __future__ import annotations

from collections.abc import Callable, Collection

from connector.clock import Clock
from connector.config.apply import Target as Options
from connector.config.target_url import check_writable, sqlite_file
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.transaction.layout import TableName
from connector.targets.position import TargetRow
from connector.targets.sqlite import progress
from connector.targets.sqlite.signal_table import SqliteSignalSession
from connector.targets.sqlite.target import SqliteTarget


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> SqliteTarget:
    """Open the file; create it if it does not exist."""
    return SqliteTarget(
        sqlite_file(options.url.get_secret_value()),
        clock,
        audit=options.audit,
        columns=columns,
        history=history_tables(options.history),
    )


def open_session(url: str) -> SqliteSignalSession:
    """Open the existing file."""
    return SqliteSignalSession(sqlite_file(url))


def check(options: Options, databases: Callable[[], Collection[str] | None]) -> str:
    """Check that the file, or the folder in which it will be created, can be written to."""
    del databases  # what is granted covers all of them
    url = options.url.get_secret_value()
    file = sqlite_file(url)
    check_writable(file)
    if not file.exists():
        return f"SQLite, {file}, which does not exist yet"
    session = open_session(url)
    try:
        session.run("PRAGMA schema_version", ())
    finally:
        session.close()
    return f"SQLite, {file}"


def read_position(url: str, service: str) -> TargetRow | None:
    """Read the position of a service."""
    return progress.read_position(sqlite_file(url), service)


def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
    """Read the time of a heartbeat."""
    return progress.read_heartbeat(sqlite_file(url), service, table, name)


def unverified(url: str) -> str:
    """Return "": no password is sent."""
    sqlite_file(url)
    return ""
