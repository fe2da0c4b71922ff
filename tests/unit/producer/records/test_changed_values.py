"""Values that an ALTER TABLE changes although the columns look the same.

A NULL in a column that becomes NOT NULL, for which the source without strict mode fills in a value of its own; a column
that is dropped and added again; one that is computed in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connector.errors import Unsupported
from connector.log.ids import Action, Seqno
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.producer.records.conversion import DefinitionStep
from tests.unit.producer.records.event_log import CREATE, LAYOUT, Log, insert, rows, values

ID, A, V = LAYOUT.columns
FILLED = Column("n", "int", nullable=False)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    made.ddl(CREATE)
    made.event(insert({0: 1, 1: None, 2: "null"}, {0: 2, 1: 20, 2: "two"}))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        ("MODIFY a INT NOT NULL", (ID, replace(A, nullable=False), V)),
        ("MODIFY a BIGINT NOT NULL", (ID, Column("a", "bigint", nullable=False), V)),
        ("CHANGE a n INT NOT NULL FIRST", (FILLED, ID, V)),
        ("MODIFY a INT NOT NULL, RENAME COLUMN v TO w", (ID, replace(A, nullable=False), replace(V, name="w"))),
    ],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_null_that_the_source_has_filled_makes_its_row_unknown(
    log: Log, definition: str, columns: tuple[Column, ...], *, reopened: bool
) -> None:
    log.ddl(f"ALTER TABLE t {definition}")
    if reopened:
        log.close()
        log.open()
    key = columns.index(ID)
    after = TableLayout(LAYOUT.name, columns, (key,))
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(rows(Action.UPDATE, ({key: 1}, {2: "x"}), layout=after))
    log.completion.go_back(Seqno(log.seqno - 1))
    (found,) = log.event(rows(Action.UPDATE, ({key: 2}, {2: "x"}), layout=after))
    ((before, image),) = values(found)
    assert before is not None
    assert image is not None
    assert sorted(map(str, before)) == ["2", "20", "two"]
    assert sorted(map(str, image)) == ["2", "20", "x"]


def test_a_column_that_is_not_null_no_longer_keeps_its_null(log: Log) -> None:
    """A later definition does not make the row known again."""
    log.ddl("ALTER TABLE t MODIFY a INT NOT NULL")
    log.ddl("ALTER TABLE t MODIFY a INT")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(rows(Action.DELETE, ({0: 1}, None)))


def test_a_row_whose_values_only_the_source_knows_is_none_of_the_store_once_it_has_changed(tmp_path: Path) -> None:
    """`thl records info` counts the rows."""
    log = Log(tmp_path / "other", ["shop.*"])
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: None, 2: "null"}, {0: 2, 1: 20, 2: "two"}))
    log.ddl("ALTER TABLE t MODIFY a INT NOT NULL")
    filled = TableLayout(LAYOUT.name, (ID, replace(A, nullable=False), V), (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {2: "x"}), layout=filled))
    assert found.after  # it stays partial
    prefix = log.completion.tables.entry(LAYOUT.name).prefix
    assert [key for key, _ in log.completion.versions.rows(prefix)] == [prefix + b"\x02\x04"]
    log.close()


@pytest.mark.parametrize(
    ("definition", "whole"),
    [
        ("DROP COLUMN v, ADD COLUMN v VARCHAR(20) CHARSET utf8mb4 DEFAULT 'new'", [2, 20, "new"]),
        ("DROP COLUMN a, ADD COLUMN a INT DEFAULT 7 AFTER id", [2, 7, "two"]),
    ],
)
def test_a_column_that_is_dropped_and_added_again_has_the_values_of_the_new_one(
    log: Log, definition: str, whole: list[object]
) -> None:
    """The table has the same columns before and after."""
    log.ddl(f"ALTER TABLE t {definition}")
    (found,) = log.event(rows(Action.DELETE, ({0: 2}, None)))
    assert values(found) == [(whole, None)]


def test_a_generated_column_that_is_computed_in_another_way_makes_rows_unknown(log: Log) -> None:
    log.ddl("CREATE TABLE g (id INT PRIMARY KEY, a INT, s INT AS (a + 1) STORED)")
    table = TableLayout(TableName("shop", "g"), (ID, A, Column("s", "int")), (0,))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 10, 2: 11}), layout=table))
    log.ddl("ALTER TABLE g MODIFY s INT AS (a + 2) STORED")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(rows(Action.DELETE, ({0: 1}, None), layout=table))


@pytest.mark.parametrize("definition", ["MODIFY a INT COMMENT 'c'", "ALTER a SET DEFAULT 3", "ADD INDEX (a)"])
def test_a_definition_that_keeps_each_value_keeps_the_rows(log: Log, definition: str) -> None:
    number = log.completion.tables.entry(LAYOUT.name).definition
    log.ddl(f"ALTER TABLE t {definition}")
    assert log.completion.tables.entry(LAYOUT.name).definition == number
    (found,) = log.event(rows(Action.DELETE, ({0: 1}, None)))
    assert values(found) == [([1, None, "null"], None)]


def test_a_definition_of_an_earlier_version_has_no_filled_columns() -> None:
    step = DefinitionStep.from_json(b'{"before": 1, "columns": [[0, ""]], "numbers": 1}')
    assert step == DefinitionStep(1, ((0, ""),), 1)
    assert DefinitionStep.from_json(DefinitionStep(1, ((0, ""),), 1, (0,)).to_json()).filled == (0,)


def test_a_filled_column_that_the_definition_before_did_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="did not have"):
        DefinitionStep.from_json(b'{"before": 1, "columns": [[0, ""]], "numbers": 1, "filled": [1]}')
