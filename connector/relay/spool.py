"""Stores the records of a task's segments in a file, from which the driver copies them into the relay.

The driver reads them through a buffer, because to map the file costs twice as much as the copy. Then tasks write over
the file: memory that the system has given before costs a tenth of fresh memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.relay.record import add_record, add_records

PIECE: Final = 1 << 20  # bytes that are made at once: they stay in the processor's cache
_READ: Final = ".read"  # suffix of files that the driver has read


class RecordSpool:
    """The records of one task's range; one segment's follow each other.

    Args:
        folder: a private folder of this machine.

    Raises:
        OSError: the file cannot be written; by all methods.
    """

    def __init__(self, folder: Path) -> None:
        number, self._path = _taken(folder) or _made(folder)
        self._file = os.fdopen(number, "wb", buffering=0)
        self.size = 0  # bytes of all records
        self._referred = False  # a segment has records here

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the file; delete it if the task has failed, or if no segment refers to it."""
        self._file.close()
        if kind is not None or not self._referred:
            self._path.unlink(missing_ok=True)  # the session may have ended

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
        """Return the place of the records from `begin` on, for a segment."""
        self._referred = True
        return SpooledRecords(os.fsencode(self._path), begin, self.size)

    def _write(self, records: bytearray) -> None:
        self.size += len(records)
        rest = memoryview(records)
        while rest:
            rest = rest[self._file.write(rest) :]


class SpoolFile:
    """A task's file in the driver; once nothing refers to it or its records any more, tasks write over it.

    Args:
        path: its path, as `SpooledRecords` has it.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: bytes) -> None:
        self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, _release, self.number, Path(os.fsdecode(path))).atexit = False


@dataclass(frozen=True, slots=True)
class SpooledRecords:
    """Records of one segment that follow each other in a task's file; the `Records` of `connector.log.compact.segment`.

    In the task, and on their way to the driver, only their place is known: they are read after `opened`.

    Args:
        path: of the file.
        begin, end: their first byte and the one after them.
        file: the file, open in the driver.
    """

    path: bytes
    begin: int
    end: int
    file: SpoolFile | None = None

    def opened(self, files: dict[bytes, SpoolFile]) -> SpooledRecords:
        """Return these records, to be read.

        Args:
            files: the files that are open, by their paths; gets this one's.

        Raises:
            OSError: the file cannot be opened.
        """
        if self.path not in files:
            files[self.path] = SpoolFile(self.path)
        return replace(self, file=files[self.path])

    def __len__(self) -> int:
        """The number of bytes."""
        return self.end - self.begin

    def part(self, begin: int, end: int) -> SpooledRecords:
        """Return some of these bytes."""
        return replace(self, begin=self.begin + begin, end=self.begin + end)

    def pieces(self, buffer: memoryview) -> Iterator[memoryview]:
        """See `Records`."""
        at = self.begin
        while at < self.end:
            size = os.preadv(self._number, [buffer[: self.end - at]], at)
            if not size:
                raise OSError(errno.EIO, "the file of one of Spark's tasks is too short")
            yield buffer[:size]
            at += size

    def mapped(self) -> memoryview:
        """See `Records`."""
        if not len(self):
            return memoryview(b"")
        return memoryview(mmap.mmap(self._number, 0, access=mmap.ACCESS_READ))[self.begin : self.end]

    @property
    def _number(self) -> int:
        if self.file is None:
            raise ValueError("the records' file is not open")
        return self.file.number


def _made(folder: Path) -> tuple[int, Path]:
    number, path = tempfile.mkstemp(dir=folder)
    return number, Path(path)


def _taken(folder: Path) -> tuple[int, Path] | None:
    """Take a file that the driver has read; None: there is none."""
    for read in folder.glob(f"*{_READ}"):
        path = read.with_suffix("")
        with suppress(FileNotFoundError):  # another task was faster
            read.rename(path)
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC), path
    return None


def _release(number: int, path: Path) -> None:
    os.close(number)
    with suppress(FileNotFoundError):  # the session has ended
        path.rename(path.with_name(path.name + _READ))
