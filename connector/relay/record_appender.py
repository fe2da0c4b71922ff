"""Appends records to a relay's newest file, through a buffer, and syncs what was appended; knows no events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from connector import failpoints as faults
from connector.log.compact.segment import Records
from connector.relay.appending import AppendedFile, Appending, DirectWrites, aligned
from connector.relay.folder import sync_folder

WRITE_BYTES: Final = 1 << 20  # bytes of records that are gathered in memory


class RecordAppender:
    """The newest file of a relay, to which records are appended, and the earlier ones that are not synced yet.

    Args:
        folder: the relay.
        check: called before each sync; an OSError of it is one of the sync.

    Attributes:
        size: the bytes of the newest file, with those that are not written yet.

    Raises:
        OSError: a file cannot be written; by all methods, also for what an earlier call has begun.
    """

    def __init__(self, folder: Path, check: Callable[[], None]) -> None:
        self._folder = folder
        self._check = check
        self._appending = Appending()
        self._direct = DirectWrites()
        self._file: AppendedFile | None = None
        self._unsynced: list[AppendedFile] = []
        self._new_name = False
        self._buffer = bytearray()
        self._piece = aligned()
        self.size = 0

    @property
    def has_file(self) -> bool:
        """True if there is a file to append to."""
        return self._file is not None

    def open(self, path: Path, size: int) -> None:
        """Append to a file that is there, and has `size` bytes."""
        self._file = AppendedFile(path, self._direct)
        self._unsynced.append(self._file)
        self.size = size

    def create(self, path: Path) -> None:
        """Append to a new file from now on."""
        self._flush()
        self.open(path, 0)
        self._new_name = True

    def write(self, records: memoryview) -> None:
        """Append records, which may stay in memory until later ones come, or a sync."""
        self.size += len(records)
        if len(self._buffer) + len(records) < WRITE_BYTES:
            self._buffer += records
            return
        self._flush()
        if len(records) < WRITE_BYTES:
            self._buffer += records
        else:
            self._write_out(records)

    def copy(self, records: Records) -> None:
        """Append what a task has stored."""
        self._flush()
        self.size += len(records)
        self._then(partial(self._current.copy, records, self._piece))

    def truncate(self, size: int) -> None:
        """Cut the newest file, after what was appended before is written."""
        self._flush()
        self.wait()
        self._current.truncate(size)
        self.size = size

    def sync_soon(self) -> None:
        """Begin to bring what was appended to the disk; `wait` waits for it."""
        self._flush()
        if self._unsynced:
            ended = [file for file in self._unsynced if file is not self._file]
            self._appending.then(partial(self._sync, self._unsynced, ended, new_name=self._new_name))
            self._unsynced, self._new_name = [self._file] if self._file else [], False

    def wait(self) -> None:
        """Wait until all that was begun is done."""
        self._appending.wait()

    def forget(self) -> None:
        """Drop what is not written, and close the files."""
        self._buffer = bytearray()
        for file in {*self._unsynced, *([self._file] if self._file else [])}:
            file.close()
        self._unsynced, self._file = [], None

    def close(self) -> None:
        """Wait, end the thread, and close the files. What was not synced may be lost."""
        self._appending.close()
        self.forget()

    def _flush(self) -> None:
        if self._buffer:
            buffer, self._buffer = self._buffer, bytearray()
            self._write_out(memoryview(buffer))

    def _write_out(self, records: memoryview) -> None:
        self._then(partial(self._current.append, records))

    @property
    def _current(self) -> AppendedFile:
        if self._file is None:
            raise ValueError("records without a file")
        return self._file

    def _then(self, write: Callable[[], None]) -> None:
        self._appending.then(write)
        faults.point("relay.after_write")

    def _sync(self, files: Iterable[AppendedFile], ended: Iterable[AppendedFile], *, new_name: bool) -> None:
        self._check()
        for file in files:
            file.sync()
        for file in ended:
            file.close()
        if new_name:
            sync_folder(self._folder)
