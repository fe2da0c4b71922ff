"""The TRANSACTION_PAYLOAD event: a transaction's events, compressed.

A list of type, length, value (packed integers) up to type 0; then the bytes. They are decompressed as they are
wanted: what a transaction expands to is never in memory at once. One event of it is, so its size has a bound.
"""

from __future__ import annotations

from typing import BinaryIO

import zstandard

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

END, SIZE, COMPRESSION, EXPANDED = range(4)
ZSTD, NONE = 0, 255
MAX_WINDOW = 1 << 27  # what zstd's highest level wants


class Payload:
    """The source of a compressed transaction's events.

    Args:
        stream: gives the decompressed bytes.
        expanded: how many those must be.
    """

    def __init__(self, stream: BinaryIO, expanded: int) -> None:
        self._stream = stream
        self._left = expanded

    def receive(self, into: memoryview, timeout: float) -> int:
        """The next bytes; 0 at the end. `timeout` has no meaning here.

        Raises:
            CorruptBinlog: they cannot be decompressed, or are not as many as announced.
        """
        del timeout
        try:
            size = self._stream.readinto(into)  # type: ignore[attr-defined]
        except zstandard.ZstdError as error:
            raise CorruptBinlog(f"a compressed transaction is damaged: {error}") from error
        self._left -= size
        if self._left < 0 or (size == 0 and self._left):
            raise CorruptBinlog("a compressed transaction has another size than it says")
        return int(size)


def payload(body: bytes) -> Payload:
    """Open the event.

    Raises:
        Unsupported: another compression than zstd.
        CorruptBinlog: a length is wrong.
    """
    event = Fields(body)
    header = {}
    while (kind := event.packed()) != END:
        header[kind] = Fields(event.packed_text()).packed()
    data = event.view(header.get(SIZE, -1))
    compression = header.get(COMPRESSION, NONE)
    if compression != ZSTD:
        raise Unsupported(f"a transaction compressed by method {compression}")
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(data)
    return Payload(reader, header.get(EXPANDED, -1))
