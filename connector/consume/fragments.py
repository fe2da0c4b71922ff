"""The messages of one event, kept in memory or, for a large event, in a temporary file."""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator
from typing import IO, Final

LENGTH: Final = 8  # bytes of the length before each message in the file


class Fragments:
    """The messages of one event, in order; may be iterated any number of times. The file lives as long as this object.

    Args:
        partition, offset: the place of the first message on Kafka.
        memory: the most bytes to keep in memory; the messages after them go to the file.
    """

    def __init__(self, partition: int, offset: int, memory: int) -> None:
        self.partition = partition
        self.offset = offset
        self.size = 0
        self._memory = memory
        self._offsets = array("q")
        self._values: list[bytes] = []
        self._held = 0
        self._file: IO[bytes] | None = None

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self._held

    def add(self, value: bytes, offset: int) -> None:
        """Add the next message."""
        self._offsets.append(offset)
        self._values.append(value)
        self._held += len(value)
        self.size += len(value)
        if self._held > self._memory:
            self._write_out()

    def __iter__(self) -> Iterator[bytes]:
        if self._file is not None:
            self._file.flush()
            number, at, end = self._file.fileno(), 0, os.fstat(self._file.fileno()).st_size
            while at < end:
                length = int.from_bytes(os.pread(number, LENGTH, at), "big")
                yield os.pread(number, length, at + LENGTH)
                at += LENGTH + length
        yield from self._values

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """The messages with their offsets."""
        return zip(self._offsets, self, strict=True)

    def _write_out(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the event)
        for value in self._values:
            self._file.write(len(value).to_bytes(LENGTH, "big"))
            self._file.write(value)
        self._values.clear()
        self._held = 0
