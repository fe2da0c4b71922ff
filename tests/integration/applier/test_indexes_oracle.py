"""A table's secondary indexes after each statement, held against those of a real MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pymysql
import pytest

from connector.ddl.indexes import OTHER, KeyPart, TableIndex
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.plan import plan
from connector.targets.target_schema import TargetSchema
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "index_oracle"
Cursor = pymysql.cursors.Cursor
# Statements about table t, in order; each list begins with its CREATE TABLE.
COURSES = {
    "inline and unnamed": [
        "CREATE TABLE t (id SERIAL, a INT UNIQUE, b INT UNIQUE KEY, c VARCHAR(50), PRIMARY KEY (b), "
        "UNIQUE (a), KEY (a, c), INDEX (c(10)), CONSTRAINT u UNIQUE (c, a), CONSTRAINT v UNIQUE KEY w (c))",
        "ALTER TABLE t ADD INDEX (a), ADD UNIQUE (a DESC, c(5)), ADD COLUMN d INT UNIQUE, MODIFY c VARCHAR(60) UNIQUE",
        "ALTER TABLE t ADD (e INT, f INT, INDEX (e, f)), DROP INDEX a_2, RENAME INDEX u TO u2",
        "ALTER TABLE t DROP COLUMN e",
        "ALTER TABLE t DROP KEY a, ADD KEY a (f)",
        "ALTER TABLE t CHANGE f g BIGINT, RENAME COLUMN a TO h, ADD INDEX (g), RENAME KEY w TO f",
        "ALTER TABLE t DROP COLUMN g, DROP COLUMN h",
        "ALTER TABLE t RENAME COLUMN c TO d, RENAME COLUMN d TO c",
    ],
    "statements": [
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), c TEXT, g POINT NOT NULL SRID 0)",
        "CREATE INDEX one ON t (a, b DESC) COMMENT 'x' ALGORITHM=INPLACE",
        "CREATE UNIQUE INDEX two USING BTREE ON t (b)",
        "CREATE FULLTEXT INDEX three ON t (c)",
        "CREATE SPATIAL INDEX four ON t (g)",
        "CREATE INDEX five ON t ((a + 1), b)",
        "ALTER TABLE t ADD INDEX ((a + 2)), ADD INDEX `index` TYPE BTREE (a), ADD FULLTEXT (b)",
        "DROP INDEX one ON t",
        "ALTER TABLE t DROP CONSTRAINT two, ALTER INDEX three INVISIBLE",
    ],
    "foreign keys": [
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, other INT, more INT, FOREIGN KEY (up) REFERENCES p (id), "
        "CONSTRAINT k FOREIGN KEY (other) REFERENCES p (id), FOREIGN KEY (id) REFERENCES p (id))",
        "ALTER TABLE t ADD FOREIGN KEY (more) REFERENCES p (id), ADD INDEX m (more, up)",
        "ALTER TABLE t DROP FOREIGN KEY k",
    ],
    "a unique index replaces a foreign key's": [
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, z INT, FOREIGN KEY (up) REFERENCES p (id))",
        "ALTER TABLE t ADD UNIQUE (up)",
        "ALTER TABLE t ADD INDEX (up, z)",
        "ALTER TABLE t DROP INDEX up_2",
    ],
    "CREATE INDEX replaces a foreign key's": [
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id))",
        "CREATE UNIQUE INDEX u ON t (up, id)",
        "ALTER TABLE t RENAME INDEX u TO up",
    ],
    "named foreign keys": [
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, b INT, c INT, FOREIGN KEY fkidx (up) REFERENCES p (id), "
        "CONSTRAINT cc FOREIGN KEY dd (b) REFERENCES p (id), CONSTRAINT FOREIGN KEY ee (c) REFERENCES p (id))",
        "ALTER TABLE t DROP FOREIGN KEY cc",
        "ALTER TABLE t ADD INDEX (b, c), CHANGE up up2 INT",
        "ALTER TABLE t RENAME INDEX ee TO c",
        "ALTER TABLE t ADD UNIQUE (c), ADD UNIQUE (up2)",
    ],
    "foreign keys that share columns": [
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) REFERENCES p (id), "
        "FOREIGN KEY (a, b) REFERENCES p (x, y))",
        "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES p (id)",
        "ALTER TABLE t ADD FOREIGN KEY (b, a) REFERENCES p (x, y), ADD INDEX (b)",
    ],
    "indexes that serve no foreign key": [
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, c VARCHAR(20), KEY k (up DESC), KEY c (c(5)), "
        "FOREIGN KEY (up) REFERENCES p (id), FOREIGN KEY (c) REFERENCES p (c))",
        "ALTER TABLE t ADD UNIQUE (c), ADD INDEX (up)",
    ],
}


@pytest.fixture(scope="module")
def mysql(mysql_server: SqlServer) -> Iterator[Cursor]:
    connection = connect(mysql_server)
    cursor = connection.cursor()
    cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
    cursor.execute(f"USE {SCHEMA}")
    cursor.execute("CREATE TABLE p (id INT PRIMARY KEY, c VARCHAR(20) UNIQUE, x INT, y INT, UNIQUE (x, y))")
    yield cursor
    cursor.execute(f"DROP DATABASE {SCHEMA}")
    connection.close()


def of_mysql(cursor: Cursor) -> set[TableIndex]:
    """The secondary indexes of table t, as the server has them."""
    cursor.execute(
        "SELECT INDEX_NAME, NON_UNIQUE, INDEX_TYPE, COLUMN_NAME, SUB_PART, COLLATION "
        "FROM information_schema.STATISTICS "
        f"WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = 't' AND INDEX_NAME <> 'PRIMARY' ORDER BY SEQ_IN_INDEX"
    )
    found: dict[str, TableIndex] = {}
    for name, plain, kind, column, length, order in cursor.fetchall():
        special = kind if kind in ("FULLTEXT", "SPATIAL") else ""
        before = found.get(name) or TableIndex(name, (), not plain, special)
        if column is None:
            found[name] = replace(before, kind=OTHER)
        else:
            part = KeyPart(column, 0 if special else length or 0, order == "D")
            found[name] = replace(before, parts=(*before.parts, part))
    return set(found.values())


def plain(indexes: Iterable[TableIndex]) -> set[TableIndex]:
    """The indexes without the field that the server does not show."""
    return {replace(index, generated=False) for index in indexes}


@pytest.mark.parametrize("course", COURSES)
def test_indexes_after_each_statement_are_those_of_the_source(mysql: Cursor, course: str) -> None:
    mysql.execute("DROP TABLE IF EXISTS t")
    known = TargetSchema()
    name = TableName(SCHEMA, "t")
    for sql in COURSES[course]:
        mysql.execute(sql)
        known = plan(Statement(SCHEMA, sql), known, 0).target_schema
        found = known.get(name).indexes
        assert found is not None
        assert plain(found) == of_mysql(mysql), sql
        mysql.execute("SHOW CREATE TABLE t")
        ((_, shown),) = mysql.fetchall()
        loaded = plan(Statement(SCHEMA, shown), TargetSchema(), 0).target_schema.get(name).indexes
        assert plain(loaded or ()) == of_mysql(mysql), shown
