"""The source's tables as its data dictionary describes them, as layouts of the log.

A layout from here equals the one that the binary log's TABLE_MAP gives for the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from connector.clock import Clock
from connector.config.filters import Filters
from connector.config.source import Source
from connector.ddl.syntax.tokens import quoted
from connector.ddl.syntax.type_names import charset_name, charset_of
from connector.errors import SourceChanged
from connector.log.transaction.definition import VIEW, Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.server.connection import Connection, Row, query, release
from connector.mysql.server.snapshot_point import SnapshotPoint, fix_snapshot_point, prepare_session
from connector.mysql.snapshot.key_ranges import KeyColumn, Keys, key_column
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, Filter
from connector.mysql.values.charsets import BINARY
from connector.mysql.values.columns import Spec, keeping_bytes, text_spec

ATTEMPTS = 5
SPATIAL = frozenset(
    [
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
        *("geomcollection", "geometrycollection"),  # names since 8.0 and before
    ]
)
INTEGERS = frozenset(["tinyint", "smallint", "mediumint", "int", "bigint", "year"])
TEXTS = frozenset(["char", "varchar", "tinytext", "text", "mediumtext", "longtext"])
LABELLED = frozenset(["enum", "set"])
BYTES = frozenset(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"])
# MariaDB's types that are BINARY in its binary log, and their size.
FIXED = {"uuid": 16, "inet4": 4, "inet6": 16}

_NOT_SYSTEM = "TABLE_SCHEMA NOT IN ({})".format(", ".join(f"'{name}'" for name in sorted(SYSTEM_SCHEMAS)))
_TABLES = f"""
SELECT t.TABLE_SCHEMA AS s, t.TABLE_NAME AS t, t.ENGINE AS engine, t.TABLE_ROWS AS estimate, t.DATA_LENGTH AS bytes,
  CAST(t.CREATE_TIME AS CHAR) AS created, t.TABLE_COLLATION AS collation, e.TRANSACTIONS = 'YES' AS transactional
FROM information_schema.TABLES t LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.{_NOT_SYSTEM}
ORDER BY t.TABLE_SCHEMA, t.TABLE_NAME
"""
_OTHER_TABLES = f"""
SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, TABLE_TYPE AS kind
FROM information_schema.TABLES WHERE TABLE_TYPE IN ('SYSTEM VERSIONED', 'SEQUENCE', 'VIEW') AND {_NOT_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME
"""
_COLUMNS = f"""
SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, COLUMN_NAME AS name, DATA_TYPE AS base, COLUMN_TYPE AS full,
  CHARACTER_MAXIMUM_LENGTH AS length, NUMERIC_PRECISION AS digits, NUMERIC_SCALE AS scale,
  DATETIME_PRECISION AS fraction, CHARACTER_SET_NAME AS charset, COLLATION_NAME AS collation, IS_NULLABLE AS nullable
FROM information_schema.COLUMNS WHERE {_NOT_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""
_KEYS = f"""
SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, COLUMN_NAME AS name, SUB_PART AS prefix
FROM information_schema.STATISTICS WHERE INDEX_NAME = 'PRIMARY' AND {_NOT_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME, SEQ_IN_INDEX
"""
_ONE_TABLE = " AND TABLE_SCHEMA = %s AND TABLE_NAME = %s "
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r"}
CAST_AS_DOUBLE = (8, 0, 17)  # the first version of MySQL that has it


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table, and how its rows are read as text without loss.

    Args:
        layout: the table's layout in the log.
        select: an SQL expression per column.
        kinds: a letter per column, for `TextRows`.
        texts: the decoding of the columns with a character set.
        ordered: true if the primary key gives an order without sorting (it has no prefix parts).
        divided_by: the leading columns of the primary key by which its rows can be divided into ranges.
        created: creation time in the dictionary: tells tables of one name apart.
        transactional: true if it can be read consistently.
        estimate: approximate number of rows.
        bytes: approximate size of its rows in the server.
        charset: default of its text columns.
    """

    layout: TableLayout
    select: tuple[str, ...]
    kinds: str
    texts: tuple[Spec | None, ...]
    ordered: bool
    divided_by: tuple[KeyColumn, ...]
    created: str
    transactional: bool
    estimate: int
    bytes: int
    charset: str

    @property
    def identity(self) -> tuple[object, ...]:
        """Changes if DDL changes the table."""
        return self.layout, self.select, self.created, self.charset

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns by which its rows can be divided, with what must stay as it is while they are."""
        return tuple(f"{one.name} {one.base} {one.charset} {one.collation}" for one in self.divided_by)

    @property
    def of_keys(self) -> SourceTable:
        """The same table with the columns of its key alone."""
        kept = sorted(self.layout.key)
        key = tuple(kept.index(index) for index in self.layout.key)
        return replace(
            self,
            layout=TableLayout(self.layout.name, tuple(self.layout.columns[index] for index in kept), key),
            select=tuple(self.select[index] for index in kept),
            kinds="".join(self.kinds[index] for index in kept),
            texts=tuple(self.texts[index] for index in kept),
        )

    @property
    def source(self) -> str:
        """The table's name in SQL."""
        return f"{quoted(self.layout.name.schema)}.{quoted(self.layout.name.table)}"

    def sql(self, within: Keys) -> str:
        """The SELECT of its rows with some keys, in the order of its key."""
        columns = self.layout.columns
        order = ", ".join(quoted(columns[index].name) for index in self.layout.key) if self.ordered else ""
        condition = within.condition(self.divided_by)
        return (
            f"SELECT {', '.join(self.select)} FROM {self.source}"
            + (f" FORCE INDEX (PRIMARY) WHERE {condition}" if condition else "")
            + (f" ORDER BY {order}" if order else "")
        )


def read_schemas(connection: Connection, filter: Filter) -> dict[str, str]:
    """The captured schemas, each with its CREATE DATABASE."""
    rows = query(
        connection,
        "SELECT SCHEMA_NAME AS s, DEFAULT_CHARACTER_SET_NAME AS charset, DEFAULT_COLLATION_NAME AS collation"
        " FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME",
    )
    return {
        row["s"]: f"CREATE DATABASE IF NOT EXISTS {quoted(row['s'])}"
        f" DEFAULT CHARACTER SET {row['charset']} COLLATE {row['collation']}"
        for row in rows
        if filter.captures_schema(row["s"])
    }


def read_definitions(connection: Connection, filter: Filter) -> Definitions:
    """All tables of captured schemas: a table that is not captured may be renamed to one that is.

    The session must be prepared by `snapshot_point.prepare_session`, which shows every column.
    """
    everything = Filter(Filters())
    tables = {}
    for table in read_tables(connection, everything):
        name = TableName(filter.fold(table.layout.name.schema), filter.fold(table.layout.name.table))
        if filter.captures_schema(name.schema):
            tables[name] = TableDefinition(replace(table.layout, name=name), table.charset)
    rows = query(
        connection, "SELECT SCHEMA_NAME AS s, DEFAULT_CHARACTER_SET_NAME AS charset FROM information_schema.SCHEMATA"
    )
    schemas = {filter.fold(row["s"]): charset_name(row["charset"]) for row in rows if filter.captures_schema(row["s"])}
    for row in query(connection, _OTHER_TABLES):
        name = TableName(filter.fold(row["s"]), filter.fold(row["t"]))
        if filter.captures_schema(name.schema):
            kind = row["kind"]
            why = VIEW if kind == "VIEW" else f"the data dictionary does not show all columns of a {kind.lower()} table"
            tables[name] = TableDefinition.without_columns(name, why)
    return Definitions(tables, schemas)


def definitions_at_position(
    connection: Connection, source: Source, filter: Filter, clock: Clock
) -> tuple[SnapshotPoint, Definitions]:
    """Reads the tables at a position of the log, for a log that begins there without an initial load.

    Args:
        connection: an idle session.
        source: the source.
        filter: decides which schemas are captured.
        clock: the clock for waits.

    Raises:
        SourceUnavailable: a long statement blocks the lock.
        SourceChanged: DDL changed the tables in every attempt.
    """
    prepare_session(connection, source)
    before = read_definitions(connection, filter)
    for _ in range(ATTEMPTS):
        point = fix_snapshot_point(connection, clock)
        after = read_definitions(connection, filter)
        if after == before:
            return point, after
        before = after
    raise SourceChanged(f"DDL changed the source's tables in each of {ATTEMPTS} attempts to read them")


def read_tables(connection: Connection, filter: Filter, only: TableName | None = None) -> list[SourceTable]:
    """The captured tables, or one of them."""
    columns: dict[TableName, list[Row]] = {}
    keys: dict[TableName, list[Row]] = {}
    for sql, found in ((_COLUMNS, columns), (_KEYS, keys)):
        for row in query(connection, _restricted(sql, only), only or ()):
            found.setdefault(TableName(row["s"], row["t"]), []).append(row)
    tables = []
    double = _as_double(connection)
    for row in query(connection, _restricted(_TABLES, only, "t."), only or ()):
        name = TableName(row["s"], row["t"])
        if filter.captures(*name) and name in columns:
            tables.append(_table(row, columns[name], keys.get(name, []), filter, double))
    return tables


def _restricted(sql: str, only: TableName | None, alias: str = "") -> str:
    condition = _ONE_TABLE.replace("TABLE_", f"{alias}TABLE_")
    return sql.replace("ORDER BY", condition + "ORDER BY") if only else sql


def _table(table: Row, columns: list[Row], key: list[Row], filter: Filter, double: str) -> SourceTable:
    name = TableName(table["s"], table["t"])
    index_of = {row["name"]: index for index, row in enumerate(columns)}
    layout = TableLayout(name, tuple(map(_column, columns)), tuple(index_of[part["name"]] for part in key))
    return SourceTable(
        layout=layout,
        select=tuple(_select(column, double) for column in columns),
        kinds="".join(map(_kind, columns)),
        texts=tuple(_text(name, column, filter) for column in layout.columns),
        ordered=bool(key) and all(part["prefix"] is None for part in key),
        divided_by=tuple(_divided_by(key, {row["name"]: row for row in columns})),
        created=str(table["created"]),
        transactional=bool(table["transactional"]),
        estimate=int(table["estimate"] or 0),
        bytes=int(table["bytes"] or 0),
        charset=charset_of(table["collation"]),
    )


def _divided_by(key: list[Row], columns: dict[str, Row]) -> Iterator[KeyColumn]:
    for part in key:
        row = columns[part["name"]]
        column = key_column(quoted(row["name"]), row["base"].lower(), row["charset"], row["collation"])
        if column is None or part["prefix"] is not None:
            return
        yield column


def _column(row: Row) -> Column:
    base = _base(row)
    return Column(
        name=row["name"],
        type=_type(base, row),
        unsigned="unsigned" in _after_type(row).split(),
        charset=_charset(base, row),
        labels=_labels(row["full"]) if base in LABELLED else (),
        nullable=row["nullable"] == "YES",
    )


def _base(row: Row) -> str:
    base = row["base"].lower()
    return "geometry" if base in SPATIAL else base


def _type(base: str, row: Row) -> str:
    if base == "decimal":
        return f"decimal({row['digits']},{row['scale']})"
    if base == "bit":
        return f"bit({row['digits']})"
    if base in {"time", "datetime", "timestamp"} and row["fraction"]:
        return f"{base}({row['fraction']})"
    if base in {"char", "varchar", "binary", "varbinary"}:
        return f"{base}({row['length']})"
    if base in FIXED:
        return f"binary({FIXED[base]})"
    if base == "vector":
        return str(row["full"]).lower()
    return base


def _charset(base: str, row: Row) -> str:
    if base in BYTES or base in FIXED:
        return "binary"
    if base not in TEXTS and base not in LABELLED:
        return ""
    if row["charset"] is None:  # ENUM and SET of CHARACTER SET binary, at some servers
        return BINARY
    return "utf8mb3" if row["charset"] == "utf8" else str(row["charset"])


def _labels(full: str) -> tuple[str, ...]:
    return tuple(_ESCAPED.sub(_unescaped, label) for label in _LABEL.findall(full))


def _unescaped(match: re.Match[str]) -> str:
    return "'" if match[1] is None else _ESCAPES.get(match[1], match[1])


def _after_type(row: Row) -> str:
    """The attributes after the type in COLUMN_TYPE: `unsigned zerofill`."""
    return row["full"].lower().rpartition(")")[2] if row["base"].lower() not in LABELLED else ""


def _select(row: Row, double: str) -> str:
    """An expression whose text is the value in the binary log."""
    base, name = _base(row), quoted(row["name"])
    if base in {"float", "double"}:
        return double.format(name)  # FLOAT prints six digits only, FLOAT(7,4) four decimals
    if base in FIXED:
        return f"CAST({name} AS BINARY({FIXED[base]}))"
    if base == "decimal" and "zerofill" in _after_type(row):
        return f"CAST({name} AS DECIMAL({row['digits']},{row['scale']}))"
    return name


def _text(table: TableName, column: Column, filter: Filter) -> Spec | None:
    if column.charset == BINARY and column.type in LABELLED:
        spec = text_spec("utf8mb4")  # as labels are read from the log
    elif column.charset in {"", BINARY}:
        return None
    else:
        spec = text_spec(column.charset)
    return keeping_bytes(spec) if filter.keeps_invalid_text(*table, column.name) else spec


def _kind(row: Row) -> str:
    base = _base(row)
    if base in TEXTS or base in LABELLED:
        return "t"
    if base in INTEGERS:
        return "i"
    if base in {"float", "double"}:
        return "d"
    return "b" if base in BYTES or base in FIXED or base in {"bit", "geometry", "vector"} else "s"


def _as_double(connection: Connection) -> str:
    """A format string that makes an SQL expression for a FLOAT or DOUBLE column with all its digits."""
    mariadb = "mariadb" in str(connection.get_server_info()).lower()  # type: ignore[no-untyped-call]
    return "CAST({} AS DOUBLE)" if mariadb or release(connection) >= CAST_AS_DOUBLE else "{} * 1e0"
