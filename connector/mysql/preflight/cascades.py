"""Foreign keys whose actions change rows without a record in the binary log.

MySQL before 9.6 and MariaDB execute ON DELETE and ON UPDATE CASCADE, SET NULL and SET DEFAULT inside the storage engine
(Reference Manual, "InnoDB and MySQL Replication"). The table that has the key counts: its rows change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pymysql

from connector.ddl.affected_tables import affected_tables
from connector.ddl.foreign_keys import CascadingReference, cascading_references
from connector.ddl.syntax.tokens import Lexeme, quoted, readings
from connector.errors import PreflightError, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Redefined
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.binlog.events.column_names import ColumnNameResolver
from connector.mysql.binlog.events.query import UNFINISHED, Query
from connector.mysql.binlog.events.table_map import TableMap
from connector.mysql.schema_history.table_history import DefinitionsBefore
from connector.mysql.server.connection import Connection, Row, query
from connector.mysql.server.source_facts import SourceFacts
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, TABLES_WITH_ROWS, Filter
from connector.mysql.values.columns import Spec

ACCEPT: Final = "--set source.accept_unlogged_cascades=true"
INLINE_SINCE: Final = (9, 0)  # REFERENCES in a column's definition makes a key; always in MariaDB
DICTIONARY_SINCE: Final = (8, 0)  # REFERENTIAL_CONSTRAINTS has the keys of every table that the user may read
GONE: Final = frozenset({1049, 1051, 1146})  # dropped since it was listed

_KEYS = """
SELECT CONSTRAINT_SCHEMA AS s, TABLE_NAME AS t, CONSTRAINT_NAME AS c, DELETE_RULE AS on_delete, UPDATE_RULE AS on_update
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE DELETE_RULE NOT IN ('NO ACTION', 'RESTRICT') OR UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT')
ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME
"""
_TABLES = f"""
SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.TABLES
WHERE {TABLES_WITH_ROWS} AND TABLE_SCHEMA NOT IN ({", ".join(f"'{name}'" for name in sorted(SYSTEM_SCHEMAS))})
ORDER BY TABLE_SCHEMA, TABLE_NAME
"""


@dataclass(frozen=True, slots=True)
class CascadingKey:
    """A foreign key with unlogged actions; `table` and `name` are quoted for SQL."""

    table: str
    name: str
    actions: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name} ({self.actions})"


def cascading_keys(connection: Connection, facts: SourceFacts, filter: Filter) -> list[CascadingKey]:
    """The cascading keys of captured tables that the user may read.

    In MariaDB and MySQL before 8.0 a user with only SELECT sees keys in SHOW CREATE TABLE, not in
    REFERENTIAL_CONSTRAINTS.
    """
    if not facts.mariadb and facts.release >= DICTIONARY_SINCE:
        return [_of_dictionary(row) for row in query(connection, _KEYS) if filter.captures(row["s"], row["t"])]
    keys: list[CascadingKey] = []
    for row in query(connection, _TABLES):
        if filter.captures(row["s"], row["t"]):
            keys += _of_table(connection, row["s"], row["t"])
    return keys


def _of_dictionary(row: Row) -> CascadingKey:
    rules = {"ON DELETE": row["on_delete"], "ON UPDATE": row["on_update"]}
    actions = ", ".join(f"{event} {rule}" for event, rule in rules.items() if rule not in {"NO ACTION", "RESTRICT"})
    return CascadingKey(f"{quoted(row['s'])}.{quoted(row['t'])}", quoted(row["c"]), actions)


def _of_table(connection: Connection, schema: str, name: str) -> list[CascadingKey]:
    table = f"{quoted(schema)}.{quoted(name)}"
    try:
        created = str(query(connection, f"SHOW CREATE TABLE {table}")[0]["Create Table"])
    except pymysql.MySQLError as error:
        if error.args and error.args[0] in GONE:
            return []
        raise
    if "REFERENCES" not in created:
        return []
    try:
        _check_names(created)
        found = cascading_references(Statement(schema, created))
    except Unsupported as error:
        raise PreflightError(
            f"{table} may have a foreign key whose changes are not in the binary log: SHOW CREATE TABLE is "
            f"not understood: {error.message}",
            hint="check the table's foreign keys: if none has ON DELETE or ON UPDATE with CASCADE, SET NULL or "
            f"SET DEFAULT, or to accept that the target will differ: {ACCEPT}",
            table=table,
        ) from error
    return [CascadingKey(table, quoted(key.name), key.actions) for key in found]


def _check_names(created: str) -> None:
    """A MariaDB does not double a backtick in a constraint's name: the text after one is read as names.

    Raises:
        Unsupported: such a name in a SHOW CREATE TABLE hides a key.
    """
    ways = readings(created)
    if any(token.kind is Lexeme.NAME and ") REFERENCES " in token.text for tokens in ways for token in tokens):
        raise Unsupported("a name has a backtick that is not doubled")


class CascadeGuard:
    """A `ColumnNameResolver` that stops at a definition that gives a captured table a cascading key.

    Args:
        resolver: names columns.
        filter: the captured tables.
        facts: the source.
        position: definitions before it may be read again; they were checked.
    """

    def __init__(
        self, resolver: ColumnNameResolver, filter: Filter, facts: SourceFacts, position: PositionRecord
    ) -> None:
        self._resolver = resolver
        self._filter = filter
        self._inline = facts.mariadb or facts.release >= INLINE_SINCE
        self._contained = DefinitionsBefore(position)

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """See `ColumnNameResolver`."""
        return self._resolver.layout(table)

    def drain(self) -> Redefined:
        """See `ColumnNameResolver`."""
        return self._resolver.drain()

    def known(self, name: TableName) -> TableLayout | None:
        """See `ColumnNameResolver`."""
        return self._resolver.known(name)

    def creation_options(self, statement: Statement) -> Mapping[str, str]:
        """See `ColumnNameResolver`."""
        return self._resolver.creation_options(statement)

    def follow(self, query: Query, gtid: str | None, position: SourcePosition) -> bool:
        """See `ColumnNameResolver`.

        Raises:
            Unsupported: from here on, changes of a captured table are not logged.
        """
        text = query.statement.sql
        if "references" in text.lower() and not self._contained(gtid, position) and self._happened(query):
            keys = self._keys(query)
            if keys:
                raise Unsupported(
                    "a foreign key is defined whose changes are not in the binary log",
                    hint="drop it (ALTER TABLE … DROP FOREIGN KEY …); then, or to accept that the target will differ, "
                    f"pass this definition once with {ACCEPT}; thl verify shows what it has changed",
                    foreign_keys=", ".join(keys),
                    sql=text[:200],
                )
        return self._resolver.follow(query, gtid, position)

    def _happened(self, query: Query) -> bool:
        options = query.statement.options
        return options.get("alter") not in UNFINISHED and options.get("error_code", "0") == "0"

    def _keys(self, query: Query) -> list[str]:
        """The cascading keys that the statement defines, for messages; also one that is captured and not understood."""
        statement = query.statement
        try:
            about = affected_tables(statement).tables
            if not any(self._filter.captures(*name) for name in about):
                return []
            found = cascading_references(statement)
        except Unsupported as error:
            return [f"maybe ({error.message})"] if self._filter.definitions(statement, query.schemas) else []
        return [f"{_shown(about[0], key)}" for key in found if self._inline or not key.inline]


def _shown(table: TableName, key: CascadingReference) -> str:
    return f"{table}{'.' if key.name else ''}{key.name} ({key.actions})"
