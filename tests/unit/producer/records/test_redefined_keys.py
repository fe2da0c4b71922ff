"""Keys of rows that an ALTER changes, and rows that the end of a load has to delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Unsupported
from connector.log.ids import Action, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import Part
from connector.producer.records import tables
from tests.unit.producer.records.event_log import CREATE, LAYOUT, NAME, Log, delete, insert, rows, update, values

PAIRS = TableName("shop", "p")
COLUMNS = (Column("b", "binary(2)", nullable=False), Column("n", "decimal(9,2)", nullable=False), Column("a", "int"))
BY_BOTH = TableLayout(PAIRS, COLUMNS, (0, 1))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    made.ddl(CREATE)
    made.ddl("CREATE TABLE p (b BINARY(2) NOT NULL, n DECIMAL(9,2) NOT NULL, a INT, PRIMARY KEY (b, n))")
    made.event(rows(Action.INSERT, (None, {0: b"xy", 1: "7.50", 2: 1}), layout=BY_BOTH))
    yield made
    made.close()


def layout(key: tuple[int, ...], *columns: Column) -> TableLayout:
    return TableLayout(PAIRS, columns, key)


B, N, A = COLUMNS


@pytest.mark.parametrize(
    ("definition", "after"),
    [
        ("MODIFY b BINARY(2) NOT NULL AFTER a", layout((2, 0), N, A, B)),
        ("CHANGE n m DECIMAL(9,2) NOT NULL", layout((0, 1), B, Column("m", "decimal(9,2)", nullable=False), A)),
        ("ADD COLUMN first INT DEFAULT 1 FIRST", layout((1, 2), Column("first", "int"), B, N, A)),
    ],
)
def test_rows_are_known_by_a_key_whose_columns_move(log: Log, definition: str, after: TableLayout) -> None:
    log.ddl(f"ALTER TABLE p {definition}")
    place = {column.name: at for at, column in enumerate(after.columns)}
    key = {after.key[0]: b"xy", after.key[1]: "7.50"}
    (found,) = log.event(rows(Action.UPDATE, (key, {place["a"]: 2}), layout=after))
    ((_, image),) = values(found)
    assert image is not None
    assert (image[place["a"]], image[place["b"]]) == (2, b"xy")


@pytest.mark.parametrize(
    ("definition", "after", "key"),
    [
        (
            "MODIFY b BINARY(4) NOT NULL",
            layout((0, 1), Column("b", "binary(4)", nullable=False), N, A),
            [b"xy\0\0", "7.50"],
        ),
        (
            "MODIFY n DECIMAL(12,4) NOT NULL",
            layout((0, 1), B, Column("n", "decimal(12,4)", nullable=False), A),
            [b"xy", "7.5000"],
        ),
        ("DROP PRIMARY KEY, DROP COLUMN b, ADD PRIMARY KEY (n)", layout((0,), N, A), ["7.50"]),
    ],
)
def test_rows_are_not_known_by_a_key_whose_bytes_change(
    log: Log, definition: str, after: TableLayout, key: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    log.ddl(f"ALTER TABLE p {definition}")
    assert [record.__dict__["why"] for record in caplog.records] == ["the columns of its key have changed"]
    assert not list(log.completion.versions.rows(log.completion.tables.entry(PAIRS).prefix))
    with pytest.raises(Unsupported, match="the columns of its key have changed"):
        log.event(rows(Action.UPDATE, (dict(enumerate(key)), {len(key): 2}), layout=after))


def test_a_table_whose_rows_have_not_come_has_no_key_that_changes(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.ddl("CREATE TABLE q (b BINARY(2) NOT NULL PRIMARY KEY, a INT)")
    log.ddl("ALTER TABLE q MODIFY b BINARY(4) NOT NULL")
    assert not caplog.records
    assert log.completion.tables.entry(TableName("shop", "q")).reason == ""


def test_the_end_of_a_load_deletes_any_number_of_rows_and_may_be_gone_back_over(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SWEEP_KEYS", 2)
    log.event(insert(*({0: key, 1: key, 2: "old"} for key in range(1, 6))))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.event(update(({0: 4}, {1: 40})))  # the stream brings it, so the source has it
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 2, 1: 2, 2: "new"})))
    before = log.seqno - 1
    log.completion.versions.flush()
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # forgets what it has in memory
    log.load(Part.END)
    prefix = log.completion.tables.entry(NAME).prefix
    assert [key.removeprefix(prefix) for key, _ in log.completion.versions.rows(prefix)] == [b"\2\4", b"\2\10"]
    log.completion.go_back(Seqno(before))
    log.seqno = before + 1
    (found,) = log.event(delete({0: 1}, {0: 3}, {0: 5}))
    assert [image for image, _ in values(found)] == [[key, key, "old"] for key in (1, 3, 5)]


def test_the_end_of_another_load_deletes_nothing(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}), load="l1")
    log.load(Part.END, load="l0")
    assert log.completion.tables.entry(NAME).load == "l1"
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]


def test_a_load_that_is_awaited_under_another_name_leaves_images_partial(log: Log) -> None:
    """A table that is renamed within its load is known by the load's ID."""

    class Loads:
        def awaits(self, table: TableName, load: str, *, everywhere: bool = False) -> bool:
            del everywhere
            return (table, load) == (TableName("shop", "renamed"), "l1")

    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.loads = Loads()
    log.ddl("RENAME TABLE shop.t TO shop.renamed")
    renamed = TableLayout(TableName("shop", "renamed"), LAYOUT.columns, (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 9}, {1: 1}), layout=renamed))
    assert found.after
