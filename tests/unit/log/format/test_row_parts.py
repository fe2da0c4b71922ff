"""Parts of a change that do not follow each other are refused, as bytes and decoded."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.log.compact.compact import Compactor
from connector.log.format.decoded_parts import MOST_BYTES, DecodedParts
from connector.log.format.row_parts import RowParts as Messages
from connector.log.rules import Rule
from tests.support.broken_rules import breaks
from tests.support.fragments import CHANGE, change, encoded, record, scanned, statement, whole

Fragment = tuple[int, list[dict[str, Any]]]  # its number and changes


def of(data: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), CHANGE, None)


def part(data: bytes, start: int, stop: int, size: int | None = None) -> dict[str, Any]:
    return {"start": start, "size": len(data) if size is None else size, "data": data[start:stop]}


def by_decoded(fragments: list[Fragment]) -> list[Any]:
    """How many changes each fragment adds."""
    joining = DecodedParts(of, "t-0@0")
    return [len(joining.whole(fragno, changes)) for fragno, changes in fragments]


def by_bytes(fragments: list[Fragment]) -> list[Any]:
    joining = Messages("t")
    found = []
    for fragno, changes in fragments:
        for message in scanned([encoded(record(7, changes, fragno=fragno, last_frag=False))]):
            one = joining.whole(message)
            found.append(0 if one is None else len(one.statements()))
    return found


both = pytest.mark.parametrize("joined", [by_decoded, by_bytes])
SQL = whole(statement("INSERT INTO t VALUES (1)"))


@both
def test_change_is_whole_with_its_last_part(joined: Callable[[list[Fragment]], list[int]]) -> None:
    assert joined([(0, [part(SQL, 0, 10)]), (1, [part(SQL, 10, 11)]), (2, [part(SQL, 11, len(SQL))])]) == [0, 0, 1]
    assert joined([(0, [part(SQL, 0, len(SQL))]), (1, [statement("x")])]) == [1, 1]


@both
def test_an_event_that_begins_again_forgets_the_parts(joined: Callable[[list[Fragment]], list[int]]) -> None:
    assert joined([(0, [part(SQL, 0, 10)]), (0, [part(SQL, 0, 5)]), (1, [part(SQL, 5, len(SQL))])]) == [0, 0, 1]


@both
@pytest.mark.parametrize(
    "second",
    [
        [part(SQL, 11, len(SQL))],
        [part(SQL, 9, len(SQL))],
        [part(SQL, 0, 10)],
        [part(SQL, 10, len(SQL), size=len(SQL) + 1)],
        [{"start": 10, "size": len(SQL), "data": SQL[10:] + b"x"}],
        [part(SQL, 10, 10)],
        [part(SQL, 10, 11), part(SQL, 11, len(SQL))],
        [statement("x")],
        [],
    ],
)
def test_part_that_does_not_follow_is_refused(
    joined: Callable[[list[Fragment]], list[int]], second: list[dict[str, Any]]
) -> None:
    with breaks(Rule.ROW_PARTS):
        joined([(0, [part(SQL, 0, 10)]), (1, second)])


@both
def test_part_without_a_beginning_is_refused(joined: Callable[[list[Fragment]], list[int]]) -> None:
    with breaks(Rule.ROW_PARTS):
        joined([(1, [part(SQL, 10, len(SQL))])])


@both
@pytest.mark.parametrize(
    "first",
    [
        part(SQL, 0, 0, size=0),
        part(SQL, 0, 0),
        part(SQL, 0, 10, size=9),
        part(SQL, 0, 10, size=MOST_BYTES + 1),
        part(SQL, 0, 10, size=-1),
    ],
)
def test_part_of_an_impossible_size_is_refused(
    joined: Callable[[list[Fragment]], list[int]], first: dict[str, Any]
) -> None:
    with breaks(Rule.ROW_PARTS):
        joined([(0, [first])])


@both
def test_part_of_the_largest_change_is_accepted(joined: Callable[[list[Fragment]], list[int]]) -> None:
    assert joined([(0, [part(SQL, 0, 10, size=MOST_BYTES)])]) == [0]


@given(st.integers(1, 4000), st.lists(st.binary(min_size=1, max_size=9000), min_size=1, max_size=4))
def test_rows_in_parts_are_compacted_like_whole_ones(step: int, values: list[bytes]) -> None:
    item = change("insert", [(None, [number, value]) for number, value in enumerate(values)])
    data = whole(item)
    cuts = range(0, len(data), step)
    parts = [
        encoded(
            record(
                7,
                [part(data, start, start + step)],
                fragno=number,
                last_frag=start == cuts[-1],
                rows=len(values) if start == cuts[-1] else 0,
            )
        )
        for number, start in enumerate(cuts)
    ]
    joining, compactor = Messages("t"), Compactor("t")
    for message in filter(None, map(joining.whole, scanned(parts))):
        message.own()
        compactor.add(message)
    (net,) = compactor.drain()
    direct = Compactor("t")
    for message in scanned([encoded(record(7, [item]))]):
        direct.add(message)
    assert net == direct.drain()[0]
