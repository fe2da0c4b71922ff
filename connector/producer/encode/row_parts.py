"""A change that is too large for one message, cut into parts: `Chunk` in `schemas/fragment.avsc`.

The encoded change is cut, at any byte. Each part has its start and the size of the whole, so a reader knows from the
first part how much will come, and when it is whole. Each part is the only change of its fragment, which has a header
and a checksum like any other.
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
        change: as `FragmentWriter.write` takes it.
        room: bytes of an encoded part, at most; more than `OVERHEAD`.

    Yields:
        Encoded `Chunk`s, and whether the change is whole with it.
    """
    slices = [memoryview(change)] if isinstance(change, bytes) else _slices(*change)
    size = sum(map(len, slices))
    step = room - OVERHEAD
    for start in range(0, size, step):
        stop = min(start + step, size)
        head = CHUNK + avro.long(start) + avro.long(size) + avro.long(stop - start)
        yield b"".join((head, *_cut(slices, start, stop))), stop == size


def _slices(head: bytes, count: int, data: bytes | bytearray, start: int, stop: int) -> list[memoryview]:
    """A row change: its header, and its array of one block."""
    return [memoryview(head + avro.long(count)), memoryview(data)[start:stop], memoryview(b"\0")]


def _cut(slices: Sequence[memoryview], start: int, stop: int) -> Iterator[memoryview]:
    """The bytes from `start` to `stop` of all slices together."""
    ends = [0]
    for slice_ in slices:
        ends.append(ends[-1] + len(slice_))
    for slice_, (begin, end) in zip(slices, pairwise(ends), strict=True):
        if begin < stop and start < end:
            yield slice_[max(0, start - begin) : stop - begin]
