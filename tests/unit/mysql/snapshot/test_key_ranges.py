"""Ranges of a key that follow each other hold each row once."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.transaction.layout import TableName
from connector.mysql.snapshot.division import Division
from connector.mysql.snapshot.key_ranges import KeyColumn, KeyRange, is_key, key_column

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


TEXT = KeyColumn("`k`", "varchar", "utf8mb4", "utf8mb4_bin")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (KeyColumn("`k`", "int"), "-7"),
        (KeyColumn("`k`", "bigint"), "18446744073709551615"),
        (KeyColumn("`k`", "year"), "0000"),
        (KeyColumn("`k`", "decimal"), "-0.50"),
        (KeyColumn("`k`", "date"), "0000-00-00"),
        (KeyColumn("`k`", "datetime"), "2026-11-25 22:14:22"),
        (KeyColumn("`k`", "timestamp"), "2026-11-25 22:14:22.000001"),
        (KeyColumn("`k`", "varbinary"), "00FF"),
        (KeyColumn("`k`", "binary"), ""),
        (TEXT, "C3A9"),
        (TEXT, ""),
    ],
)
def test_literals_of_keys_are_taken_back(column: KeyColumn, text: str) -> None:
    assert is_key((column.literal(text),), (column,))


@pytest.mark.parametrize(
    ("bound", "column"),
    [
        (("0 UNION ALL SELECT 1, authentication_string FROM mysql.user -- ",), KeyColumn("`k`", "int")),
        (("SLEEP(9)",), KeyColumn("`k`", "int")),
        (("1\n",), KeyColumn("`k`", "int")),
        (("١",), KeyColumn("`k`", "int")),
        (("",), KeyColumn("`k`", "int")),
        (("x'31'",), KeyColumn("`k`", "int")),
        (("'2026-11-25' OR ''",), KeyColumn("`k`", "date")),
        (("'2026-11-25 00:00:00'",), KeyColumn("`k`", "date")),
        (("'2026-11-25'",), KeyColumn("`k`", "datetime")),
        (("2026-11-25",), KeyColumn("`k`", "date")),
        (("x'00' OR x'00'",), KeyColumn("`k`", "varbinary")),
        (("x'0'",), KeyColumn("`k`", "varbinary")),
        (("x'0G'",), KeyColumn("`k`", "varbinary")),
        (("00",), KeyColumn("`k`", "varbinary")),
        (("_utf8mb4 x'61' COLLATE utf8mb4_bin OR 1",), TEXT),
        (("_utf8mb4 x'61' COLLATE latin1_bin",), TEXT),
        (("x'61'",), TEXT),
        (("_utf8mb4 x' COLLATE utf8mb4_bin",), TEXT),
        (("1", "2"), KeyColumn("`k`", "int")),
        ((), KeyColumn("`k`", "int")),
    ],
)
def test_key_from_the_control_topic_that_is_other_sql_or_of_another_length_is_refused(
    bound: tuple[str, ...], column: KeyColumn
) -> None:
    assert not is_key(bound, (column,))
    table: Any = SimpleNamespace(divided_by=(column,), layout=SimpleNamespace(name=TableName("shop", "t")))
    with pytest.raises(LogDamaged, match="something else than a key"):
        Division(table, 1, bound)
