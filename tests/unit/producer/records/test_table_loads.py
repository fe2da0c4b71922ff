"""Loads of tables: the rows that they bring, and those that change before they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import Unsupported
from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from tests.unit.producer.records.event_log import CREATE, LAYOUT, NAME, Log, delete, insert, rows, update, values


def test_a_load_brings_rows_and_its_end_deletes_what_it_has_not_brought(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    found = log.event(update(({0: 9}, {1: 1})))  # not brought yet: it stays partial
    assert found[0].after
    given = rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"}), (None, {0: 9, 1: 1, 2: "nine"}))
    assert log.load(Part.ROWS, given) == [given]
    log.load(Part.END)
    (found,) = log.event(delete({0: 9}, {0: 1}))
    assert values(found) == [([9, 1, "nine"], None), ([1, 10, "one"], None)]
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(delete({0: 2}))


def test_a_load_begins_with_the_defaults_of_the_definition_that_it_brings(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE.replace("DEFAULT 5", "DEFAULT 6"), {}))
    (found,) = log.event(insert({0: 2}))
    assert values(found) == [(None, [2, 6, "d"])]
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]  # of the same columns, so its rows are known
    log.close()
    log.open()
    (found,) = log.event(insert({0: 3}))
    assert values(found) == [(None, [3, 6, "d"])]


def test_a_load_that_brings_other_columns_begins_without_rows(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE[:-1] + ", n INT DEFAULT 3)", {}))
    prefix = log.completion.tables.entry(NAME).prefix
    assert list(log.completion.versions.rows(prefix)) == []
    layout = replace(LAYOUT, columns=(*LAYOUT.columns, Column("n", "int")))
    (found,) = log.event(rows(Action.INSERT, (None, {0: 2}), layout=layout))
    assert values(found) == [(None, [2, 5, "d", 3])]
    assert len(list(log.completion.versions.rows(prefix))) == 1  # the definition is not one of the rows


def test_a_load_that_brings_another_key_begins_without_rows(log: Log) -> None:
    create = CREATE.replace("id INT NOT NULL PRIMARY KEY, a INT", "id INT NOT NULL, a INT NOT NULL")
    log.ddl("DROP TABLE shop.t")
    log.ddl(create[:-1] + ", PRIMARY KEY (id))")
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", create[:-1] + ", PRIMARY KEY (a))", {}))
    assert list(log.completion.versions.rows(log.completion.tables.entry(NAME).prefix)) == []
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"}), layout=replace(LAYOUT, key=(1,))))
    assert not again(log)  # its rows are those of the key that it brought
    (found,) = log.event(rows(Action.UPDATE, ({1: 10}, {2: "uno"}), layout=replace(LAYOUT, key=(1,))))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]


def test_rows_that_a_load_has_not_brought_are_known_again_after_going_back_over_its_end(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # forgets what it has in memory
    log.load(Part.END)
    log.seqno -= 1
    log.completion.go_back(Seqno(log.seqno - 1))
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]


def again(log: Log) -> bool:
    return log.completion.tables.find_again(NAME, Seqno(log.seqno))


def test_a_row_that_changes_its_key_before_its_load_brings_it_is_deleted_and_read_again(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"})))
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.action is Action.UPDATE
    assert not again(log)
    moved = update(({0: 9}, {0: 0}))  # the load has passed 0
    (found,) = log.event(moved)
    gone = delete({0: 9})
    assert (found.action, found.data, list(found.ends), found.before, found.after, found.logged) == (
        gone.action, gone.data, list(gone.ends), gone.before, b"", moved.data,
    )  # fmt: skip
    log.completion.close()
    log.open()
    assert again(log)
    assert not again(log)
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 0, 1: 1, 2: "nine"})))
    log.load(Part.END)
    (found,) = log.event(update(({0: 0}, {1: 2})))
    assert values(found) == [([0, 1, "nine"], [0, 2, "nine"])]


def test_keys_of_rows_that_are_not_loaded_may_be_swapped(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    known = insert({0: 5, 1: 50, 2: "five"})
    found = log.event(known, update(({0: 7}, {0: -9}), ({0: 5}, {0: 7}), ({0: -9}, {0: 5})))
    first, second, third, fourth = found
    assert first is known
    assert [one.action for one in (second, third, fourth)] == [Action.DELETE, Action.UPDATE, Action.DELETE]
    assert values(third) == [([5, 50, "five"], [7, 50, "five"])]
    (found,) = log.event(update(({0: 7}, {1: 1})))
    assert values(found) == [([7, 50, "five"], [7, 1, "five"])]
    assert again(log)


def test_a_load_for_some_targets_leaves_changed_keys_to_the_others_and_names_the_reason(log: Log) -> None:
    for part in (Part.BEGIN, Part.END):
        loading = LoadEvent("l1", part, NAME, ("lake",)).metadata()
        log.event(*[Statement("shop", CREATE, {})] * (part is Part.BEGIN), kind=Kind.LOAD, **loading)
        if part is Part.BEGIN:
            (found,) = log.event(update(({0: 9}, {0: 0})))
            assert found.action is Action.UPDATE
            assert not again(log)
    with pytest.raises(Unsupported, match="changed the key of a row that was not known"):
        log.event(update(({0: 0}, {1: 1})))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}), load="l2")
    log.event(update(({0: 9}, {0: 0})))
    log.load(Part.BEGIN, Statement("shop", CREATE, {}), load="l3")
    log.load(Part.END, load="l3")
    assert log.completion.tables.entry(NAME).reason == ""


@pytest.mark.parametrize("change", [delete({0: 9}), update(({0: 9}, {0: 0}))])
def test_a_store_that_reads_the_log_within_a_load_lets_the_table_be_read_again(log: Log, change: Rows) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "one"})))
    for one, lost in ((delete({0: 1}), False), (change, True)):
        end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
        begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
        log.completion.follow(TransactionBatch(begin, [one], end), Seqno(log.seqno), Epoch(1))
        log.seqno += 1
        assert again(log) is lost


def test_a_load_that_goes_on_under_another_rule_reads_its_table_once_more(masked: Log) -> None:
    masked.load(Part.BEGIN, Statement("shop", CREATE, {}))
    masked.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "clear"})))
    masked.epoch = 2
    masked.event()
    assert again(masked)
    assert not again(masked)
    masked.load(Part.ROWS, rows(Action.READ, (None, {0: 1, 1: 10, 2: "x"})))
    masked.load(Part.END)
    (found,) = masked.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "x"], [1, 11, "x"])]


REDEFINED = [
    Statement("shop", "ALTER TABLE t SOMETHING THAT IS NOT UNDERSTOOD", {}),
    Statement("shop", "ALTER TABLE t MODIFY id VARCHAR(9) NOT NULL", {}),
    Statement("shop", "ALTER TABLE t ADD COLUMN late INT", {}),
]


@pytest.mark.parametrize("change", REDEFINED)
def test_a_row_that_its_load_has_to_read_once_more_stays_so_after_a_definition(log: Log, change: Statement) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    (found,) = log.event(update(({0: 9}, {0: 0})))  # the load may have passed 0
    assert found.action is Action.DELETE
    log.event(change, kind=Kind.DDL)
    assert again(log)


def test_a_row_that_its_load_has_to_read_once_more_stays_so_under_other_columns(log: Log) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.event(update(({0: 9}, {0: 0})))
    layout = replace(LAYOUT, columns=(*LAYOUT.columns, Column("late", "int")))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 1, 2: "x", 3: 1}), layout=layout))
    assert again(log)


def test_a_load_whose_rows_the_store_drops_leaves_none_unknown_in_silence(log: Log) -> None:
    """It is for one target, so it does not read the table once more."""
    for part in (Part.BEGIN, Part.END):
        loading = LoadEvent("l1", part, NAME, ("lake",)).metadata()
        log.event(*[Statement("shop", CREATE, {})] * (part is Part.BEGIN), kind=Kind.LOAD, **loading)
        if part is Part.BEGIN:
            log.event(Statement("shop", "ALTER TABLE t MODIFY id VARCHAR(9) NOT NULL", {}), kind=Kind.DDL)
    assert "may change values" in log.completion.tables.entry(NAME).reason


def test_an_initial_load_begins_without_rows(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.event(snapshot="begin")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))


def test_a_row_that_a_repair_has_not_found_is_not_known(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    gone = delete({0: 1})
    assert log.load(Part.ROWS, gone) == [gone]
    (found,) = log.event(delete({0: 2}))
    assert values(found) == [([2, 20, "two"], None)]
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))
