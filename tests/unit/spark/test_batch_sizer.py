"""The number of messages follows their size, seldom and within bounds."""

from __future__ import annotations

import pytest

from connector.spark.stream.batch_sizer import FEWEST, MOST, POLL, POLL_LARGE, SMALL, BatchSizer

SIZE = 48 << 20


@pytest.mark.parametrize(("message", "expected"), [(300, MOST), (64 << 10, 768), (1 << 20, FEWEST)])
def test_as_many_messages_as_fit(message: int, expected: int) -> None:
    pace = BatchSizer(3000, SIZE)
    assert pace.seen(3000, 3000 * message)
    assert pace.messages == expected
    assert not pace.seen(expected, expected * message)


def test_a_batch_that_ended_at_the_log_s_end_tells_nothing() -> None:
    pace = BatchSizer(1000, SIZE)
    assert not pace.seen(500, 500 * 300)
    assert pace.messages == 1000


def test_what_is_not_far_off_stays() -> None:
    pace = BatchSizer(1000, SIZE)
    assert not pace.seen(1000, SIZE * 2)
    assert not pace.seen(1000, SIZE // 2)


def test_what_did_not_fit_at_all_is_read_in_smaller_batches_down_to_one() -> None:
    pace = BatchSizer(1000, SIZE)
    seen = []
    while pace.refused():
        seen.append(pace.messages)
    assert seen == [125, 15, 1]
    assert not pace.seen(1, 300)


def test_many_are_polled_once_so_many_have_come_that_none_is_large() -> None:
    pace = BatchSizer(1000, SIZE)
    for _ in range(2):
        assert pace.poll == POLL_LARGE
        pace.seen(SMALL - 1, SIZE)
        assert pace.poll == POLL_LARGE
        pace.seen(1, 300)
        assert pace.poll == POLL
        pace.seen(3, 900, large=1)
