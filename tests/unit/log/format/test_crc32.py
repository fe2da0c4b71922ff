"""The CRC-32 is that of zlib, at every length and alignment around which its algorithm changes."""

from __future__ import annotations

import zlib
from random import Random

import pytest

from connector.log.format.crc32 import checksum

DATA = Random(1).randbytes(5000)


@pytest.mark.parametrize("start", range(17))
def test_checksum_is_the_one_of_zlib(start: int) -> None:
    for size in (*range(300), 1023, 1024, 1025, 4900):
        piece = DATA[start : start + size]

        assert checksum(piece) == zlib.crc32(piece), size


def test_checksum_continues_from_an_earlier_one() -> None:
    for cut in (0, 1, 15, 63, 64, 65, 1000, 4999, 5000):
        assert checksum(DATA[cut:], checksum(DATA[:cut])) == zlib.crc32(DATA)
