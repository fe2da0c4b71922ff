"""TRANSACTION_PAYLOAD events: the compressed events of a transaction.

A list of type, length, value (packed integers) up to type 0; then the compressed bytes. They are expanded on demand: a
transaction is never in memory as a whole, but each of its events is, so the size of an event is limited.
"""

from __future__ import annotations

from typing import BinaryIO

import zstandard

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

END, SIZE, COMPRESSION, EXPANDED = range(4)
ZSTD, NONE = 0, 255
MAX_WINDOW = 1 << 27  # of zstd's highest level


class Payload:
    """Expands the bytes of a compressed transaction; a `ByteSource`.

    Args:
        stream: the expanded bytes.
        expanded: the announced number of expanded bytes.
    """

    def __init__(self, stream: BinaryIO, expanded: int) -> None:
        self._stream = stream
        self._left = expanded

    def receive(self, into: memoryview, timeout: float) -> int:
        """Reads the next bytes; 0 at the end. `timeout` is not used.

        Raises:
            CorruptBinlog: they cannot be decompressed, or their number is not the announced one.
        """
        del timeout
        try:
            size = self._stream.readinto(into)  # type: ignore[attr-defined]
        except zstandard.ZstdError as error:
            raise CorruptBinlog(f"a compressed transaction is damaged: {error}") from error
        self._left -= size
        if self._left < 0 or (size == 0 and self._left):
            raise CorruptBinlog("a compressed transaction does not have its announced size")
        return int(size)


def payload(body: bytes) -> Payload:
    """Opens the event for reading.

    Raises:
        Unsupported: another compression than zstd.
        CorruptBinlog: a length is wrong.
    """
    event = Fields(body)
    header = payload_header(event)
    data = event.view(header.get(SIZE, -1))
    compression = header.get(COMPRESSION, NONE)
    if compression != ZSTD:
        raise Unsupported(f"a transaction compressed by the unknown method {compression}", method=compression)
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(data)
    return Payload(reader, header.get(EXPANDED, -1))


def payload_header(event: Fields) -> dict[int, int]:
    """Reads the fields before the compressed bytes: a number by type."""
    header = {}
    while (kind := event.packed()) != END:
        header[kind] = Fields(event.packed_text()).packed()
    return header
