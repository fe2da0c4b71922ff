"""Patterns of names and tables: what `*`, `?` and every other character stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.patterns import glob, table_pattern
from connector.verify.run import _left_out

names = st.text("abB.[]!Ü_", min_size=1, max_size=3)
globs = st.text("ab*?[]!Ü_", min_size=1, max_size=4)
patterns = st.one_of(globs, st.builds("{}.{}".format, globs, st.text("ab.*?[]!Ü_", min_size=1, max_size=4)))


def matches(pattern: str, text: str) -> bool:
    """Match without any regular expression, in any case."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
    return (
        bool(text) and (pattern[0] == "?" or pattern[0].lower() == text[0].lower()) and matches(pattern[1:], text[1:])
    )


@given(patterns, names, names)
def test_a_table_pattern_is_split_at_its_first_dot_and_knows_only_two_wildcards(
    pattern: str, schema: str, table: str
) -> None:
    of_schema, dot, of_table = pattern.partition(".")
    found = table_pattern(pattern, ignore_case=True).finds(schema, table)
    assert found == (matches(of_schema, schema) and (not dot or matches(of_table, table)))
    assert found == table_pattern(pattern, ignore_case=True).finds(schema.swapcase(), table.swapcase())


@pytest.mark.parametrize("text", ["", ".", "shop.", ".orders", "."])
def test_a_table_pattern_with_an_empty_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        table_pattern(text)


def test_case_counts_unless_it_is_ignored() -> None:
    assert glob("Shop").fullmatch("shop") is None
    assert glob("Shop", ignore_case=True).fullmatch("shop")


def test_brackets_of_a_table_name_stand_for_themselves_in_verify_ignore() -> None:
    captured = ("shop.log[1]", "shop.log1")
    assert _left_out(["shop.log[1]"], captured) == ("shop.log[1]",)
