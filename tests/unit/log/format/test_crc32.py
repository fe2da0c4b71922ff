"""Our CRC-32 is zlib's: every length around the places where its ways change, from every alignment."""

from __future__ import annotations

import zlib
from random import Random

import pytest

from connector.log.format.crc32 import checksum

DATA = Random(1).randbytes(5000)


@pytest.mark.parametrize("start", range(17))
def test_it_is_the_sum_that_zlib_counts(start: int) -> None:
    for size in (*range(300), 1023, 1024, 1025, 4900):
        piece = DATA[start : start + size]

        assert checksum(piece) == zlib.crc32(piece), size


def test_it_goes_on_from_the_sum_before() -> None:
    for cut in (0, 1, 15, 63, 64, 65, 1000, 4999, 5000):
        assert checksum(DATA[cut:], checksum(DATA[:cut])) == zlib.crc32(DATA)
