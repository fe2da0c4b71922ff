"""What of the configuration decides what is captured, as an epoch's record has it; the rest is asked of real servers
(tests/integration/producer/test_widened.py)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.config.source import Source
from connector.mysql.preflight import cascades
from connector.mysql.preflight.wider_filters import accepts_all, same_tables
from connector.mysql.snapshot import loadable
from connector.mysql.transforms.filters import capture_of, fingerprint
from connector.redaction import forget, redacted

RULE = {"match": ["s.t"], "mask": {"a": {"hash": 16}}}


def source(**filters: Any) -> Source:
    return Source.model_validate({"filters": {"hash_key": "k" * 16, **filters}})


@pytest.mark.parametrize(
    "other",
    [
        {"unknown_ddl": ["DROP GHOST *"]},
        {"do": [], "ignore": [], "hash_key_file": None},
        {"tables": [{**RULE, "drop": [], "publish_as": "", "actions": ["insert", "update", "delete", "ddl"]}]},
    ],
)
def test_equivalent_filters_have_equal_captures(other: dict[str, Any]) -> None:
    before, now = source(tables=[RULE]), source(**{"tables": [RULE], **other})
    assert same_tables(capture_of(before), now)
    assert same_tables(capture_of(now), before)
    assert fingerprint(before) == fingerprint(now)


@pytest.mark.parametrize("other", [{"do": ["s"]}, {"tables": []}, {"hash_key": "x" * 16}])
def test_different_filters_have_different_captures(other: dict[str, Any]) -> None:
    assert not same_tables(capture_of(source(tables=[RULE])), source(**{"tables": [RULE], **other}))


def test_null_mask_is_in_the_record() -> None:
    null = source(tables=[{"match": ["s.t"], "mask": {"a": {"fixed": None}}}])
    kept = capture_of(null)["filters"]
    assert kept == {"tables": [{"match": ["s.t"], "mask": {"a": {"fixed": None}}}]}
    assert Filters.model_validate(kept).tables == null.filters.tables


def test_accept_partial_of_everything_may_stand_among_other_patterns() -> None:
    assert accepts_all(["s.t", "*"])
    assert not accepts_all([])
    assert not accepts_all(["s.*"])


@pytest.mark.parametrize("sql", [loadable._TABLES, cascades._TABLES])
def test_system_versioned_tables_count_as_tables_with_rows(sql: str) -> None:
    with sqlite3.connect(":memory:") as server:
        server.execute("ATTACH ':memory:' AS information_schema")
        server.execute("CREATE TABLE information_schema.TABLES (TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE)")
        server.execute("CREATE TABLE information_schema.ENGINES (ENGINE, TRANSACTIONS)")
        server.execute("INSERT INTO information_schema.ENGINES VALUES ('InnoDB', 'YES')")
        kinds = ("BASE TABLE", "SYSTEM VERSIONED", "VIEW", "SEQUENCE")
        server.executemany("INSERT INTO TABLES VALUES ('s', ?, ?, 'InnoDB')", [(kind.lower(), kind) for kind in kinds])
        found = server.execute(sql).fetchall()
        more = [("s", "sequence")] if sql == loadable._TABLES else []  # of which the log has every value
        assert [row[:2] for row in found] == [("s", "base table"), *more, ("s", "system versioned")]


def test_hash_key_from_a_file_is_in_no_text(tmp_path: Path) -> None:
    forget()
    (tmp_path / "key").write_text("planted-in-a-file-1\n")
    kept = capture_of(source(hash_key="", hash_key_file=str(tmp_path / "key")))
    assert "planted" not in str(kept)
    assert "planted" not in redacted("a mask by planted-in-a-file-1 failed")
    forget()
