"""Definitions without the columns that are not published."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.ddl.drop_columns import ColumnRules, DropContext, drop_columns
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax.ast import CreateTableStatement
from connector.ddl.syntax.parse import parse
from connector.ddl.table_spec import table_spec
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout, TableName


@dataclass(frozen=True)
class Rules:
    """Drops what is called secret, masks what is called hidden."""

    def drops(self, column: str) -> bool:
        return column.lower().startswith("secret")

    def treats(self, column: str) -> object:
        return self.drops(column), column.lower().startswith("hidden")


RULES = {"t": Rules(), "u": Rules()}
RULES["u"] = RULES["t"]
OTHER = Rules()
AFTER = TableLayout(TableName("shop", "t"), tuple(Column(n, "int") for n in ("a", "secret", "secret2", "x", "b")))


def rules(name: TableName) -> ColumnRules | None:
    return OTHER if name.table == "other" else RULES.get(name.table)


def published(sql: str, *, after: TableLayout | None = None, **options: str) -> str | None:
    found = drop_columns(Statement("shop", sql, options), DropContext(rules, lambda _: after))
    return None if found is None else found.sql


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("CREATE TABLE t (id INT PRIMARY KEY, secret INT)", "CREATE TABLE t (id INT PRIMARY KEY)"),
        ("CREATE TABLE t (SECRET INT, id INT PRIMARY KEY)", "CREATE TABLE t ( id INT PRIMARY KEY)"),
        (
            "CREATE TABLE `t` (\n  `id` int,\n  `secret` enum('a,)','b') DEFAULT 'b' COMMENT 'x, y',\n  `v` text,\n"
            "  PRIMARY KEY (`id`),\n  KEY `s` (`v`(3),`secret`),\n  KEY `secret` (`id`)\n) ENGINE=X",
            "CREATE TABLE `t` (\n  `id` int,\n  `v` text,\n  PRIMARY KEY (`id`),\n  KEY `secret` (`id`)\n) ENGINE=X",
        ),
        ("CREATE TABLE t (a INT, -- one, two\n b INT, secret INT)", "CREATE TABLE t (a INT, -- one, two\n b INT)"),
        ("ALTER TABLE t ADD COLUMN secret INT NOT NULL DEFAULT 1 AFTER a", None),
        ("ALTER TABLE t ADD x INT, ADD INDEX i (secret), DROP secret", "ALTER TABLE t ADD x INT"),
        ("ALTER TABLE t MODIFY secret BIGINT FIRST, ENGINE=InnoDB", "ALTER TABLE t  ENGINE=InnoDB"),
        ("ALTER TABLE t CHANGE secret secret2 INT", None),
        ("ALTER TABLE t RENAME COLUMN secret TO secret2, RENAME TO u", "ALTER TABLE t  RENAME TO u"),
        ("ALTER TABLE t ALTER secret SET DEFAULT 5", None),
        ("ALTER TABLE t DROP INDEX secret, DROP PRIMARY KEY", "ALTER TABLE t DROP INDEX secret, DROP PRIMARY KEY"),
        ("ALTER TABLE t ADD INDEX (a), ORDER BY secret, a", "ALTER TABLE t ADD INDEX (a), ORDER BY secret, a"),
        ("ALTER TABLE t RENAME COLUMN hidden1 TO hidden2", "ALTER TABLE t RENAME COLUMN hidden1 TO hidden2"),
        ("CREATE INDEX i ON t (secret)", None),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t (a)"),
        ("CREATE INDEX i ON free (secret)", "CREATE INDEX i ON free (secret)"),
    ],
)
def test_dropped_columns_are_removed_from_statements(sql: str, left: str | None) -> None:
    assert published(sql) == left


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE free (secret INT)",
        "ALTER TABLE free ADD secret INT",
        "CREATE TABLE t LIKE u",
        "RENAME TABLE t TO u",
        "DROP TABLE t",
        "TRUNCATE t",
        "CREATE VIEW t AS SELECT 1",
        "CREATE DATABASE secret",
        "ALTER TABLE t ENGINE=X",
        "ALTER TABLE t",
        "ALTER TABLE t ADD PARTITION (PARTITION secret VALUES LESS THAN (5))",
    ],
)
def test_statement_without_dropped_columns_is_unchanged(sql: str) -> None:
    assert published(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t LIKE free",
        "CREATE TABLE free LIKE t",
        "CREATE TABLE t LIKE other",
        "RENAME TABLE x TO y, t TO free",
        "ALTER TABLE t RENAME free",
        "ALTER TABLE t RENAME COLUMN secret TO shown",
        "ALTER TABLE t CHANGE shown secret INT",
        "ALTER TABLE t CHANGE hidden shown INT",
        "ALTER TABLE t ADD (x INT, secret INT)",
        "CREATE TABLE t (secret INT)",
        "CREATE TABLE t (secret INT PRIMARY KEY, a INT)",
        "CREATE TABLE t (secret INT, a INT, PRIMARY KEY (secret, a))",
        "ALTER TABLE t ADD PRIMARY KEY (secret)",
        "ALTER TABLE t ADD secret INT PRIMARY KEY",
        "CREATE TABLE t AS SELECT 1",
        "ALTER TABLE t ADD x INT AFTER secret",
        "CREATE TABLE t (a INT /*!80016 , secret INT */)",
    ],
)
def test_statement_that_cannot_be_rewritten_is_refused(sql: str) -> None:
    with pytest.raises(Unsupported):
        published(sql)


def test_position_after_a_dropped_column_moves_to_the_one_before() -> None:
    assert published("ALTER TABLE t ADD x INT AFTER secret2", after=AFTER) == "ALTER TABLE t ADD x INT AFTER `a`"
    first = TableLayout(AFTER.name, AFTER.columns[1:])
    assert published("ALTER TABLE t MODIFY x INT after `secret2`", after=first) == "ALTER TABLE t MODIFY x INT FIRST"
    for sql in ("ALTER TABLE t ADD x INT AFTER secret, ADD b INT AFTER a", "ALTER TABLE t ADD y INT AFTER secret"):
        with pytest.raises(Unsupported):
            published(sql, after=AFTER)


NAMES = ("a", "b", "c", "secret", "secret2", "Secret3")
TYPES = ("INT", "VARCHAR(10) NOT NULL DEFAULT 'x,)('", "ENUM('secret', 'b') COMMENT 'secret'", "DECIMAL(10,2)")
items = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TYPES)), min_size=1, unique_by=lambda item: item[0])
separators = st.sampled_from([", ", ",\n  ", " /* , secret */ , "])


@given(items, separators, st.sampled_from(["", ", KEY k (secret, a)", ", UNIQUE (a)"]))
def test_remaining_columns_equal_the_table_without_the_dropped_ones(
    columns: list[tuple[str, str]], between: str, key: str
) -> None:
    sql = f"CREATE TABLE t ({between.join(f'`{name}` {type_}' for name, type_ in columns)}{key}) ENGINE=X"
    kept = [name for name, _ in columns if not name.lower().startswith("secret")]
    if not kept:
        with pytest.raises(Unsupported):
            published(sql)
        return
    left = published(sql)
    assert left is not None
    command = parse(Statement("shop", left))[0].command
    assert isinstance(command, CreateTableStatement)
    assert [spec.column.name for spec in table_spec(command.body, ServerDialect()).specs] == kept
    whole = drop_columns(Statement("shop", left), DropContext(rules, lambda _: None))
    assert whole is not None
    assert whole.sql == left
