"""Definitions with ordinary indexes in place of unique ones whose published values may repeat."""

from __future__ import annotations

import pytest

from connector.config.filters import Filters
from connector.config.source import Source
from connector.log.transaction.batch import Statement
from connector.mysql.transforms.filters import Filter, fingerprint

RULE = {"match": ["shop.t"], "mask": {"m": {"fixed": "-"}, "c": {"truncate": 3}, "h": {"hash": 32}}}
KEY = {"hash_key": "0123456789abcdef0123456789abcdef"}


def published(sql: str, rule: dict[str, object]) -> str | None:
    found = Filter(Filters.model_validate({**KEY, "tables": [rule]})).published_statement(
        Statement("shop", sql, {}), lambda _: None
    )
    return None if found is None else found.sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "CREATE TABLE t (id INT, m TEXT, UNIQUE KEY `m` (`m`), UNIQUE (id, c), UNIQUE u (h), KEY k (m))",
            "CREATE TABLE t (id INT, m TEXT, KEY `m` (`m`), KEY (id, c), UNIQUE u (h), KEY k (m))",
        ),
        (
            "CREATE TABLE t (m VARCHAR(9) UNIQUE KEY NOT NULL, n INT UNIQUE, c TEXT, CONSTRAINT a UNIQUE (c(9)), "
            "CONSTRAINT b UNIQUE INDEX d USING BTREE (m), CONSTRAINT UNIQUE e (m))",
            "CREATE TABLE t (m VARCHAR(9)  NOT NULL, n INT UNIQUE, c TEXT, KEY `a` (c(9)), "
            "KEY d USING BTREE (m), KEY e (m))",
        ),
        ("ALTER TABLE t ADD UNIQUE (m), ADD n INT UNIQUE", "ALTER TABLE t ADD KEY (m), ADD n INT UNIQUE"),
        ("ALTER TABLE t ADD CONSTRAINT `x y` UNIQUE (c)", "ALTER TABLE t ADD KEY `x y` (c)"),
        ("ALTER TABLE t MODIFY m VARCHAR(20) UNIQUE", "ALTER TABLE t MODIFY m VARCHAR(20) "),
        ("CREATE UNIQUE INDEX i ON t (c)", "CREATE  INDEX i ON t (c)"),
        ("CREATE UNIQUE INDEX i ON t (h)", "CREATE UNIQUE INDEX i ON t (h)"),
        ("CREATE TABLE u (m INT UNIQUE)", "CREATE TABLE u (m INT UNIQUE)"),
    ],
)
def test_unique_index_over_a_masked_column_is_published_as_an_ordinary_one(sql: str, expected: str) -> None:
    assert published(sql, RULE) == expected


def test_renamed_and_dropped_columns_are_published_as_without_the_mask() -> None:
    rule = {**RULE, "rename": {"m": "mail"}, "drop": ["d"]}
    sql = "CREATE TABLE t (id INT PRIMARY KEY, m TEXT, d INT, UNIQUE a (id, d), UNIQUE b (id, m))"
    assert published(sql, rule) == "CREATE TABLE t (id INT PRIMARY KEY, `mail` TEXT, KEY b (id, `mail`))"


@pytest.mark.parametrize("left_out", ["insert", "update", "delete"])
def test_table_of_which_rows_are_left_out_has_no_unique_index(left_out: str) -> None:
    actions = [one for one in ("insert", "update", "delete", "ddl") if one != left_out]
    sql = "CREATE TABLE t (id INT PRIMARY KEY, n INT UNIQUE, UNIQUE (n))"
    assert published(sql, {"match": ["shop.t"], "actions": actions}) == (
        "CREATE TABLE t (id INT PRIMARY KEY, n INT , KEY (n))"
    )


@pytest.mark.parametrize(("rule", "other"), [(RULE, True), ({"match": ["shop.t"], "mask": {"h": {"hash": 32}}}, False)])
def test_fingerprint_tells_published_definitions_apart_from_earlier_ones(
    rule: dict[str, object], other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source.model_validate({"filters": {**KEY, "tables": [rule]}})
    now = fingerprint(source)
    monkeypatch.setattr("connector.mysql.transforms.filters.repeats_values", lambda rule: False)
    assert (fingerprint(source) != now) is other
