"""The table history compared with a real MySQL's dictionary after each statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from connector.ddl.rename_columns import RenameContext, rename_columns
from connector.ddl.rename_tables import rename_tables
from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableLayout, TableName
from tests.support.definitions import MODES, OTHER, SCHEMA, Statements
from tests.support.servers.environment import SqlServer
from tests.support.watched import Watched, rows_of, walk


@pytest.fixture
def watched(mysql_server: SqlServer) -> Iterator[Watched]:
    found = Watched(mysql_server)
    yield found
    found.close()


@pytest.mark.parametrize("seed", MODES)
def test_history_equals_the_dictionary_after_every_statement(watched: Watched, seed: int) -> None:
    """MySQL makes of labels that are not ASCII whatever it makes."""
    watched.run(f"SET sql_mode = '{MODES[seed]}'")
    ansi = seed == 3
    told, layouts = walk(
        watched,
        Statements(seed),
        400,
        reasons=("a conversion of ENUM or SET labels",),
        said=lambda sql: sql.replace("``", "?").replace("`", '"') if ansi else sql,
    )
    assert told > 80
    assert layouts > 20


OTHER_NAMES = {"a": "x y", "b": "a", "c": "Day", "e f": "b", "d": "D2"}  # and g stays


class Everywhere:
    """Columns have these names in every table."""

    names = OTHER_NAMES

    def drops(self, column: str) -> bool:
        return False


def mirrored(sql: str) -> str:
    """The definition, about schemas beside those that it is about, with other names of columns."""
    statement = rename_columns(Statement(SCHEMA, sql), RenameContext(lambda _: Everywhere(), lambda _: None, str))
    return rename_tables(
        statement, lambda name: TableName(f"m {name.schema}", name.table), lambda name: name and f"m {name}"
    ).sql


def structure(watched: Watched, schema: str, called: dict[str, str]) -> dict[tuple[str, ...], Any]:
    """Its tables as the dictionary has them: columns and what they are, indexes and what they are over."""
    found: dict[tuple[str, ...], Any] = {}
    for what in (
        "TABLE_NAME, 'columns', COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME, EXTRA, COLUMN_DEFAULT, "
        "COLUMN_KEY FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{}' ORDER BY TABLE_NAME, ORDINAL_POSITION",
        "TABLE_NAME, 'indexes', COLUMN_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLLATION, SUB_PART, EXPRESSION IS NULL "
        "FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{}'",
    ):
        watched.run("SELECT " + what.format(schema))
        for table, kind, column, *rest in watched.cursor.fetchall():
            found.setdefault((table, kind), []).append((called.get(str(column).lower(), column), *rest))
    return {of: sorted(rows, key=str) if "indexes" in of else rows for of, rows in found.items()}


def test_renamed_definitions_have_the_same_effect(watched: Watched) -> None:
    """What the server takes it takes with other names, too, and makes the same tables of it."""
    statements, taken = Statements(4), 0
    watched.run(*(f"DROP DATABASE IF EXISTS `m {schema}`" for schema in (SCHEMA, OTHER)))
    watched.run(f"CREATE DATABASE `m {SCHEMA}` CHARACTER SET latin1", f"CREATE DATABASE `m {OTHER}`")
    try:
        for _ in range(150):
            sql = statements.one().replace("CREATE TABLE IF NOT EXISTS", "CREATE TABLE")  # else it may be anything
            if "SELECT" in sql or "TEMPORARY" in sql or "VIEW" in sql or " v " in sql:
                continue
            try:
                watched.run(sql)
            except pymysql.MySQLError:
                continue
            taken += 1
            watched.run(mirrored(sql))
            for schema in (SCHEMA, OTHER):
                assert structure(watched, f"m {schema}", {}) == structure(watched, schema, OTHER_NAMES), sql
    finally:
        watched.run(*(f"DROP DATABASE IF EXISTS `m {schema}`" for schema in (SCHEMA, OTHER)))
    assert taken > 20


def forged(watched: Watched, **columns: Any) -> None:
    """Make the history know table t's first column otherwise."""
    name = TableName(SCHEMA, "t")
    table = watched.history._known.tables[name]
    first, *others = table.layout.columns
    layout = replace(table.layout, columns=(replace(first, **columns), *others))
    watched.history._known = Definitions({name: replace(table, layout=layout)}, watched.known.schemas)


@pytest.mark.parametrize(
    ("definition", "otherwise", "told"),
    [
        ("varchar(20)", {"type": "varchar(21)"}, "is varchar(20) latin1 NULL, in the history varchar(21) latin1 NULL"),
        ("varchar(20)", {"charset": "cp1251"}, "in the history varchar(20) cp1251 NULL"),
        ("int", {"unsigned": True}, "is int NULL, in the history int unsigned NULL"),
        ("int", {"nullable": False}, "in the history int NOT NULL"),
        ("decimal(5,2)", {"type": "decimal(5,3)"}, "is decimal(5,2) NULL"),
        ("enum('a','b')", {"labels": tuple(map(str, range(256)))}, "has numbers of 1 bytes, and 256 labels"),
        ("datetime(3)", {"type": "datetime"}, "is datetime(3) NULL, in the history datetime NULL"),
    ],
)
def test_table_unlike_its_history_is_refused(
    watched: Watched, definition: str, otherwise: dict[str, Any], told: str
) -> None:
    watched.run(f"CREATE TABLE t (v {definition}, w int)")
    watched.read()
    forged(watched, **otherwise)
    watched.run("INSERT INTO t (w) VALUES (1)")

    with pytest.raises(CorruptBinlog) as caught:
        watched.read()

    assert told in str(caught.value)
    assert caught.value.where["table"] == (SCHEMA, "t")
    assert caught.value.where["file"]
    assert caught.value.where["pos"] > 4
    assert "binlog_row_metadata = FULL" in caught.value.hint


def test_table_with_another_number_of_columns_is_refused(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int)")
    watched.read()
    table = watched.history._known.tables[TableName(SCHEMA, "t")]
    watched.history._known = Definitions({table.name: replace(table, layout=TableLayout(table.name, ()))})
    watched.run("INSERT INTO t VALUES (1)")

    with pytest.raises(CorruptBinlog) as caught:
        watched.read()

    assert caught.value.where["table"] == (SCHEMA, "t")
    assert "binlog_row_metadata = FULL" in caught.value.hint


def test_rows_after_an_unknown_definition_are_refused_with_it(watched: Watched) -> None:
    """The definition itself, and rows of other tables, go through."""
    watched.run("CREATE TABLE t (v int) PARTITION BY HASH (v) PARTITIONS 2", "CREATE TABLE u (v int)")
    watched.run("ALTER TABLE t TRUNCATE PARTITION p0", "INSERT INTO u VALUES (1)")
    assert [rows.count for rows in rows_of(watched.read())] == [1]
    watched.run("INSERT INTO t VALUES (1)")

    with pytest.raises(Unsupported) as caught:
        watched.read()

    unknown_since = str(caught.value.where["unknown_since"])
    assert "ALTER TABLE t TRUNCATE PARTITION p0" in unknown_since
    assert "-bin.0" in unknown_since
    assert caught.value.where["file"]


def test_full_metadata_is_used_instead_of_the_history(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int, w int)")
    watched.read()
    forged(watched, unsigned=True, name="other")
    watched.run("SET GLOBAL binlog_row_metadata = FULL", "INSERT INTO t VALUES (1, 2)")
    (layout,) = (rows.layout for rows in rows_of(watched.read()))
    assert [column.name for column in layout.columns] == ["v", "w"]

    watched.run("SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO t VALUES (1, 2)")
    with pytest.raises(CorruptBinlog) as caught:
        watched.read()
    assert "int unsigned" in str(caught.value.where["difference"])


def test_metadata_setting_can_change_between_definitions(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int)")
    names = []
    for number, metadata in enumerate(("MINIMAL", "FULL", "FULL", "MINIMAL", "MINIMAL", "FULL")):
        watched.run(
            f"SET GLOBAL binlog_row_metadata = {metadata}",
            "INSERT INTO t () VALUES ()",
            f"ALTER TABLE t ADD c{number} enum('a') FIRST",
            "INSERT INTO t () VALUES ()",
        )
        found = [rows.layout for rows in rows_of(watched.read())]
        names.append([[column.name for column in layout.columns] for layout in found])
    columns = ["c5", "c4", "c3", "c2", "c1", "c0", "v"]
    assert names == [[columns[-1 - n :], columns[-2 - n :]] for n in range(6)]
