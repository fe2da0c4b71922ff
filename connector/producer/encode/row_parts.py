"""Cuts a change that is too large for one message into parts: `Chunk` in `schemas/fragment.avsc`.

The encoded change is cut at any byte. Each part has its start and the size of the whole, so a reader knows from the
first part how many bytes follow. Each part is the only change of its fragment, which has a header and a checksum like
any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from connector.log.format import avro
from connector.producer.encode.fragment_plan import RowSlice

CHUNK: Final = avro.long(2)  # the union's branch
OVERHEAD: Final = 1 + 3 * 10  # of a part: the branch and three longs


def row_parts(change: bytes | RowSlice, room: int) -> Iterator[tuple[bytes, bool]]:
    """Cut a change into parts.

    Args:
        change: an item of `changes` of `FragmentWriter.write`.
        room: maximum bytes of an encoded part; more than `OVERHEAD`.

    Yields:
        Encoded `Chunk`s, each with True if it is the last one.
    """
    slices = [memoryview(change)] if isinstance(change, bytes) else _slices(*change)
    size = sum(map(len, slices))
    step = room - OVERHEAD
    for start in range(0, size, step):
        stop = min(start + step, size)
        header = CHUNK + avro.long(start) + avro.long(size) + avro.long(stop - start)
        yield b"".join((header, *_cut(slices, start, stop))), stop == size


def _slices(header: bytes, count: int, data: bytes | bytearray, start: int, stop: int) -> list[memoryview]:
    """Return a row change as slices: its header, and its array of one block."""
    return [memoryview(header + avro.long(count)), memoryview(data)[start:stop], memoryview(b"\0")]


def _cut(slices: Sequence[memoryview], start: int, stop: int) -> Iterator[memoryview]:
    """Yield the bytes from `start` to `stop` of the joined slices."""
    ends = [0]
    for slice_ in slices:
        ends.append(ends[-1] + len(slice_))
    for slice_, (begin, end) in zip(slices, pairwise(ends), strict=True):
        if begin < stop and start < end:
            yield slice_[max(0, start - begin) : stop - begin]
