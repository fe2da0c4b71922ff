"""Appends records to the relay's files, in order, on a thread of its own.

What tasks have stored goes to the disk without the page cache, where the file system allows it: pages that the system
has to make first cost more than all else about a record, and the relay is seldom read.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from connector.log.compact.segment import Records
from connector.relay.folder import check_there, open_private

LOG: Final = logging.getLogger(__name__)

BLOCK: Final = 4096  # bytes: places, sizes and memory of direct writes are multiples of it
LEAST: Final = 64 * BLOCK  # bytes of records that are written directly
PIECE: Final = 1 << 20  # bytes of a write
MOST_WAITING: Final = 16  # writes that wait for the disk before the next one waits, too


class Appending:
    """Does what it is given one after the other; errors are raised by a later call."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "thl-relay")
        self._waiting: deque[Future[None]] = deque()

    def then(self, work: Callable[[], None]) -> None:
        """Do something after all else.

        Raises:
            OSError: an earlier work has failed.
        """
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait until everything is done.

        Raises:
            OSError: a work has failed; those after it were done, too.
        """
        waiting, self._waiting = self._waiting, deque()
        errors = [error for one in waiting if (error := one.exception()) is not None]
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Wait, and end the thread."""
        self._pool.shutdown()


def aligned() -> memoryview:
    """Return a buffer for direct writes."""
    return memoryview(mmap.mmap(-1, PIECE))


class DirectWrites:
    """The capability of a folder's file system for direct writes, as far as it is known; its files share it.

    Attributes:
        refused: the file system does not have them.
    """

    def __init__(self) -> None:
        self.refused = False


class AppendedFile:
    """A file of the relay, written at its end.

    Args:
        path: its path; it is created if it is missing.
        direct: what is known of its folder.

    Raises:
        OSError: it cannot be written; by all methods.
    """

    def __init__(self, path: Path, direct: DirectWrites) -> None:
        self.path = path
        self._writes = direct
        self._file = open_private(path)
        self._end = os.fstat(self._file.fileno()).st_size
        self._direct: int | None = None

    def append(self, records: memoryview) -> None:
        """Append bytes."""
        self._end += len(records)
        while records:
            records = records[os.write(self._file.fileno(), records) :]

    def copy(self, records: Records, buffer: memoryview) -> None:
        """Append what a task has stored, through a buffer of `aligned`."""
        before = min(-self._end % BLOCK, len(records))
        end = before + (len(records) - before) // BLOCK * BLOCK
        if len(records) < LEAST or not self._opened():
            before = end = len(records)
        for piece in records.part(0, before).pieces(buffer):
            self.append(piece)
        for piece in records.part(before, end).pieces(buffer):
            self._write(piece)
        for piece in records.part(end, len(records)).pieces(buffer):
            self.append(piece)

    def _opened(self) -> bool:
        """Return whether the file can be written directly."""
        if self._direct is None and not self._writes.refused:
            try:
                self._direct = os.open(self.path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError as error:
                self._refuse(error)
        return self._direct is not None and not self._writes.refused

    def _write(self, piece: memoryview) -> None:
        """Write whole blocks at the file's end, which is block-aligned."""
        if self._writes.refused or self._direct is None:
            self.append(piece)
            return
        try:
            written = os.pwrite(self._direct, piece, self._end)
        except OSError as error:
            self._refuse(error)
            written = 0
        self._end += written
        if written < len(piece):
            self.append(piece[written:])

    def _refuse(self, error: OSError) -> None:
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise error
        self._writes.refused = True
        LOG.info("the relay's file system has no direct writes: they cost more CPU", extra={"file": str(self.path)})

    def truncate(self, size: int) -> None:
        """Cut the file."""
        os.ftruncate(self._file.fileno(), size)
        self._end = size

    def sync(self) -> None:
        """Wait until the file is on the disk, and check that it is still there under its name, as it was written.

        Raises:
            OSError: it was deleted, moved, replaced or cut, or its folder was.
        """
        os.fdatasync(self._file.fileno())
        check_there(self.path, self._file)
        if (size := os.fstat(self._file.fileno()).st_size) != self._end:
            raise OSError(errno.ESTALE, f"another program has cut {self.path} to {size} of {self._end} bytes")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None
