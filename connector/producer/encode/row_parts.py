"""A change that is too large for one message, cut into parts: `Chunk` in `schemas/fragment.avsc`.

What is cut is the encoded change, at any byte. Each part says where it begins and how large the whole is, so whoever
puts them together knows at once how much there will be, and when it is whole. Each is the one change of a fragment of
its own, so fragments stay what they are: they have a header and a checksum, and the ledger's rules hold for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from connector.log.format import avro
from connector.producer.encode.fragment_plan import RowSlice

CHUNK: Final = avro.long(2)  # the union's branch
OVERHEAD: Final = 1 + 3 * 10  # of a part: the branch and three longs


def chunks(change: bytes | RowSlice, room: int) -> Iterator[tuple[bytes, bool]]:
    """A change in parts.

    Args:
        change: as `FragmentWriter.write` takes it.
        room: bytes of an encoded part, at most; more than `OVERHEAD`.

    Yields:
        Encoded `Chunk`s, and whether the change is whole with it.
    """
    pieces = [memoryview(change)] if isinstance(change, bytes) else _pieces(*change)
    size = sum(map(len, pieces))
    step = room - OVERHEAD
    for start in range(0, size, step):
        stop = min(start + step, size)
        head = CHUNK + avro.long(start) + avro.long(size) + avro.long(stop - start)
        yield b"".join((head, *_cut(pieces, start, stop))), stop == size


def _pieces(head: bytes, count: int, data: bytes | bytearray, start: int, stop: int) -> list[memoryview]:
    """A row change: its head, its array of one block."""
    return [memoryview(head + avro.long(count)), memoryview(data)[start:stop], memoryview(b"\0")]


def _cut(pieces: Sequence[memoryview], start: int, stop: int) -> Iterator[memoryview]:
    """The bytes from `start` to `stop` of all pieces together."""
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    for piece, (begin, end) in zip(pieces, pairwise(ends), strict=True):
        if begin < stop and start < end:
            yield piece[max(0, start - begin) : stop - begin]
