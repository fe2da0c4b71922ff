"""Random damage to logs of every kind ends in whole transactions or a connector error."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import CorruptBinlog
from tests.fuzz.logs import changed, events, seeds
from tests.fuzz.reading import read_events, read_raw, read_sql, read_whole
from tests.support.long import long

SEEDS = seeds()


@pytest.mark.parametrize("log", [0, 1, *long(*range(2, len(SEEDS)))])
def test_truncated_log_gives_the_transactions_before_the_cut(log: int) -> None:
    data = SEEDS[log]
    ends, error = read_whole(data)
    assert error is None
    assert ends
    step = max(1, len(data) // 400)
    for size in sorted({*range(0, len(data), step), *(end for _, end in events(data))}):
        found, error = read_whole(data[:size])
        assert found == [end for end in ends if end <= size]
        assert error is None or isinstance(error, CorruptBinlog)
        if error is None:
            assert size in {0, 4, *(end for _, end in events(data))}


@pytest.mark.parametrize("size", [0, 5, 12, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("log", range(len(SEEDS)))
def test_impossible_length_is_refused_at_once(log: int, size: int) -> None:
    data = SEEDS[log]
    for start, _ in events(data):
        damaged = bytearray(data)
        damaged[start + 9 : start + 13] = struct.pack("<I", size)
        found, error = read_whole(bytes(damaged))
        assert isinstance(error, CorruptBinlog)
        assert error.where["size"] == size
        assert all(end <= start for end in found)


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.sampled_from(SEEDS), st.randoms(use_true_random=False), st.integers(1, 4))
def test_random_damage_ends_in_transactions_or_a_connector_error(
    data: bytes, other: bytes, draw: random.Random, times: int
) -> None:
    for _ in range(times):
        data = changed(data, other, draw)
    _, error = read_whole(data)
    assert error is None or error.message
    for reader in (read_raw, read_sql, read_events):
        error = reader(data)
        assert error is None or error.message


@pytest.mark.parametrize("log", range(len(SEEDS)))
def test_undamaged_log_is_printed_as_sql_and_event_by_event(log: int) -> None:
    assert read_sql(SEEDS[log]) is None
    assert read_events(SEEDS[log]) is None
