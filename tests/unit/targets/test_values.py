"""Row images as tuples, and malformed images, which both decoders refuse."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.targets.postgres.copy import CopyKind, copy_rows
from connector.targets.values import rows
from tests.support.net import images

ITEMS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary(max_size=300)
)


@given(st.integers(1, 8).flatmap(lambda width: st.lists(st.tuples(*[ITEMS] * width), max_size=8)))
def test_every_value_reads_back(given_rows: list[tuple[int | float | str | bytes | None, ...]]) -> None:
    made = images(given_rows)
    width = len(given_rows[0]) if given_rows else 1
    assert rows(made.data, made.ends, width) == given_rows
    order = [*reversed(range(width)), 0]
    assert rows(made.data, made.ends, width, order) == [tuple(row[at] for at in order) for row in given_rows]


def test_the_sign_of_zero_is_kept() -> None:
    made = images([(-0.0,)])
    assert str(rows(made.data, made.ends, 1)) == "[(-0.0,)]"


def test_rows_of_a_bytearray_are_decoded() -> None:
    made = images([(1, "a")])
    assert rows(bytearray(made.data), made.ends, 2) == [(1, "a")]


@given(st.binary(max_size=60), st.lists(st.integers(0, 70), max_size=4), st.integers(1, 3))
def test_wrong_bytes_stop_both_decoders(data: bytes, ends: list[int], columns: int) -> None:
    """Any bytes are decoded or refused, and never read beyond their end."""
    marks = array("Q", ends)
    plain = bytes([CopyKind.TEXT]) * columns
    for decode in (
        lambda: rows(data, marks, columns),
        lambda: copy_rows(data, marks, 0, plain, bytes(columns), b"\1" * columns, ord("i"), 1000),
    ):
        try:
            decode()
        except ValueError:
            continue
        assert all(end <= len(data) for end in ends)


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_image_cut_anywhere_stops(cut: int) -> None:
    made = images([(5, "text", 1.5)])
    data = made.data[:-cut]
    with pytest.raises(ValueError):
        rows(data, array("Q", [len(data)]), 3)


def test_extra_value_stops() -> None:
    made = images([(1, 2)])
    with pytest.raises(ValueError):
        rows(made.data, made.ends, 1)
