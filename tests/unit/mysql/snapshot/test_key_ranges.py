"""Ranges of a key that follow each other hold each row once."""

from __future__ import annotations

import sqlite3
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from connector.mysql.snapshot.key_ranges import KeyColumn, KeyRange, key_column

Key = tuple[int, bytes, int]

COLUMNS = (KeyColumn("a", "int"), KeyColumn("b", "varbinary"), KeyColumn("c", "bigint"))
keys = st.tuples(st.integers(-2, 2), st.binary(max_size=2), st.integers(-2, 2))


@given(st.sets(keys, max_size=40), st.sets(keys, max_size=5), st.integers(1, 3))
def test_ranges_between_any_bounds_hold_each_row_once(rows: set[Key], at: set[Key], width: int) -> None:
    columns = COLUMNS[:width]
    literals = sorted({key[:width] for key in at})
    bounds = [
        None,
        *(
            tuple(
                column.literal(value.hex() if isinstance(value, bytes) else str(value))
                for column, value in zip(columns, key, strict=True)
            )
            for key in literals
        ),
        None,
    ]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (a INT, b BLOB, c INT)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        found = []
        for after, to in pairwise(bounds):
            condition = KeyRange(after, to).condition(columns) or "1"
            found += database.execute(f"SELECT a, b, c FROM t WHERE {condition}").fetchall()
    assert sorted(found) == sorted(rows)


def test_text_is_compared_in_its_own_collation() -> None:
    column = key_column("`k`", "varchar", "latin1", "latin1_german1_ci")
    assert column is not None
    assert (column.select, column.literal("E9")) == ("HEX(`k`)", "_latin1 x'E9' COLLATE latin1_german1_ci")


def test_values_without_a_lossless_literal_divide_no_table() -> None:
    for base in ("float", "double", "enum", "set", "bit", "time", "geometry", "json"):
        assert key_column("`k`", base, None, None) is None
