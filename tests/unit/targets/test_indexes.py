"""Secondary indexes in the definitions that a target keeps."""

from __future__ import annotations

import json

import pytest

from connector.ddl.indexes import KeyPart, TableIndex
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.plan import plan
from connector.targets.postgres.indexes import PostgresIndex, planned
from connector.targets.table import from_json, to_json
from connector.targets.target_schema import TargetSchema, changed

T = TableName("shop", "t")
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), UNIQUE u (b(5)), KEY k (a DESC, b))"


def after(*statements: str, known: TargetSchema | None = None) -> TargetSchema:
    known = known or TargetSchema()
    for sql in statements:
        known = plan(Statement("shop", sql), known, 0).target_schema
    return known


def test_definition_written_and_read_keeps_indexes() -> None:
    table = after(CREATE).get(T)
    read = from_json(T, to_json(table))
    assert read.indexes == table.indexes
    assert read.indexes == (
        TableIndex("u", (KeyPart("b", 5),), unique=True),
        TableIndex("k", (KeyPart("a", 0, descending=True), KeyPart("b"))),
    )


def test_definition_of_an_earlier_version_has_unknown_indexes_and_keeps_them_unknown() -> None:
    stored = json.loads(to_json(after(CREATE).get(T)))
    del stored["indexes"]
    known = TargetSchema([from_json(T, json.dumps(stored))])
    statements = ("CREATE INDEX i ON t (a)", "DROP INDEX i ON t", "ALTER TABLE t ADD INDEX (a), ADD c INT UNIQUE")
    table = after(*statements, known=known).get(T)
    assert table.indexes is None
    assert "indexes" not in json.loads(to_json(table))


def test_statement_about_an_index_alone_changes_the_stored_definition_and_no_rows() -> None:
    before = after(CREATE)
    for sql in ("CREATE INDEX i ON t (a)", "ALTER TABLE t ADD UNIQUE (a)", "DROP INDEX k ON t"):
        found = plan(Statement("shop", sql), before, 0)
        assert found.operations == ()
        assert changed(before, found.target_schema) == ([T], [found.target_schema.get(T)])


def test_table_like_another_and_a_renamed_one_have_its_indexes() -> None:
    known = after(CREATE, "CREATE TABLE v LIKE t", "RENAME TABLE t TO w")
    assert (
        known.get(TableName("shop", "v")).indexes
        == known.get(TableName("shop", "w")).indexes
        == after(CREATE).get(T).indexes
    )


def test_mariadb_forms_of_index_statements_are_read() -> None:
    known = after(
        CREATE,
        "CREATE OR REPLACE INDEX k ON t (b)",
        "CREATE INDEX IF NOT EXISTS u ON t (a)",
        "ALTER TABLE t ADD INDEX IF NOT EXISTS u (a), ADD UNIQUE KEY IF NOT EXISTS n (a), DROP INDEX IF EXISTS none",
    )
    assert {(one.name, one.unique, one.parts[0].column) for one in known.get(T).indexes or ()} == {
        ("u", True, "b"),
        ("k", False, "b"),
        ("n", True, "a"),
    }


@pytest.mark.parametrize(
    ("column", "unique"),
    [
        ("e ENUM('a','b')", True),
        ("e ENUM('','a')", False),
        ("e ENUM('a','a')", False),
        ("e SET('','a')", False),
        ("e VARCHAR(10) CHARACTER SET tis620", False),
        ("e VARCHAR(10) CHARACTER SET armscii8", False),
        ("e VARCHAR(10) CHARACTER SET latin1", True),
    ],
)
def test_index_is_unique_where_different_values_differ_on_the_target(column: str, unique: bool) -> None:
    table = after(f"CREATE TABLE t (id INT PRIMARY KEY, {column}, UNIQUE KEY u (e))").get(T)
    index = planned(table, (table.indexes or ())[0])
    assert isinstance(index, PostgresIndex)
    assert index.unique == unique
