"""Widening, which keeps every value; and layouts of the log compared with tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.ddl.syntax.type_names import INTEGERS
from connector.errors import TargetDiffers, Unsupported, ValueNotRepresentable
from connector.log.transaction.layout import Column, TableName
from connector.targets.names import check_names
from connector.targets.narrowing import Has, Narrowing, narrowing
from connector.targets.postgres.names import PostgresNames
from connector.targets.postgres.types import copy_kind, postgres_type
from connector.targets.sqlite.names import SqliteNames
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import from_json, make_table, to_json
from connector.targets.target_schema import TargetSchema, changed
from connector.targets.types import parse
from connector.targets.widening import Widening, widening
from tests.support.net import column, layout

INTS = st.builds(Column, st.just("c"), st.sampled_from(list(INTEGERS)), st.booleans())


def span(of: Column) -> range:
    bits = INTEGERS[of.type]
    return range(0, 2**bits) if of.unsigned else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


@given(INTS, INTS)
def test_integers_widen_only_into_what_has_all_their_values(old: Column, new: Column) -> None:
    fits = span(old)[0] in span(new) and span(old)[-1] in span(new)
    assert (widening(old, new) is not None) == fits


@given(INTS)
def test_postgresql_has_every_value_of_an_integer(of: Column) -> None:
    limits = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63, "numeric(20)": 10**20}
    assert span(of)[-1] < limits[postgres_type(of)]
    assert copy_kind(of) is not None
    assert sqlite_type(of) == ("ANY" if of.unsigned and of.type == "bigint" else "INTEGER")


@given(st.integers(1, 65), st.integers(0, 30), st.integers(1, 65), st.integers(0, 30), st.data())
def test_decimals_widen_only_with_their_digits(
    digits: int, scale: int, more: int, wider: int, data: st.DataObject
) -> None:
    scale, wider = min(scale, digits), min(wider, more)
    old, new = Column("c", f"decimal({digits},{scale})"), Column("c", f"decimal({more},{wider})")
    found = widening(old, new)
    if found is None:
        assert wider < scale or more - wider < digits - scale
        return
    number = data.draw(st.integers(0, 10**digits - 1))
    text = f"{number:0{scale + 1}d}"
    text = f"{text[:-scale]}.{text[-scale:]}" if scale else text
    padded = text + found.pad
    whole, _, fraction = padded.partition(".")
    assert len(fraction) == wider
    assert len(whole) <= max(more - wider, 1)


SAME = Widening()
PAIRS = [
    ("c char(5)", "c varchar(5)", SAME),
    ("c char(5)", "c char(6)", SAME),
    ("c varchar(5)", "c char(6)", None),
    ("c varchar(5)", "c tinytext", SAME),
    ("c varchar(64)", "c tinytext", None),
    ("c varchar(5)", "c varchar(4)", None),
    ("c tinytext", "c longtext", SAME),
    ("c text", "c tinytext", None),
    ("c text", "c varchar(9000)", None),
    ("c binary(4)", "c binary(5)", None),
    ("c binary(4)", "c binary(4)", SAME),
    ("c binary(4)", "c varbinary(4)", SAME),
    ("c varbinary(4)", "c binary(4)", None),
    ("c varbinary(255)", "c tinyblob", SAME),
    ("c blob", "c mediumblob", SAME),
    ("c varchar(5)", "c varbinary(20)", None),
    ("c float", "c double", SAME),
    ("c double", "c float", None),
    ("c float unsigned", "c double", SAME),
    ("c float", "c double unsigned", None),
    ("c decimal(5,2)", "c decimal(5,2) unsigned", None),
    ("c datetime", "c datetime(6)", Widening(".000000")),
    ("c datetime(3)", "c datetime(6)", Widening("000")),
    ("c datetime(3)", "c datetime", None),
    ("c time(1)", "c time(2)", Widening("0")),
    ("c datetime", "c timestamp", None),
    ("c date", "c datetime", None),
    ("c enum('a','b')", "c enum('a','b','c')", SAME),
    ("c enum('a','b')", "c enum('b','a')", SAME),
    ("c enum('a','b')", "c enum('a')", None),
    ("c set('a','b')", "c set('a','x','b')", SAME),
    ("c set('a','b')", "c set('b','a')", None),
    ("c bit(3)", "c bit(4)", None),
    ("c json", "c json", SAME),
    ("c json", "c longtext", None),
    ("c year", "c int", None),
]


@pytest.mark.parametrize(("old", "new", "expected"), PAIRS, ids=[f"{old} to {new}" for old, new, _ in PAIRS])
def test_wider_types_keep_every_value(old: str, new: str, expected: Widening | None) -> None:
    assert widening(column(old), column(new)) == expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("c set('a','c')", Narrowing((Has("b"),))),
        ("c set('x','a')", Narrowing((Has("b"), Has("c")))),
        ("c set('c','a')", None),
    ],
)
def test_set_loses_members_if_the_others_keep_their_order(new: str, expected: Narrowing | None) -> None:
    assert narrowing(column("c set('a','b','c')"), column(new)) == expected


@pytest.mark.parametrize(
    "text", ["integer", "int(11)", "decimal", "decimal(5)", "varchar", "text(3)", "", "INT", "point"]
)
def test_unknown_type_stops(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text)


def test_layout_is_compared_in_what_both_define() -> None:
    target_schema = TargetSchema([make_table(TableName("s", "t"), [column("a int"), column("b varchar(9)")], ["a"])])
    target_schema.check(layout("s.t", ["a int", "b longtext"], ["a"]))  # lengths are counted differently
    for wrong in (["a int", "b blob"], ["a int unsigned", "b text"], ["b text", "a int"], ["a int", "b datetime"]):
        with pytest.raises(TargetDiffers):
            target_schema.check(layout("s.t", wrong, ["a"] if "a int" in wrong else []))


def test_table_round_trips_through_its_json() -> None:
    columns = [column("a int unsigned not"), column("b enum('x','y')"), column("c varchar(9)")]
    table = make_table(TableName("s", "t"), columns, ["c", "a"], "latin1", ["b"])
    assert from_json(table.name, to_json(table)) == table


def test_changes_between_two_schemas_are_found() -> None:
    one, two = (make_table(TableName("s", name), [column("a int")], []) for name in "ab")
    other = make_table(one.name, [column("a bigint")], [])
    before = TargetSchema([one, two])
    assert changed(before, before) == ([], [])
    assert changed(before, before.without(one.name)) == ([one.name], [])
    assert changed(before, before.with_table(other)) == ([one.name], [other])


@pytest.mark.parametrize(
    "names",
    [[("s", "Orders"), ("s", "orders")], [("S", "t"), ("s", "t")], [("a.b", "c"), ("a", "b.c")]],
)
def test_names_equal_to_sqlite_are_refused_with_both(names: list[tuple[str, str]]) -> None:
    tables = [make_table(TableName(*name), [column("a int")], []) for name in names]
    with pytest.raises(ValueNotRepresentable) as caught:
        check_names(SqliteNames(), tables)
    assert [caught.value.where[name] for name in ("other", "table")] == [table.name for table in tables]
    assert "publish_as" in caught.value.hint
    if "." not in names[0][0]:
        check_names(PostgresNames(), tables)


def test_letters_that_only_unicode_folds_are_two_names_in_sqlite() -> None:
    check_names(SqliteNames(), [make_table(TableName("s", name), [], []) for name in ("Ä", "ä")])


def test_columns_cut_to_one_name_are_refused_with_both() -> None:
    long = "x" * 63
    table = make_table(TableName("s", "t"), [column(f"{long}1 int"), column(f"{long}2 int")], [])
    with pytest.raises(ValueNotRepresentable) as caught:
        check_names(PostgresNames(), [table])
    assert (caught.value.where["other"], caught.value.where["column"]) == (f"{long}1", f"{long}2")
    assert "rename in a rule" in caught.value.hint


@pytest.mark.parametrize("schema", ["pg_temp", "pg_x", "information_schema", "thl"])
def test_reserved_schemas_are_refused(schema: str) -> None:
    with pytest.raises(ValueNotRepresentable) as caught:
        check_names(PostgresNames(), [make_table(TableName(schema, "t"), [], [])])
    assert "publish_as" in caught.value.hint


def test_sqlites_own_names_are_refused() -> None:
    with pytest.raises(ValueNotRepresentable) as caught:
        check_names(SqliteNames(), [make_table(TableName("SQLite_x", "t"), [], [])])
    assert "publish_as" in caught.value.hint
