"""Positions in the source's binary log are in the log's order, not in that of their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.log.transaction.source_position import SourcePosition, file_number

PLACES = st.tuples(st.integers(0, 2_000_000), st.integers(0, 2**40))


def named(number: int, offset: int) -> SourcePosition:
    """As the server names it: six digits, and more where six are not enough."""
    return SourcePosition(f"binlog.{number:06d}", offset)


@given(PLACES, PLACES)
def test_positions_are_ordered_by_file_number_and_offset(one: tuple[int, int], other: tuple[int, int]) -> None:
    left, right = named(*one), named(*other)
    assert (left < right, left <= right, left > right, left >= right, left == right) == (
        one < other,
        one <= other,
        one > other,
        one >= other,
        one == other,
    )


def test_the_millionth_file_comes_after_the_one_before() -> None:
    assert named(999_999, 4) < named(1_000_000, 4)
    assert max(named(1_000_000, 4), named(999_999, 900)) == named(1_000_000, 4)


def test_file_without_a_number_comes_first() -> None:
    assert file_number("mysql-bin.000007") == 7
    assert file_number("relay") == file_number("a.b7") == -1
    assert SourcePosition("relay", 9) < named(0, 0)
    with pytest.raises(TypeError):
        assert named(1, 4) < ("binlog.000001", 4)  # type: ignore[operator]
