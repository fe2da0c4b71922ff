"""What the stream changes before a round's position: noted keys, and rows that are of no use."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest

from connector.log.compact.row_keys import keys
from connector.log.ids import Action, Kind
from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.xa import Decided, Prepared
from connector.producer.loads.open_round import OpenRound
from tests.support.batches import BEGIN, END, ENDING, LAYOUT, OTHER, START, rows

INSERT: Final = rows(LAYOUT, Action.INSERT, (None, [7, "x"]))
WITHOUT_KEY: Final = rows(LAYOUT, Action.INSERT, (None, ["x"]), after=b"\x02")
PARTIAL: Final = rows(LAYOUT, Action.UPDATE, ([7, "x"], ["y"]), after=b"\x02")
PREPARED: Final = Prepared("X'61',X'',1", TransactionBatch(BEGIN, [INSERT], ENDING))


def an_open(*, has_key: bool = True) -> OpenRound:
    opened: Any = SimpleNamespace(position=END)
    return OpenRound(opened, {}, START, {LAYOUT.name: set() if has_key else None})


def batch(*changes: Any, kind: Kind = Kind.TRANSACTION) -> TransactionBatch:
    return TransactionBatch(replace(BEGIN, kind=kind), list(changes), ENDING)


def test_keys_that_the_stream_changes_are_noted_up_to_the_rounds_position() -> None:
    opened = an_open()
    assert not opened.reached
    opened.note(
        batch(INSERT, rows(LAYOUT, Action.UPDATE, ([7, "x"], [8, "x"])), rows(OTHER, Action.DELETE, ([9, "z"], None)))
    )
    assert opened.changed == {LAYOUT.name: keys(INSERT) | keys(rows(LAYOUT, Action.INSERT, (None, [8, "x"])))}
    assert (opened.spoiled, opened.all_spoiled, opened.reached) == (set(), False, True)


@pytest.mark.parametrize("change", [WITHOUT_KEY, PARTIAL])
def test_change_whose_keys_cannot_be_noted_spoils_its_table(change: Any) -> None:
    opened = an_open()
    opened.note(batch(change))
    assert (opened.spoiled, opened.all_spoiled) == ({LAYOUT.name}, False)


def test_table_without_a_primary_key_is_spoiled_whatever_key_the_log_finds_its_rows_by() -> None:
    opened = an_open(has_key=False)
    opened.note(batch(rows(OTHER, Action.INSERT, (None, [7, "x"]))))
    assert opened.spoiled == set()
    opened.note(batch(INSERT))
    assert opened.spoiled == {LAYOUT.name}


@pytest.mark.parametrize(
    ("item", "spoils"),
    [
        (Redefined(), True),
        (batch(kind=Kind.DDL), True),  # its statement comes in a later batch
        (batch(Statement("s", "CREATE TABLE x (id INT)"), kind=Kind.DDL), True),
        (batch(Statement("s", "INSERT INTO t SELECT 1")), True),
        (batch(Statement("s", "SAVEPOINT a")), False),
        (PREPARED, False),  # nothing has changed yet
        (replace(PREPARED, one_phase=True), True),
        (Decided("X'61',X'',1", BEGIN, ENDING), True),
    ],
)
def test_what_may_change_any_table_spoils_all(item: Item, spoils: bool) -> None:
    opened = an_open()
    opened.note(item)
    assert opened.all_spoiled is spoils
    assert opened.changed == {LAYOUT.name: set()}
