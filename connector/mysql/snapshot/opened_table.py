"""A table whose definition is locked in a session, and the statements that create it as it is published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pymysql

from connector.ddl.rename_tables import rename_tables
from connector.ddl.syntax.tokens import quoted
from connector.errors import PreflightError, SourceChanged
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query
from connector.mysql.server.snapshot_point import LOCK_WAIT_TIMEOUT
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import is_key
from connector.mysql.snapshot.loadable import LoadCandidate, Purpose, unloadable
from connector.mysql.transforms.filters import Filter

MISSING = frozenset({1049, 1051, 1146})  # no such schema, or table
CHANGED = MISSING | {1054, 1412}  # or "Table definition has changed"


@dataclass(frozen=True, slots=True)
class Opened:
    """A table that is to be loaded, as it is at a position of the log.

    Args:
        table: the table.
        published: the name under which it is published.
        definition: the statements that create it; none where they are not published.
        refusal: the reason why its rows cannot be read; None: they can.
    """

    table: SourceTable
    published: TableName
    definition: Sequence[Rows | Statement]
    refusal: PreflightError | None = None

    @property
    def has_key(self) -> bool:
        """True if it has a primary key."""
        return bool(self.table.layout.key)

    @property
    def estimate(self) -> int:
        """Approximate number of its rows."""
        return self.table.estimate

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of its primary key by which it is divided."""
        return self.table.key_columns

    @property
    def load_identity(self) -> tuple[str, ...]:
        """The facts that stay as they are while the table is loaded: its creation, and the columns that divide it."""
        return self.table.created, *self.table.key_columns

    def is_key(self, after: tuple[str, ...]) -> bool:
        """True if `after` has the form of the literals of one of its keys, by which it is divided."""
        return is_key(after, self.table.divided_by)


def lock_definitions(session: Connection, names: Iterable[TableName]) -> None:
    """Let DDL on tables wait until the session's transaction ends; where there is no such table nothing waits.

    Raises:
        SourceChanged: DDL is under way, or a session has locked a table; names the table.
    """
    for name in names:
        try:
            query(session, f"SELECT 1 FROM {quoted(name.schema)}.{quoted(name.table)} LIMIT 0")
        except pymysql.MySQLError as error:
            code = error.args[0] if error.args else 0
            if code in CHANGED - MISSING | {LOCK_WAIT_TIMEOUT}:
                raise SourceChanged(f"DDL or another session has locked it: {error.args[-1]}", table=name) from error
            if code not in MISSING:
                raise


def opened(session: Connection, filter: Filter, table: SourceTable, create_schema: str) -> Opened:
    """The table with its definition; the session holds its lock.

    Args:
        session: the session.
        filter: what is published of it.
        table: the table.
        create_schema: CREATE DATABASE of its schema.
    """
    name = table.layout.name
    create = str(query(session, f"SHOW CREATE TABLE {table.source}")[0]["Create Table"])
    published = filter.published_statement(Statement(name.schema, create), lambda _: None)
    statements: list[Rows | Statement] = []
    if "ddl" in filter.actions(*name) and published is not None:
        schema = filter.published_name(name).schema
        statements = [schema_definition(name.schema, create_schema, schema), published]
    refused = next(iter(unloadable([LoadCandidate.of(table)], filter, Purpose.ROUND).values()), None)
    return Opened(table, filter.published_name(name), statements, None if refused is None else refused.error)


def schema_definition(schema: str, create: str, published: str) -> Statement:
    """CREATE DATABASE of a schema as it is published.

    Args:
        schema: the source's name of it.
        create: the statement with this name.
        published: the name under which it is published.
    """
    return rename_tables(Statement(schema, create), lambda name: name, lambda _: published)
