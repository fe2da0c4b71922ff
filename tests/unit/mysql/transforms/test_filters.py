"""The tables that `do` and `ignore` patterns capture."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters
from connector.config.source import Source
from connector.errors import ConfigError
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, Filter, fingerprint

names = st.text(alphabet="abAB_$.\n[]", min_size=1, max_size=6)
globs = st.text(alphabet="abAB_$*?[]", min_size=1, max_size=5)


def a_filter(do: tuple[str, ...] = (), ignore: tuple[str, ...] = (), case: int = 0) -> Filter:
    return Filter(Filters(do=do, ignore=ignore), case)


def test_no_patterns_captures_everything_but_system_schemas() -> None:
    everything = a_filter()
    assert everything.captures("shop", "orders")
    assert everything.captures_schema("shop")
    for schema in SYSTEM_SCHEMAS:
        assert not everything.captures(schema, "user")
        assert not everything.captures_schema(schema)


def test_system_schemas_are_never_captured() -> None:
    assert not a_filter(do=("mysql.user", "mysql")).captures("mysql", "user")


@pytest.mark.parametrize(
    ("pattern", "schema", "table", "found"),
    [
        ("shop", "shop", "orders", True),
        ("shop", "shop2", "orders", False),
        ("shop.*", "shop", "orders", True),
        ("shop.order?", "shop", "orders", True),
        ("shop.order?", "shop", "order", False),
        ("sh*.*_log", "shop", "big_log", True),
        ("sh*.*_log", "shop", "log", False),
        ("s?op.orders", "s.op", "orders", True),
        ("shop.a.b", "shop", "a.b", True),
        ("shop.a[b]", "shop", "a[b]", True),
        ("shop.a[b]", "shop", "ab", False),
    ],
)
def test_pattern_matches_tables(pattern: str, schema: str, table: str, found: bool) -> None:
    assert a_filter(do=(pattern,)).captures(schema, table) is found
    assert a_filter(ignore=(pattern,)).captures(schema, table) is not found


@pytest.mark.parametrize(
    ("pattern", "column", "found"),
    [
        ("shop.notes.text", ("shop", "notes", "text"), True),
        ("shop.notes.TEXT", ("shop", "notes", "Text"), True),  # names of columns have no case
        ("shop.Notes.text", ("shop", "notes", "text"), False),
        ("*.*.*", ("shop", "notes", "text"), True),
        ("shop.*.t?xt", ("shop", "notes", "text"), True),
        ("shop.a.b.text", ("shop", "a.b", "text"), True),
        ("shop.notes.text", ("shop", "notes", "title"), False),
        ("shop.notes.text", ("shop2", "notes", "text"), False),
    ],
)
def test_keep_invalid_text_matches_columns(pattern: str, column: tuple[str, str, str], found: bool) -> None:
    assert Filter(Filters(), 0, (pattern,)).keeps_invalid_text(*column) is found
    assert not a_filter().keeps_invalid_text(*column)
    assert Filter(Filters(), 1, (pattern.upper(),)).keeps_invalid_text(*column) in {found, True}


@pytest.mark.parametrize("pattern", ["", "shop", "shop.notes", "shop..text", ".notes.text", "shop.notes."])
def test_column_pattern_without_three_parts_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Filter(Filters(), 0, (pattern,))
    assert refused.value.where == {"option": "source.keep_invalid_text"}


def test_ignore_wins_over_do() -> None:
    both = a_filter(do=("shop",), ignore=("shop.tmp_*",))
    assert both.captures("shop", "orders")
    assert not both.captures("shop", "tmp_1")


def test_schema_is_captured_if_one_of_its_tables_can_be() -> None:
    assert a_filter(do=("shop.orders",)).captures_schema("shop")
    assert not a_filter(do=("shop.orders",)).captures_schema("other")
    assert a_filter(ignore=("shop.orders",)).captures_schema("shop")
    assert not a_filter(ignore=("shop",)).captures_schema("shop")
    assert not a_filter(ignore=("shop.*",)).captures_schema("shop")


def test_case_is_compared_by_the_servers_setting() -> None:
    assert not a_filter(do=("Shop.Orders",), case=0).captures("shop", "orders")
    assert a_filter(do=("Shop.Orders",), case=1).captures("shop", "orders")
    assert a_filter(do=("shop.orders",), case=2).captures("Shop", "ORDERS")
    assert a_filter(case=0).captures("MYSQL", "mine")
    assert not a_filter(case=1).captures("MYSQL", "mine")


@pytest.mark.parametrize("pattern", ["", " ", ".orders", "shop.", "."])
def test_incomplete_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError) as refused:
        a_filter(ignore=(pattern,))
    assert refused.value.where == {"option": "source.filters.ignore"}


@given(glob_schema=globs, glob_table=globs, schema=names, table=names)
def test_glob_matches_like_fnmatch(glob_schema: str, glob_table: str, schema: str, table: str) -> None:
    literal = str.maketrans({"[": "[[]"})
    expected = fnmatch.fnmatchcase(schema, glob_schema.translate(literal)) and fnmatch.fnmatchcase(
        table, glob_table.translate(literal)
    )
    assert a_filter(do=(f"{glob_schema}.{glob_table}",)).captures(schema, table) is expected


@given(do=st.lists(globs, max_size=3), ignore=st.lists(globs, max_size=3), schema=names, table=names)
def test_captured_table_is_in_a_captured_schema(do: list[str], ignore: list[str], schema: str, table: str) -> None:
    some = a_filter(do=tuple(do), ignore=tuple(f"{g}.{g}" for g in ignore))
    if some.captures(schema, table):
        assert some.captures_schema(schema)


def test_fingerprint_differs_with_what_is_published() -> None:
    plain = fingerprint(Source())
    assert plain == fingerprint(Source(host="elsewhere", ignore_server_ids=(3,), heartbeat_table="a.b"))
    others = [
        Source(filters=Filters(do=("shop",))),
        Source(filters=Filters(ignore=("shop",))),
        Source(keep_invalid_text=("shop.t.c",)),
        Source(statements="keep"),
        *(
            Source(filters=Filters.model_validate({"tables": [{"match": ["shop"], **rule}], "hash_key": key}))
            for rule, key in (({}, ""), ({"drop": ["a"]}, ""), ({"drop": ["b"]}, ""), ({"drop": ["b"]}, "k" * 16))
        ),
    ]
    assert len({plain, *map(fingerprint, others)}) == len(others) + 1
