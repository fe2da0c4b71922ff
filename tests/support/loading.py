"""Databases, users and initial loads for tests of a real source."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from connector.clock import SystemClock
from connector.config.filters import Filters
from connector.config.source import Source
from connector.log.compact.net_changes import Ddl, Images, NetChanges
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.mysql.preflight.preflight import preflight
from connector.mysql.server.connection import connect, query
from connector.mysql.server.source_facts import SourceFacts
from connector.mysql.snapshot.load_round import LoadRound, RoundTable
from connector.mysql.snapshot.snapshot import read_snapshot
from connector.mysql.transforms.filters import Filter
from connector.targets.target import TargetDatabase
from tests.support.binlog import images
from tests.support.servers.environment import SqlServer

EVERYTHING = [sql for sql in (Path(__file__).parent / "everything.sql").read_text().split(";\n") if sql.strip()]


@contextmanager
def a_database(server: SqlServer, name: str) -> Iterator[tuple[Source, str]]:
    """A source section that captures only a new database, and its name; it is dropped afterwards."""
    database = f"{name}_{uuid.uuid4().hex[:8]}"
    server.run_sql(f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8mb4")
    try:
        yield as_source(server, do=(database,)), database
    finally:
        server.run_sql(f"DROP DATABASE IF EXISTS {database}")


def as_source(server: SqlServer, do: tuple[str, ...] = (), **more: Any) -> Source:
    """The server as source section of the administrator."""
    values = {"user": server.user, "password": server.password, **more}
    return Source(host=server.host, port=server.port, filters=Filters(do=do), **values)


@contextmanager
def a_user(server: SqlServer, *grants: str, **source: Any) -> Iterator[Source]:
    """A source section of a new user with some privileges; the user is dropped afterwards."""
    name = f"u{uuid.uuid4().hex[:8]}"
    server.run_sql(f"CREATE USER {name} IDENTIFIED BY 'sécret€'")
    for grant in grants:
        server.run_sql(f"GRANT {grant} TO {name}")
    try:
        yield as_source(server, **{"user": name, "password": "sécret€", **source})
    finally:
        server.run_sql(f"DROP USER {name}")


def checked(source: Source, *, snapshot: bool = False, replica_uuid: str = "") -> SourceFacts:
    """Runs preflight."""
    connection = connect(source)
    try:
        return preflight(connection, source, snapshot=snapshot, replica_uuid=replica_uuid)
    finally:
        connection.close()


def run(source: Source, database: str, *statements: str) -> None:
    """Executes statements one by one, in a session without strict mode."""
    connection = connect(source)
    try:
        query(connection, f"USE {database}")
        for statement in statements:
            query(connection, statement)
    finally:
        connection.close()


def values(rows: Rows) -> list[list[Any]]:
    """The after images of inserts."""
    found = images(rows)
    assert all(before is None for before, _ in found)
    return [after for _, after in found if after is not None]


def take(source: Source) -> list[Rows | Statement]:
    """What an initial load publishes of a source that nobody changes: the definitions, then the rows."""
    filter = Filter(source.filters)
    snapshot = read_snapshot(source, filter, SystemClock())
    defined = [*snapshot.unloaded, *snapshot.tables.values()]
    statements = [*snapshot.schemas, *(statement for one in defined for statement in one.definition)]
    return [*statements, *(rows for _, rows in read_rows(source, filter, snapshot.tables))]


def read_rows(source: Source, filter: Filter, names: Iterable[TableName]) -> Iterator[tuple[TableName, Rows]]:
    """Reads tables in as many rounds with a brief lock as it takes."""
    after: dict[TableName, tuple[str, ...] | None] = dict.fromkeys(names)
    while after:
        reading = LoadRound(source, filter, [RoundTable(*one) for one in after.items()], SystemClock(), lock=True)
        try:
            reading.open(None)
            yield from reading.rows(after)
            progress = {name: reading.progress(name) for name in after}
        finally:
            reading.close()
        after = {name: key for name, (key, ended) in progress.items() if not ended}


def loaded(source: Source) -> dict[TableName, list[list[Any]]]:
    """Reads a whole initial load, by table."""
    tables: dict[TableName, list[list[Any]]] = {}
    for change in take(source):
        if isinstance(change, Rows):
            tables.setdefault(change.layout.name, []).extend(values(change))
    return tables


def load_into(target: TargetDatabase, source: Source, service: str = "default") -> TargetPosition:
    """Applies what an initial load reads without a log: each change is one commit on the target."""
    filter = Filter(source.filters)
    snapshot = read_snapshot(source, filter, SystemClock())
    position = replace(target.claim(service), log_id=LogId("0" * 32), epoch=Epoch(1))

    def commit(*, consistent: bool = False) -> None:
        nonlocal position
        position = replace(
            position,
            seqno=Seqno(position.seqno + 1),
            event_id=f"{snapshot.position.file}:{snapshot.position.offset:016};0",
            gtid_set=snapshot.gtid_set,
            consistent=consistent,
            commit_time=snapshot.time,
        )
        target.commit(position, [])

    target.begin_snapshot()
    commit()
    for statements in ([*snapshot.schemas], *([*one.definition] for one in snapshot.tables.values())):
        if statements:
            target.ddl(Ddl(seqno=Seqno(position.seqno + 1), statements=statements, commit_time=snapshot.time))
            commit()
    for _, rows in read_rows(source, filter, snapshot.tables):
        target.stage([_inserts(rows)], last=True)
        commit()
    commit(consistent=True)
    return position


def _inserts(rows: Rows) -> NetChanges:
    """The images alone: a Row is 0 (no before), 2 (an after), the number of values, the values, 0."""
    data, ends, at = bytearray(), array("Q"), 0
    framing = 2 + (1 if len(rows.layout.columns) < 64 else 2)
    for end in rows.ends:
        data += rows.data[at + framing : end - 1]
        ends.append(len(data))
        at = end
    empty = Images(b"", array("Q"))
    return NetChanges(rows.layout, Images(data, ends), empty, empty, rows.count)
