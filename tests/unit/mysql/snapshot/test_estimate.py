"""What `--dry-run` says of a load."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pytest

from connector.config.snapshot import InitialLoad
from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.snapshot.division import CHUNK_BYTES, rows_of_a_chunk
from connector.mysql.snapshot.estimate import LoadEstimate, Parts, TableEstimate
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import KeyColumn

LAYOUT: Final = TableLayout(TableName("shop", "t"), (Column("id", "int"),), (0,))
TABLE: Final = SourceTable(
    LAYOUT, ("id",), "i", (None,), True, (KeyColumn("`id`", "int"),), "", True, 1_000_000, 200_000_000, "latin1"
)
FLOAT_KEY: Final = replace(TABLE, divided_by=())
KEYLESS: Final = replace(FLOAT_KEY, layout=TableLayout(LAYOUT.name, LAYOUT.columns, ()))


@pytest.mark.parametrize(
    ("table", "parts", "how"),
    [
        (TABLE, Parts.CHUNKS, "in about 5 chunks by id"),
        (FLOAT_KEY, Parts.ONE_CHUNK, "for about 7 s in which transactions wait, because its primary key cannot be"),
        (KEYLESS, Parts.WHOLE_TABLE, "for about 7 s in which transactions wait, because it has no primary key"),
    ],
)
def test_table_is_told_with_the_parts_in_which_it_is_read(table: SourceTable, parts: Parts, how: str) -> None:
    found = TableEstimate(table, 5, 7.1, 900)
    assert found.parts is parts
    assert str(found).startswith("shop.t: about 1000000 rows, 200.0 MB, ")
    assert how in str(found)


@pytest.mark.parametrize(
    ("settings", "size", "rows"),
    [
        ({}, 200_000_000, 50_000),
        ({"chunk_rows": 300}, 200_000_000, 300),
        ({"max_rows_per_second": 70}, 200_000_000, 70),
        ({}, 1_000_000 * CHUNK_BYTES, 1),
        ({}, 10_000 * CHUNK_BYTES, 100),
    ],
)
def test_chunk_has_as_many_rows_as_its_limits_allow(settings: dict[str, int], size: int, rows: int) -> None:
    assert rows_of_a_chunk(replace(TABLE, bytes=size), InitialLoad(**settings)) == rows  # type: ignore[arg-type]


def test_expected_time_names_what_it_is_based_on() -> None:
    tables = [TableEstimate(TABLE, 5, 7.0, 900), TableEstimate(TABLE, 5, 2.0, 100), TableEstimate(TABLE, 5, 1.0)]
    measured = LoadEstimate(tables, InitialLoad(connections=4))
    assert measured.seconds == 10.0
    assert "one connection read and decoded 1000 rows, from the beginning of 2 of the tables" in measured.based_on
    assert measured.based_on.endswith("; the other 1 by their bytes")
    limited = LoadEstimate(tables, InitialLoad(max_rows_per_second=1000))
    assert (limited.seconds, limited.based_on) == (3000.0, "source.snapshot.max_rows_per_second (1000)")
    quick = LoadEstimate(tables, InitialLoad(max_rows_per_second=1_000_000))
    assert quick.seconds == 10.0  # the limit is not what it takes
    assert "max_rows_per_second" not in quick.based_on


def test_what_is_refused_or_would_stop_is_told_and_gives_the_exit_code() -> None:
    error = ValueNotRepresentable("a text is not valid", column="v")
    stops = LoadEstimate([TableEstimate(TABLE, 5, 7.0, 900, error)], InitialLoad())
    assert stops.lines()[0].endswith("; its load would stop: a text is not valid [column=v]")
    assert stops.exit_code == error.exit_code
    refused = replace(stops, refused={"shop.x": "there is no such table"})
    assert refused.exit_code == 3
    assert refused.lines()[1] == "shop.x: refused: there is no such table"
    found = json.loads(json.dumps(refused.as_object()))
    assert found["refused"] == [{"table": "shop.x", "why": "there is no such table"}]
    assert found["tables"][0]["stops"] == "a text is not valid [column=v]"
    assert LoadEstimate([], InitialLoad()).lines() == ["0 tables, about 0 rows, less than 0.1 MB"]
