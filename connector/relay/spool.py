"""Stores the records of a task's segments in a file, from which the driver copies them into the relay."""

from __future__ import annotations

import os
import tempfile
from array import array
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from connector.log.compact.scan import Messages
from connector.log.compact.segment import SpooledRecords
from connector.log.format.message import Message
from connector.relay.record import add_record, add_records

PIECE: Final = 256 << 10  # bytes that are made at once: they stay in the processor's cache


class RecordSpool:
    """The records of one task's range; one segment's follow each other.

    Args:
        folder: a private folder of this machine.

    Raises:
        OSError: the file cannot be written; by all methods.
    """

    def __init__(self, folder: Path) -> None:
        number, path = tempfile.mkstemp(dir=folder)
        self._path = Path(path)
        self._file = os.fdopen(number, "wb", buffering=0)
        self.size = 0  # bytes of all records

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the file; an empty one is deleted."""
        self._file.close()
        if not self.size:
            self._path.unlink()

    def add_range(self, begin: int, ends: array[int], messages: Messages, first: int, end: int) -> None:
        """Store the records of messages, each a whole event.

        Args:
            begin: where the segment's records begin.
            ends: gets the place after each record, counted from `begin`.
            messages: the messages.
            first, end: the indexes, `end` not included.
        """
        step = 1 + PIECE * len(messages) // messages.size
        for at in range(first, end, step):
            records, places = bytearray(), array("q")
            add_records(records, places, messages, at, min(at + step, end))
            before = self.size - begin
            ends.extend([before + place for place in places])
            self._write(records)

    def add(self, message: Message) -> None:
        """Store the record of one message."""
        record = bytearray()
        add_record(record, message)
        self._write(record)

    def since(self, begin: int) -> SpooledRecords:
        """Return the place of the records from `begin` on."""
        return SpooledRecords(os.fsencode(self._path), begin, self.size)

    def _write(self, records: bytearray) -> None:
        self.size += len(records)
        rest = memoryview(records)
        while rest:
            rest = rest[self._file.write(rest) :]
