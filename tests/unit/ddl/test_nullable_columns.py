"""Definitions in which columns may be NULL that a rule publishes NULL for."""

from __future__ import annotations

import pytest

from connector.config.filters import Filters
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.transforms.filters import Filter

RULE = {"match": ["shop.t"], "zero_dates": ["d*"], "mask": {"secret": {"fixed": None}, "note": {"fixed": "-"}}}
KNOWN = TableLayout(TableName("shop", "t"), (Column("dk", "date"), Column("d", "date")), (0,))
OFF = {"explicit_defaults_for_timestamp": "0"}


def published(sql: str, known: TableLayout | None = None, **options: str) -> str:
    filters = Filters.model_validate({"tables": [{**RULE, "rename": {"d2": "e2"}}]})
    found = Filter(filters).published_statement(Statement("shop", sql, options), lambda _: known)
    assert found is not None
    return found.sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, d DATE NOT NULL, n INT NOT NULL, secret INT NOT NULL)",
            "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, d DATE NULL, n INT NOT NULL, secret INT NULL)",
        ),
        ("CREATE TABLE t (d DATE NOT NULL DEFAULT '0000-00-00')", "CREATE TABLE t (d DATE NULL DEFAULT NULL)"),
        (
            "ALTER TABLE t ADD d DATETIME(3) DEFAULT 0 NOT NULL AFTER x",
            "ALTER TABLE t ADD d DATETIME(3) DEFAULT NULL NULL AFTER x",
        ),
        ("ALTER TABLE t MODIFY `D` DATE NOT NULL FIRST", "ALTER TABLE t MODIFY `D` DATE NULL FIRST"),
        ("ALTER TABLE t CHANGE d d3 DATE NOT NULL, ADD x INT", "ALTER TABLE t CHANGE d d3 DATE NULL, ADD x INT"),
        ("ALTER TABLE t ADD (d DATE NOT NULL, x INT NOT NULL)", "ALTER TABLE t ADD (d DATE NULL, x INT NOT NULL)"),
        ("ALTER TABLE t ADD d2 DATE NOT NULL", "ALTER TABLE t ADD `e2` DATE NULL"),
        ("ALTER TABLE t ADD d DATE /*!80023 NOT NULL */", "ALTER TABLE t ADD d DATE /*!80023 NULL */"),
        (
            "ALTER TABLE t ADD d DATE NOT NULL DEFAULT '2024-01-01'",
            "ALTER TABLE t ADD d DATE NULL DEFAULT '2024-01-01'",
        ),
    ],
)
def test_column_published_with_nulls_is_defined_as_null(sql: str, expected: str) -> None:
    assert published(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (d DATE NOT NULL PRIMARY KEY)",
        "CREATE TABLE t (d DATE NOT NULL, PRIMARY KEY (D))",
        "ALTER TABLE t MODIFY dk DATE NOT NULL",  # of the key
        "CREATE TABLE t (d INT NOT NULL, note VARCHAR(9) NOT NULL, secrets INT NOT NULL)",
        "CREATE TABLE t (secret INT DEFAULT 0)",
        "CREATE TABLE other (d DATE NOT NULL)",
        "ALTER TABLE t DROP d",
        "CREATE TABLE t LIKE u",
    ],
)
def test_other_columns_keep_their_definition(sql: str) -> None:
    filters = Filters.model_validate({"tables": [RULE, {"match": ["shop.none"], "drop": ["x"]}]})
    if "LIKE" in sql:
        filters = Filters.model_validate({"tables": [{**RULE, "match": ["shop"]}]})
    found = Filter(filters).published_statement(Statement("shop", sql), lambda _: KNOWN)
    assert found is not None
    assert found.sql == sql


def test_implied_not_null_of_a_timestamp_is_replaced_by_null() -> None:
    sql = "CREATE TABLE t (d TIMESTAMP, n TIMESTAMP)"
    assert published(sql, **OFF) == "CREATE TABLE t (d TIMESTAMP NULL, n TIMESTAMP)"
    assert published(sql) == sql
    assert (
        published("ALTER TABLE t ADD d TIMESTAMP DEFAULT 0", **OFF) == "ALTER TABLE t ADD d TIMESTAMP DEFAULT NULL NULL"
    )
    # Only the source knows the time that existing rows get.
    assert published("ALTER TABLE t ADD d TIMESTAMP NOT NULL", **OFF) == "ALTER TABLE t ADD d TIMESTAMP NOT NULL"
