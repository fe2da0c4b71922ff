"""The number of messages in a batch follows their size, within bounds."""

from __future__ import annotations

import pytest

from connector.spark.stream.batch_sizer import FEWEST, GROWTH, MOST, BatchSizer

SIZE = 48 << 20


@pytest.mark.parametrize(("message", "expected"), [(200, MOST), (64 << 10, 768), (1 << 20, FEWEST)])
def test_a_batch_sizes_the_next_to_the_bytes(message: int, expected: int) -> None:
    sizer = BatchSizer(30_000, SIZE)
    sizer.seen(30_000, 30_000 * message)
    assert sizer.messages == expected


def test_a_batch_grows_in_steps_because_later_messages_may_be_larger() -> None:
    sizer = BatchSizer(1000, SIZE)
    sizer.seen(3, 900)
    assert sizer.messages == GROWTH * FEWEST
    sizer.seen(400, 120_000)
    assert sizer.messages == GROWTH * 400


def test_messages_may_be_large_until_a_batch_shows_their_size_and_after_large_ones() -> None:
    sizer = BatchSizer(1000, SIZE)
    found = [sizer.large]
    for messages, size in ((1000, 1000 * 70_000), (0, 0), (10, 10 << 20), (0, 0), (10_000, 10_000 * 2_000)):
        sizer.seen(messages, size)
        found.append(sizer.large)
    assert found == [True, False, False, True, True, False]


def test_messages_that_fit_are_counted_by_the_last_batch() -> None:
    sizer = BatchSizer(1000, SIZE)
    assert sizer.fitting(1 << 20) == MOST
    sizer.seen(1000, 1000 << 10)
    assert sizer.fitting(1 << 20) == 768
    assert sizer.fitting(100) == 1


def test_no_message_changes_nothing() -> None:
    sizer = BatchSizer(1000, SIZE)
    sizer.seen(0, 0)
    assert sizer.messages == 1000


def test_a_refused_batch_is_read_in_smaller_ones_down_to_one() -> None:
    sizer = BatchSizer(1000, SIZE)
    seen = []
    while sizer.refused():
        seen.append(sizer.messages)
    assert seen == [125, 15, 1]
    for most in (2, 4, 8):
        sizer.seen(1, 300)
        assert sizer.messages == most


@pytest.mark.parametrize(
    ("events", "interval"), [(0, 256), (3, 1), (4, 1), (1023, 128), (1024, 256), (100_000, 16_384)]
)
def test_a_batch_has_some_intervals_of_seqnos(events: int, interval: int) -> None:
    sizer = BatchSizer(1000, 1 << 20)
    sizer.seen(1000, 1 << 20, events)
    assert sizer.interval == interval
