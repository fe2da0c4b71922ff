"""The definitions of the captured tables at one position of the binary log, with which an initial load begins.

Finding the position: FLUSH TABLES WITH READ LOCK blocks commits and DDL, the position is read, UNLOCK TABLES. Writers
wait for these statements alone. The rows are read later, in rounds (`load_round`).

The dictionary is read before and after the position; if it has changed, another position is tried. DDL on the tables
waits while their definitions are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pymysql

from connector.clock import Clock
from connector.config.source import Source
from connector.errors import SourceChanged
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, query, session
from connector.mysql.server.snapshot_point import SnapshotPoint, await_decided, fix_snapshot_point, prepare_session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.snapshot.information_schema import (
    SourceTable,
    read_definitions,
    read_schemas,
    read_tables,
)
from connector.mysql.snapshot.loadable import LoadCandidate, Purpose, candidates, initially_captured, refuse_unloadable
from connector.mysql.snapshot.opened_table import CHANGED, Opened, lock_definitions, opened, schema_definition
from connector.mysql.transforms.filters import Filter
from connector.patterns import table_pattern

ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The captured tables at one position.

    Args:
        position: the position, the end of the binary log.
        gtid_set: the executed GTIDs; None if the source has none.
        time: µs since 1970 UTC, by the source's clock.
        server_id, server_uuid: the source's.
        schemas: the definitions of schemas without a captured table.
        tables: the captured tables by their names on the source, in the order in which they are to be loaded.
        unloaded: the tables of which the definition alone is published.
        definitions: all tables of captured schemas.
    """

    position: SourcePosition
    gtid_set: str | None
    time: int
    server_id: int
    server_uuid: str
    schemas: Sequence[Statement]
    tables: Mapping[TableName, Opened]
    unloaded: Sequence[Opened]
    definitions: Definitions


_Dictionary = tuple[dict[str, str], list[SourceTable], Definitions]


def read_snapshot(source: Source, filter: Filter, clock: Clock) -> Snapshot:
    """Find a position, and read the definitions there.

    Args:
        source: the source.
        filter: the captured tables.
        clock: the clock for waits.

    Raises:
        SourceUnavailable: the server is gone, or a long statement blocks the lock.
        SourceChanged: DDL or prepared XA transactions interfered in every attempt.
        PreflightError: a table cannot be loaded, a privilege is missing, a rule matches no column, or an XA
            transaction stays prepared.
        Unsupported: a rule does not fit a table.
    """
    with session(source) as connection:
        prepare_session(connection, source)
        found = _read(connection, source, filter, clock)
        others = [one for one in initially_captured(candidates(connection), filter) if not one.ordinary]
    read = (LoadCandidate.of(one.table) for one in found.tables.values())
    refuse_unloadable([*others, *read], filter, Purpose.INITIAL)
    return found


def _read(connection: Connection, source: Source, filter: Filter, clock: Clock) -> Snapshot:
    disturbed = ""
    for _ in range(ATTEMPTS):
        await_decided(connection, clock)
        before = _dictionary(connection, filter)
        point = fix_snapshot_point(connection, clock, load=True)
        # Each statement must show the dictionary as it is then, not as in the view of the first one.
        query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        query(connection, "START TRANSACTION READ ONLY")
        try:
            read, after = _defined(connection, filter, before)
        except SourceChanged as error:
            disturbed = error.located
        except pymysql.MySQLError as error:
            if not error.args or error.args[0] not in CHANGED:
                raise
            disturbed = f"DDL was under way: {error.args[-1]}"
        else:
            if point.prepared:
                disturbed = "XA transactions were prepared"
            elif _identities(before) == _identities(after):
                uuid = read_facts(connection).server_uuid
                return _snapshot(point, uuid, _sorted(read, source, filter), after, filter)
            else:
                disturbed = "DDL changed the source's tables"
        query(connection, "ROLLBACK")
    raise SourceChanged(f"the load did not begin in {ATTEMPTS} attempts: in the last one {disturbed}")


def _defined(connection: Connection, filter: Filter, dictionary: _Dictionary) -> tuple[list[Opened], _Dictionary]:
    """The definitions of the tables of a dictionary, and the dictionary while all of them are locked."""
    schemas, tables, _ = dictionary
    tables = [table for table in tables if {"insert", "ddl"} & set(filter.actions(*table.layout.name))]
    lock_definitions(connection, [table.layout.name for table in tables])
    read = [opened(connection, filter, table, schemas[table.layout.name.schema]) for table in tables]
    return read, _dictionary(connection, filter)


def _snapshot(point: SnapshotPoint, uuid: str, read: list[Opened], after: _Dictionary, filter: Filter) -> Snapshot:
    schemas, tables, definitions = after
    filter.check_rules([table.layout for table in tables])
    loaded = [one for one in read if "insert" in filter.actions(*one.table.layout.name)]
    defined = {one.table.layout.name.schema for one in read if one.definition}
    return Snapshot(
        position=point.position,
        gtid_set=point.gtid_set,
        time=point.time,
        server_id=point.server_id,
        server_uuid=uuid,
        schemas=[
            schema_definition(schema, create, filter.published_schema(schema))
            for schema, create in schemas.items()
            if schema not in defined and filter.captures_schema_definitions(schema)
        ],
        tables={one.table.layout.name: one for one in loaded},
        unloaded=[one for one in read if "insert" not in filter.actions(*one.table.layout.name)],
        definitions=definitions,
    )


def _sorted(tables: Sequence[Opened], source: Source, filter: Filter) -> list[Opened]:
    """The tables in the order of `source.snapshot.first`, then by name."""
    first = [table_pattern(filter.fold(pattern.strip())) for pattern in source.snapshot.first]

    def rank(one: Opened) -> int:
        schema, name = (filter.fold(part) for part in one.table.layout.name)
        return next((rank for rank, pattern in enumerate(first) if pattern.finds(schema, name)), len(first))

    return sorted(tables, key=rank)


def _dictionary(connection: Connection, filter: Filter) -> _Dictionary:
    tables = read_tables(connection, filter)
    return read_schemas(connection, filter), tables, read_definitions(connection, filter)


def _identities(dictionary: _Dictionary) -> tuple[object, ...]:
    schemas, tables, definitions = dictionary
    return schemas, [table.identity for table in tables], definitions
