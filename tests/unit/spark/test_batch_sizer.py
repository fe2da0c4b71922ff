"""The number of messages in a batch follows their size, within bounds."""

from __future__ import annotations

import pytest

from connector.spark.stream.batch_sizer import FEWEST, MOST, POLL, POLL_LARGE, SMALL, BatchSizer

SIZE = 48 << 20


@pytest.mark.parametrize(("message", "expected"), [(300, MOST), (64 << 10, 768), (1 << 20, FEWEST)])
def test_a_full_batch_sizes_the_next_to_the_bytes(message: int, expected: int) -> None:
    sizer = BatchSizer(3000, SIZE)
    assert sizer.seen(3000, 3000 * message)
    assert sizer.messages == expected
    assert not sizer.seen(expected, expected * message)


def test_a_batch_that_is_not_full_changes_nothing() -> None:
    sizer = BatchSizer(1000, SIZE)
    assert not sizer.seen(500, 500 * 300)
    assert sizer.messages == 1000


def test_a_size_that_is_not_far_off_changes_nothing() -> None:
    sizer = BatchSizer(1000, SIZE)
    assert not sizer.seen(1000, SIZE * 2)
    assert not sizer.seen(1000, SIZE // 2)


def test_a_refused_batch_is_read_in_smaller_ones_down_to_one() -> None:
    sizer = BatchSizer(1000, SIZE)
    seen = []
    while sizer.refused():
        seen.append(sizer.messages)
    assert seen == [125, 15, 1]
    assert not sizer.seen(1, 300)


def test_polls_grow_after_many_small_messages_and_shrink_at_a_large_one() -> None:
    sizer = BatchSizer(1000, SIZE)
    for _ in range(2):
        assert sizer.poll == POLL_LARGE
        sizer.seen(SMALL - 1, SIZE)
        assert sizer.poll == POLL_LARGE
        sizer.seen(1, 300)
        assert sizer.poll == POLL
        sizer.seen(3, 900, large=1)
