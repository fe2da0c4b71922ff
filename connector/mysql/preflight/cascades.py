"""Foreign keys whose actions change rows below the binary log: their changes are nowhere to be read.

MySQL before 9.6 and MariaDB do ON DELETE and ON UPDATE CASCADE, SET NULL and SET DEFAULT inside the storage engine
(Reference Manual, "InnoDB and MySQL Replication"). What counts is the table that has the key: it is the one whose rows
change, wherever the other table is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pymysql

from connector.ddl.affected_tables import affected_tables
from connector.ddl.foreign_keys import CascadingReference, cascading_references
from connector.ddl.syntax.tokens import Lexeme, readings
from connector.errors import PreflightError, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Redefined
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.binlog.events.query import UNFINISHED, Query
from connector.mysql.binlog.events.table_map import TableMap
from connector.mysql.schema_history.column_names import ColumnNameResolver
from connector.mysql.schema_history.table_history import DefinitionsBefore
from connector.mysql.server.connection import Connection, Row, query, quoted
from connector.mysql.server.source_facts import SourceFacts
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, TABLES_WITH_ROWS, Filter
from connector.mysql.values.columns import Spec

ACCEPT: Final = "--set source.accept_unlogged_cascades=true"
INLINE_SINCE: Final = (9, 0)  # REFERENCES in a column's own definition makes a key; a MariaDB's always does
DICTIONARY_SINCE: Final = (8, 0)  # REFERENTIAL_CONSTRAINTS shows the keys of every table that the user may read
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
    """One such key; `table` and `name` quoted for SQL."""

    table: str
    name: str
    actions: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name} ({self.actions})"


def cascading_keys(connection: Connection, facts: SourceFacts, filter: Filter) -> list[CascadingKey]:
    """Those of captured tables that the user may read.

    A user with SELECT alone sees none in the REFERENTIAL_CONSTRAINTS of a MariaDB and of a MySQL before 8.0, but all of
    them in SHOW CREATE TABLE.
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
            f"{table} has maybe a foreign key that changes rows without the binary log saying so: SHOW CREATE TABLE is "
            f"not understood: {error.message}",
            hint="look at the table's foreign keys: where none has ON DELETE or ON UPDATE with CASCADE, SET NULL or "
            f"SET DEFAULT, or to accept that the target will differ: {ACCEPT}",
        ) from error
    return [CascadingKey(table, quoted(key.name), key.actions) for key in found]


def _check_names(created: str) -> None:
    """A MariaDB does not double a backtick in a constraint's name: what is behind one is read as names.

    Raises:
        Unsupported: such a name in a SHOW CREATE TABLE hides a key.
    """
    ways = readings(created)
    if any(token.kind is Lexeme.NAME and ") REFERENCES " in token.text for tokens in ways for token in tokens):
        raise Unsupported("a name has a backtick that is not doubled")


class CascadeGuard:
    """A `ColumnNameResolver` that stops at a definition by which a captured table gets such a key.

    Args:
        resolver: names columns.
        filter: which tables are captured.
        facts: the source.
        position: definitions before it, which may be read again, are contained.
    """

    def __init__(
        self, resolver: ColumnNameResolver, filter: Filter, facts: SourceFacts, position: PositionRecord
    ) -> None:
        self._resolver = resolver
        self._filter = filter
        self._inline = facts.mariadb or facts.release >= INLINE_SINCE
        self._contained = DefinitionsBefore(position)

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """As `ColumnNameResolver`."""
        return self._resolver.layout(table)

    def drain(self) -> Redefined:
        """As `ColumnNameResolver`."""
        return self._resolver.drain()

    def known(self, name: TableName) -> TableLayout | None:
        """As `ColumnNameResolver`."""
        return self._resolver.known(name)

    def follow(self, query: Query, gtid: str | None, place: SourcePosition) -> bool:
        """As `ColumnNameResolver`.

        Raises:
            Unsupported: rows of a captured table are from here on changed without the log saying so.
        """
        text = query.statement.sql
        if "references" in text.lower() and not self._contained(gtid, place) and self._happened(query):
            keys = self._keys(query)
            if keys:
                raise Unsupported(
                    "a foreign key is defined that changes rows without the binary log saying so: " + ", ".join(keys),
                    hint="drop it (ALTER TABLE … DROP FOREIGN KEY …); then, or to accept that the target will differ, "
                    f"go past this definition once with {ACCEPT}; what it changed until then, thl verify tells",
                    sql=text[:200],
                )
        return self._resolver.follow(query, gtid, place)

    def _happened(self, query: Query) -> bool:
        options = query.statement.options
        return options.get("alter") not in UNFINISHED and options.get("error_code", "0") == "0"

    def _keys(self, query: Query) -> list[str]:
        """Those that the statement defines, for people; one that is not understood, and not to be left out, is one."""
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
