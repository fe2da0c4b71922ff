"""The archive: a folder with a binary log's files as the server wrote them, filled by `thl archive`.

A file is named `<name>.part` until it is whole and synced to disk. Files may be compressed afterwards (`.gz`, `.zst`)
or removed, the oldest first. They contain table data, so only the archiving user may read them.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

from connector import private_files as private
from connector.errors import ConfigError, ConnectorError, CorruptBinlog, DiskUnavailable, HistoriesDiffer, disk_error
from connector.log.transaction.source_position import SourcePosition, file_number
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import MAGIC, NUMBERED, LogBytes, LogFile, log_files
from connector.mysql.binlog.raw import RawEvents

LOG: Final = logging.getLogger(__name__)
PART: Final = ".part"
IDENTITY: Final = "source.json"
SYNC_BYTES: Final = 64 << 20
COPY_BYTES: Final = 1 << 20


class Archive:
    """The folder.

    Args:
        folder: path of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def files(self) -> list[LogFile]:
        """The whole files, oldest first; may be empty.

        Raises:
            ConfigError: the folder cannot be read, holds the files of several logs, or lacks one in the middle.
        """
        try:
            if not any(NUMBERED.fullmatch(path.name) for path in self.folder.iterdir()):
                return []
        except OSError as error:
            raise ConfigError(f"the archive cannot be read: {error.strerror}", folder=self.folder) from error
        found = log_files([str(self.folder)])
        for one, next_one in pairwise(found):
            if file_number(next_one.name) != file_number(one.name) + 1:
                raise ConfigError(
                    "files are missing in the archive",
                    hint="restore them, or remove the older ones",
                    folder=self.folder,
                    between=f"{one.name} {next_one.name}",
                )
        return found

    def sizes(self) -> dict[str, tuple[int, bool]]:
        """The files by their names on the server: bytes of the log that are there, and if the file is whole.

        Nothing is locked or changed: another process may be writing. A file that is compressed is counted by its
        decompressed bytes.

        Raises:
            ConfigError, CorruptBinlog: a file cannot be read.
        """
        found = {one.name: (_log_bytes(one), True) for one in self.files()}
        for part in self.folder.glob(f"*{PART}"):
            if part.stem not in found:
                found[part.stem] = part.stat().st_size, False
        return found

    @property
    def owner(self) -> str | None:
        """UUID of the server whose log it is; None if it is not recorded.

        Raises:
            ConfigError: the record cannot be read.
        """
        identity = self.folder / IDENTITY
        try:
            return str(json.loads(identity.read_bytes())["server_uuid"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                "the archive does not name its server",
                hint="remove the file; the next run writes it again",
                file=identity,
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Creates the folder if needed, and locks it against other writers.

        Raises:
            ConfigError: another process writes to it, or it cannot be written.
        """
        try:
            self.folder.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
            lock = os.open(self.folder, os.O_RDONLY)
        except OSError as error:
            raise _unwritable(error, self.folder) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise ConfigError("another process writes to this archive", folder=self.folder) from error
        finally:
            os.close(lock)

    def belong(self, server_uuid: str) -> None:
        """Checks that the archive is this server's; records the server in a new archive.

        Raises:
            HistoriesDiffer: it is another server's.
            ConfigError: the folder cannot be written.
        """
        owner = self.owner
        if owner is None:
            try:
                _replace(self.folder / IDENTITY, json.dumps({"server_uuid": server_uuid}).encode() + b"\n")
            except OSError as error:
                raise _unwritable(error, self.folder) from error
        elif owner != server_uuid:
            raise HistoriesDiffer(
                "the archive holds another server's binary log",
                hint="use one folder for each server",
                folder=self.folder,
                archive=owner,
                source=server_uuid,
            )

    def resume(self) -> SourcePosition | None:
        """Position after the last whole archived event; None in an empty archive.

        An incomplete last event, after a crash, is cut off.
        """
        whole = self.files()
        newest = file_number(whole[-1].name) if whole else 0
        parts = [path for path in self.folder.glob(f"*{PART}") if file_number(path.stem) > newest]
        if parts:
            part = max(parts, key=lambda path: file_number(path.stem))
            return SourcePosition(part.stem, _without_incomplete_event(part))
        if whole:
            base = whole[-1].name.rpartition(".")[0]
            return SourcePosition(f"{base}.{newest + 1:06}", len(MAGIC))
        return None

    def verify(self) -> Iterator[tuple[LogFile, int]]:
        """Reads every whole file and yields it with its size.

        Raises:
            ConfigError: a file cannot be read, or is missing.
            CorruptBinlog: an event contradicts the format, its checksum, or the position of the event before it.
        """
        for file in self.files():
            with closing(LogBytes(file)) as source:
                raw, failure = _read_through(source, file.name)
            if failure is not None:
                failure.where = {
                    "file": file,
                    **{name: failure.where[name] for name in failure.where if name != "file"},
                }
                raise failure
            yield file, raw.offset


class ArchiveWriter:
    """Writes a dump to an archive.

    Args:
        archive: the archive.
    """

    def __init__(self, archive: Archive) -> None:
        self._folder = archive.folder
        self._name = ""
        self._file: BinaryIO | None = None
        self._unsynced = 0

    def accept(self, found: Sequence[tuple[str, bytes]]) -> list[str]:
        """Writes what `RawEvents.drain` returned.

        Returns:
            The files that became whole.

        Raises:
            ConfigError: the folder cannot be written.
        """
        whole = []
        try:
            for name, data in found:
                if name != self._name:
                    whole += self._finish()
                    self.begin(name)
                if self._file is not None and data:
                    self._file.write(data)
                    self._unsynced += len(data)
            if self._unsynced >= SYNC_BYTES:
                self.sync()
        except OSError as error:
            raise _unwritable(error, self._folder) from error
        return whole

    def sync(self) -> None:
        """Syncs written bytes to disk."""
        if self._file is not None and self._unsynced:
            os.fsync(self._file.fileno())
            self._unsynced = 0

    def close(self) -> None:
        """Syncs and closes; an incomplete file stays as it is."""
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None

    def begin(self, name: str) -> None:
        """Opens a file to append to it."""
        part = self._folder / f"{name}{PART}"
        if not part.exists():
            _replace(part, MAGIC)
        self._name = name
        self._file = private.open_to_append(part)

    def _finish(self) -> list[str]:
        """Gives the file its name: the server has begun its next file."""
        if self._file is None:
            return []
        self._file.flush()
        self._unsynced += 1
        self.close()
        (self._folder / f"{self._name}{PART}").rename(self._folder / self._name)
        _sync_folder(self._folder)
        return [self._name]


def _log_bytes(file: LogFile) -> int:
    """Bytes of a file, decompressed."""
    with closing(LogBytes(file)) as source:
        if not source.compressed and file.path is not None:
            return file.path.stat().st_size
        into = memoryview(bytearray(COPY_BYTES))
        while source.receive(into):
            pass
        return source.offset


def _without_incomplete_event(part: Path) -> int:
    """Cuts off an incomplete last event; returns the size."""
    with closing(LogBytes(LogFile(part, part.stem))) as source:
        raw, failure = _read_through(source, part.stem)
    size = part.stat().st_size
    if raw.offset < size:
        LOG.warning("cut off after the last whole event", extra={"file": part, "to": raw.offset, "why": failure})
        with part.open("r+b") as file:
            file.truncate(raw.offset)
            os.fsync(file.fileno())
    return raw.offset


def _read_through(source: LogBytes, name: str) -> tuple[RawEvents, ConnectorError | None]:
    """Reads a file to its end or to its first error."""
    frames = EventFrames()
    raw = RawEvents(frames, name)
    try:
        while frames.receive(source, 0):
            raw.drain()
        raw.drain()
    except ConnectorError as error:
        return raw, error
    if frames.left:
        return raw, CorruptBinlog("the file ends inside an event", pos=raw.offset)
    return raw, None


def _replace(path: Path, data: bytes) -> None:
    """Writes a file atomically."""
    new = path.with_name(f"{path.name}.new")
    with private.open_new(new) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(error: OSError, folder: Path) -> ConfigError | DiskUnavailable:
    kind = disk_error(error)
    hint = "make room on the archive's disk" if kind is DiskUnavailable else ""
    return kind(f"the archive cannot be written: {error.strerror}", hint=hint, folder=folder)
