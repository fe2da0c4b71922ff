"""Rows by their keys: the condition that finds them, and the deletes of those that are not found."""

from __future__ import annotations

import pytest

from connector.errors import Unsupported
from connector.log.compact.row_keys import keys, without
from connector.log.ids import Action
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import KeyColumn
from connector.mysql.snapshot.rows_by_key import KEYS_AT_ONCE, RowsByKey
from tests.support.batches import rows

COLUMNS = (Column("v", "int"), Column("name", "varchar(9)", charset="latin1"), Column("id", "bigint"))
LAYOUT = TableLayout(TableName("shop", "t"), COLUMNS, (2, 1))
ID, NAME = KeyColumn("`id`", "bigint"), KeyColumn("`name`", "varchar", "latin1", "latin1_swedish_ci")


def table(*divided_by: KeyColumn, layout: TableLayout = LAYOUT, kinds: str = "iti") -> SourceTable:
    return SourceTable(layout, ("v", "name", "id"), kinds, (None,) * 3, True, divided_by, "", True, 1, 1, "latin1")


def test_condition_names_each_key_with_literals_of_its_columns() -> None:
    (found,) = RowsByKey(table(ID, NAME), [("1", "é'"), ("-2", "")]).sets
    assert found.condition((ID, NAME)) == (
        "((`id` = 1 AND `name` = CONVERT(_utf8mb4 x'c3a927' USING latin1) COLLATE latin1_swedish_ci)"
        " OR (`id` = -2 AND `name` = CONVERT(_utf8mb4 x'' USING latin1) COLLATE latin1_swedish_ci))"
    )


def test_many_keys_are_read_by_several_statements() -> None:
    one = TableLayout(LAYOUT.name, (Column("id", "int"),), (0,))
    found = RowsByKey(table(ID, layout=one, kinds="i"), [(str(number),) for number in range(KEYS_AT_ONCE + 1)])
    assert [len(part.keys) for part in found.sets] == [KEYS_AT_ONCE, 1]


def test_keys_that_are_not_found_become_deletes_of_the_key_alone() -> None:
    found = RowsByKey(table(ID, NAME), [("1", "a"), ("2", "A"), ("3", "c")])
    found.found(rows(LAYOUT, Action.READ, (None, [9, "a", 1]), (None, [9, "a", 2])))  # equal for the server alone
    (deletes,) = found.absent()
    assert (deletes.action, deletes.before, deletes.after, deletes.count) == (Action.DELETE, b"\6", b"", 2)
    assert bytes(deletes.data) == bytes(rows(LAYOUT, Action.DELETE, (["A", 2], None), (["c", 3], None)).data)
    assert keys(deletes) == keys(rows(LAYOUT, Action.READ, (None, [0, "A", 2]), (None, [0, "c", 3])))


def test_deletes_of_changed_keys_are_left_out() -> None:
    found = RowsByKey(table(ID, NAME), [("2", "A"), ("3", "c")])
    (deletes,) = found.absent()
    changed = keys(rows(LAYOUT, Action.READ, (None, [0, "c", 3])))
    assert keys(without(deletes, changed)) == keys(rows(LAYOUT, Action.READ, (None, [0, "A", 2])))


def test_nothing_is_deleted_where_all_are_found() -> None:
    found = RowsByKey(table(ID, NAME), [("1", "a")])
    found.found(rows(LAYOUT, Action.READ, (None, [9, "a", 1])))
    assert list(found.absent()) == []


@pytest.mark.parametrize(
    ("column", "kind", "text", "value"),
    [
        (KeyColumn("`k`", "bigint"), "i", "18446744073709551615", "18446744073709551615"),
        (KeyColumn("`k`", "decimal"), "s", "1.50", "1.50"),
        (KeyColumn("`k`", "datetime"), "s", "2026-11-25 01:02:03.5", "2026-11-25 01:02:03.5"),
        (KeyColumn("`k`", "binary"), "b", "00ff", b"\0\xff"),
        (KeyColumn("`k`", "varchar", "utf8mb4", "utf8mb4_bin"), "t", "\0😀", "\0😀"),
    ],
)
def test_key_has_the_value_of_the_log(column: KeyColumn, kind: str, text: str, value: object) -> None:
    layout = TableLayout(LAYOUT.name, (Column("k", "x"),), (0,))
    (deletes,) = RowsByKey(table(column, layout=layout, kinds=kind), [(text,)]).absent()
    assert keys(deletes) == keys(rows(layout, Action.READ, (None, [value])))


@pytest.mark.parametrize(
    ("base", "text"),
    [
        ("int", "1 OR 1=1"),
        ("int", ""),
        ("int", "١"),
        ("decimal", "1e5"),
        ("date", "2026-11-25' OR '1"),
        ("binary", "0"),
        ("binary", "' OR '1"),
        ("binary", "\ufb00"),  # two letters F in capitals
    ],
)
def test_text_that_is_no_value_of_its_column_is_refused(base: str, text: str) -> None:
    layout = TableLayout(LAYOUT.name, (Column("k", base),), (0,))
    with pytest.raises(Unsupported, match="no row of the source can have the key"):
        RowsByKey(table(KeyColumn("`k`", base), layout=layout, kinds="i"), [(text,)])


@pytest.mark.parametrize("divided_by", [(), (ID,)])
def test_table_whose_rows_have_no_literal_keys_is_refused(divided_by: tuple[KeyColumn, ...]) -> None:
    with pytest.raises(Unsupported, match="not found by keys"):
        RowsByKey(table(*divided_by), [("1", "a")])
