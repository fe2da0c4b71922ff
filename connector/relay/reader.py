"""Reads whole events of a relay in the order of the log, and checks that none is missing.

A file may be written meanwhile: an event that its writer has not finished is not returned. Where no process writes, a
record that is cut off is an error, like damage: the events before it were returned then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from connector.errors import ConfigError, LogDamaged
from connector.log.ids import Epoch, LogId, Seqno
from connector.relay.folder import OPTION, RelayFile, damaged, locked, open_to_read, relay_files, warn_of_checksum
from connector.relay.frames import FRAGMENT, TRAPPED, Broken, Frame, RelayFragment, fragment_of, frames, trapped

BUFFER: Final = 1 << 20  # bytes


class LocatedFragment(NamedTuple):
    """A fragment of a whole event, and the file that has it."""

    file: RelayFile
    fragment: RelayFragment


class TrappedEvents(NamedTuple):
    """Events that the log passes over, because they are trapped; both included."""

    first: Seqno
    last: Seqno


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """A whole event in a file: its first and last fragment, and the offsets of its records.

    Args:
        wrong: the offsets of the records with a wrong checksum.
    """

    file: RelayFile
    first: RelayFragment
    last: RelayFragment
    begin: int
    end: int
    wrong: tuple[int, ...] = ()


class RelayReader:
    """The events of a folder, as they are when this is made.

    Args:
        folder: the folder.
        checksums: False: events with a wrong checksum are yielded, too.

    Raises:
        ConfigError: the folder has no files of a relay.
        LogDamaged: the first record of a file is damaged, or files are of several logs.
    """

    def __init__(self, folder: Path, *, checksums: bool = True) -> None:
        self.folder = folder
        self._checksums = checksums
        self.files = relay_files(folder, checksums=checksums)
        if not self.files:
            raise ConfigError(
                "the folder has no relay: no file thl.data.0000000001",
                hint=f"thl apply writes one where {OPTION} names the folder",
                folder=str(folder),
            )
        other = next((file for file in self.files if file.head.log_id != self.log_id), None)
        if other is not None:
            raise LogDamaged(
                "the relay's files are of several logs",
                hint="move those of one log into a folder of their own",
                file=str(other.path),
                log_id=other.head.log_id,
                newest_file=str(self.files[-1].path),
                newest_log_id=self.log_id,
            )

    @property
    def log_id(self) -> LogId:
        """The ID of the log."""
        return self.files[-1].head.log_id

    @property
    def service(self) -> str:
        """The log's service."""
        return self.files[-1].head.service

    @property
    def oldest(self) -> Seqno:
        """The first event that it may have."""
        return self.files[0].first

    @property
    def newest(self) -> Seqno:
        """The last whole event; the one before the last file if that has none."""
        found = (one.last if isinstance(one, TrappedEvents) else one.last.seqno for one in self.of_file(self.files[-1]))
        return max(found, default=self.files[-1].head.seqno)

    def events(self, first: Seqno, last: Seqno | None = None) -> Iterator[WholeEvent | TrappedEvents]:
        """Yield whole events, without their messages, from one on.

        Args:
            first: the first event.
            last: the last one; None: to the end.

        Raises:
            LogDamaged: one is missing before a later one, or a file is damaged.
        """
        following = first
        for index, file in enumerate(self.files):
            newest = index + 1 == len(self.files)
            if not newest and self.files[index + 1].first <= first:
                continue
            if file.first > following:
                raise self._missing(following, Seqno(file.head.seqno), file)
            for found in self.of_file(file):
                if isinstance(found, TrappedEvents):
                    following = max(following, Seqno(found.last + 1))
                elif found.last.seqno < first:
                    continue
                elif last is not None and found.last.seqno > last:
                    return
                else:
                    following = Seqno(found.last.seqno + 1)
                yield found

    def fragments(self, first: Seqno, last: Seqno | None = None) -> Iterator[LocatedFragment | TrappedEvents]:
        """Yield the fragments of whole events, one after the other in memory; arguments and errors as of `events`."""
        for found in self.events(first, last):
            if isinstance(found, TrappedEvents):
                yield found
            else:
                yield from self.of_event(found)

    def of_event(self, event: WholeEvent) -> Iterator[LocatedFragment]:
        """Yield the fragments of an event.

        Raises:
            LogDamaged: its file was changed or deleted meanwhile.
        """
        if event.first is event.last:
            yield LocatedFragment(event.file, event.first)
            return
        try:
            with _opened(event.file.path) as file:
                for frame in frames(file, event.begin, checksums=self._checksums):
                    yield LocatedFragment(event.file, fragment_of(frame))
                    if frame.end >= event.end:
                        return
        except Broken as error:
            raise damaged(event.file.path, error) from error
        except FileNotFoundError as error:
            raise _deleted(event.file) from error

    def epoch_of(self, seqno: Seqno) -> Epoch | None:
        """Return the epoch of an event, also of one that is only named as the one before a file; None: not known.

        Raises:
            LogDamaged: a file is damaged before it.
        """
        for index, file in enumerate(self.files):
            if file.head.seqno == seqno:
                return file.head.epoch
            newest = index + 1 == len(self.files)
            if file.first <= seqno and (newest or seqno < self.files[index + 1].first):
                for found in self.of_file(file):
                    if isinstance(found, WholeEvent) and found.last.seqno == seqno:
                        return found.last.epoch
        return None

    def _missing(self, first: Seqno, last: Seqno, file: RelayFile) -> LogDamaged:
        oldest = " (Start.oldest())" if file is self.files[0] else ""
        return LogDamaged(
            f"the relay lacks events {first}..{last}",
            hint="they were deleted, or the relay was off when they were applied: begin at event "
            f"{file.first}{oldest}, or read or apply these events from Kafka; relay.retention keeps files for longer",
            seqno=f"{first}..{last}",
            oldest=self.oldest,
            file=str(file.path),
        )

    def of_file(self, file: RelayFile) -> Iterator[WholeEvent | TrappedEvents]:
        """Yield what one file has; errors as those of `events`."""
        scan = FileScan(file, checksums=self._checksums)
        try:
            with _opened(file.path) as opened:
                yield from scan.events(opened)
        except Broken as error:
            # What its writer writes at this moment is no damage.
            if not (error.cut and file is self.files[-1] and locked(self.folder)):
                raise damaged(file.path, error, scan.seqno, scan.epoch) from error
        except FileNotFoundError as error:
            raise _deleted(file) from error


class FileScan:
    """Reads one file, and checks the order of its records.

    Args:
        file: the file.
        checksums: as of `RelayReader`.

    Attributes:
        seqno, epoch: the last whole event so far, or the one before the file.
        begin: the offset after the file's first record.
        end: the offset after the last whole event.
    """

    def __init__(self, file: RelayFile, *, checksums: bool = True) -> None:
        self.file = file
        self._checksums = checksums
        self.seqno = file.head.seqno
        self.epoch = file.head.epoch
        self.begin = self.end = 0

    def events(self, opened: BinaryIO) -> Iterator[WholeEvent | TrappedEvents]:
        """Yield what the file has, to its last whole event.

        Raises:
            Broken: something is no record, or comes out of order.
        """
        records = frames(opened, checksums=self._checksums)
        self.begin = self.end = next(records).end
        first: tuple[Frame, RelayFragment] | None = None
        fragno = 0
        wrong: list[int] = []
        for frame in records:
            if frame.kind == TRAPPED and first is None:
                found = TrappedEvents(*trapped(frame))
                if found.first != self.seqno + 1 or found.last < found.first:
                    raise Broken(frame.begin, f"event {self.seqno + 1} does not come next")
                self.seqno, self.end = found.last, frame.end
                if frame.wrong:
                    warn_of_checksum(self.file.path, frame.begin, found.first)
                yield found
                continue
            if frame.kind != FRAGMENT:
                raise Broken(frame.begin, f"a record of the type {frame.kind} is out of place")
            fragment = fragment_of(frame)
            if first is None:
                first, fragno = (frame, fragment), 0
            self._check(first[1], fragment, fragno, frame.begin)
            fragno += 1
            if frame.wrong:
                wrong.append(frame.begin)
            if fragment.last_frag:
                begin = first[0].begin
                self.seqno, self.epoch, self.end = fragment.seqno, fragment.epoch, frame.end
                yield WholeEvent(
                    self.file, first[1] if fragno > 1 else fragment, fragment, begin, frame.end, tuple(wrong)
                )
                first, wrong = None, []

    def _check(self, first: RelayFragment, fragment: RelayFragment, fragno: int, at: int) -> None:
        if fragment.seqno != self.seqno + 1 or fragment.fragno != fragno:
            raise Broken(at, f"fragment {fragno} of event {self.seqno + 1} does not come next")
        if fragment.epoch < self.epoch or fragment.epoch != first.epoch:
            raise Broken(at, f"event {fragment.seqno} is of epoch {fragment.epoch} after epoch {self.epoch}")


def _deleted(file: RelayFile) -> LogDamaged:
    return LogDamaged(
        f"the relay lacks events from {file.first} on: their file was deleted meanwhile",
        hint="relay.retention keeps files for longer",
        file=str(file.path),
    )


def _opened(path: Path) -> BinaryIO:
    return open_to_read(path, BUFFER)
