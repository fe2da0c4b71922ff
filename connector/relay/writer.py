"""Writes to the relay what is applied next, and has it on the disk before the target commits it.

An event's fragments follow each other, events follow in the order of the log, and a file ends only between events. What
was written for an event that is given up is cut off again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from connector import failpoints as faults
from connector import private_files as private
from connector.clock import Clock
from connector.errors import ConfigError
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Records, Segment
from connector.log.epochs.history import History
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.position import TargetPosition
from connector.relay.appending import AppendedFile, Appending, DirectWrites, aligned
from connector.relay.cut_back import cut_back
from connector.relay.folder import OPTION, Lock, path_of, sync_folder
from connector.relay.frames import FileHead, file_head_record, trapped_record
from connector.relay.record import add_record, add_records

WRITE_BYTES: Final = 1 << 20  # bytes of records that are gathered in memory


class RelayWriter:
    """Writes the relay of one applier. One process at a time may have a folder.

    Errors of the disk are raised as `ConfigError`; after one only `close` and `begin` are allowed.

    Args:
        folder: `relay.dir`, created if missing.
        max_file_bytes: bytes from which on a file ends with its event.
        retention: seconds for which files are kept that are not needed.
        clock: the clock for that.

    Raises:
        ConfigError: another process has the folder, or it cannot be used.
    """

    def __init__(self, folder: Path, *, max_file_bytes: int, retention: float, clock: Clock) -> None:
        self._folder = private.guarded(folder, OPTION, shared=False)
        self._max = max_file_bytes
        self._retention = retention
        self._clock = clock
        self._lock = Lock(self._folder, clock)
        self._appending = Appending()
        self._direct = DirectWrites()
        self._files: deque[tuple[int, Seqno]] = deque()  # number and first event of each file
        self._file: AppendedFile | None = None
        self._unsynced: list[AppendedFile] = []
        self._new_name = False
        self._buffer = bytearray()
        self._piece = aligned()
        self._size = 0  # of the current file, with what is in the buffer
        self._events_end = 0  # the offset after its last whole event
        self._event = False  # an event is written in part
        self._log_id, self._service = LogId(""), ""
        self._gtid_set: str | None = None
        self._last, self._epoch = NO_SEQNO, Epoch(0)  # the last whole event
        self._applied = NO_SEQNO  # the last event that the target has committed

    @property
    def last(self) -> Seqno:
        """The last whole event."""
        return self._last

    def close(self) -> None:
        """Release the folder. What was not synced may be lost."""
        self._appending.close()
        self._forget()
        self._lock.close()

    def begin(self, position: TargetPosition, history: History, gtid_set: str | None, token: int) -> None:
        """Continue after a target's position; `cut_back` says which events are cut off.

        Args:
            position: the position.
            history: the log's.
            gtid_set: the transactions applied at the position; None if the source has no GTIDs.
            token: of the claim that returned the position.

        Raises:
            ConfigError: the relay is of another log or target.
            LogDamaged: events are damaged that the target has applied.
        """
        with self._failing():
            self._appending.wait()
            self._forget()
            self._log_id, self._service, self._gtid_set = history.log_id, position.service, gtid_set
            self._applied = position.seqno
            end = cut_back(self._folder, position, history, token=token, relay_token=self._lock.token)
            self._files = deque((file.number, file.first) for file in end.files)
            self._last, self._epoch = end.seqno, end.epoch
            if end.offset is not None:
                self._file = AppendedFile(end.files[-1].path, self._direct)
                self._unsynced.append(self._file)
                self._size = self._events_end = end.offset
            self._lock.claim(token)

    def add_range(self, messages: Messages, first: int, end: int) -> None:
        """Write some of these messages, each a whole event, from index `first` to before `end`."""
        seqnos = messages.seqnos(first, end)
        skipped = bisect_left(seqnos, self._last + 1)
        if skipped == len(seqnos):
            return
        records, ends = bytearray(), array("q")
        add_records(records, ends, messages, first + skipped, end)
        with self._failing():
            self._add_events(seqnos[skipped:], memoryview(records), ends, messages.header(end - 1).epoch)

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Write the events of segments that together are consecutive events."""
        epoch = segments[0].header.epoch
        with self._failing():
            for seqnos, records, ends in _joined(segments):
                skipped = bisect_left(seqnos, self._last + 1)
                if skipped < len(seqnos):
                    begin = ends[skipped - 1] if skipped else 0
                    rest = array("q", (end - begin for end in ends[skipped:])) if skipped else ends
                    self._add_events(seqnos[skipped:], _part(records, begin, len(records)), rest, epoch)

    def _add_events(
        self, seqnos: Sequence[int], records: memoryview | Records, ends: Sequence[int], epoch: Epoch
    ) -> None:
        """Write whole events that follow each other.

        Args:
            seqnos: the events.
            records: their records.
            ends: where in `records` each event ends.
            epoch: of all.
        """
        begin = at = 0
        while at < len(ends):
            self._next_event(Seqno(seqnos[at]))
            # The file's last event is the one with which it becomes large enough.
            at = min(bisect_left(ends, begin + self._max - self._size, at) + 1, len(ends))
            self._copy(_part(records, begin, ends[at - 1]))
            begin = ends[at - 1]
            self._last, self._epoch, self._events_end = Seqno(seqnos[at - 1]), epoch, self._size

    def add_message(self, message: Message) -> None:
        """Write the next fragment of an event; the first one ends what was written of an event that was given up."""
        header = message.header
        if header.seqno <= self._last:
            return
        record = bytearray()
        add_record(record, message)
        with self._failing():
            if not header.fragno:
                self._void()
                self._next_event(header.seqno)
                self._event = True
            self._write(memoryview(record))
        if header.last_frag:
            self._event = False
            self._last, self._epoch, self._events_end = header.seqno, header.epoch, self._size

    def void(self) -> None:
        """Cut off what was written of an unfinished event."""
        with self._failing():
            self._void()

    def _void(self) -> None:
        if not self._event or self._file is None:
            return
        self._event = False
        self._flush()
        self._appending.wait()
        self._file.truncate(self._events_end)
        self._size = self._events_end

    def _next_event(self, seqno: Seqno) -> None:
        """Begin an event: in the next file, if the current one is large enough."""
        if self._file is None or self._size >= self._max:
            self._begin_file()
        if seqno != self._last + 1:
            # The sequencer passes over trapped events alone.
            self._write(memoryview(trapped_record(Seqno(self._last + 1), Seqno(seqno - 1))))
            self._last, self._events_end = Seqno(seqno - 1), self._size

    def _begin_file(self) -> None:
        continues = self._file is not None
        self._flush()
        number = self._files[-1][0] + 1 if self._files else 1
        self._file = AppendedFile(path_of(self._folder, number), self._direct)
        self._unsynced.append(self._file)
        self._new_name = True
        self._files.append((number, Seqno(self._last + 1)))
        gtid_set = self._gtid_set if self._last == NO_SEQNO else None
        head = FileHead(self._log_id, self._service, self._last, self._epoch, continues, gtid_set)
        self._size = 0
        self._write(memoryview(file_head_record(head)))
        self._events_end = self._size

    def _copy(self, records: memoryview | Records) -> None:
        if isinstance(records, memoryview):
            self._write(records)
        else:
            self._flush()
            self._size += len(records)
            self._then(partial(self._current.copy, records, self._piece))

    def _write(self, records: memoryview) -> None:
        self._size += len(records)
        if len(self._buffer) + len(records) < WRITE_BYTES:
            self._buffer += records
            return
        self._flush()
        if len(records) < WRITE_BYTES:
            self._buffer += records
        else:
            self._write_out(records)

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

    def sync_soon(self) -> None:
        """Begin to bring what was written to the disk; `sync` waits for it."""
        with self._failing():
            self._flush()
            if self._unsynced:
                ended = [file for file in self._unsynced if file is not self._file]
                self._appending.then(partial(self._sync, self._unsynced, ended, new_name=self._new_name))
                self._unsynced, self._new_name = [self._file] if self._file else [], False

    def sync(self) -> None:
        """Wait until what was written before `sync_soon` is on the disk."""
        with self._failing():
            self._appending.wait()
        faults.point("relay.after_sync")

    def _sync(self, files: Iterable[AppendedFile], ended: Iterable[AppendedFile], *, new_name: bool) -> None:
        for file in files:
            file.sync()
        for file in ended:
            file.close()
        if new_name:
            sync_folder(self._folder)

    def committed(self, upto: Seqno) -> None:
        """Delete files whose events the target has committed, but the newest file and files younger than `retention`.

        Args:
            upto: the last event that the target has committed.
        """
        self._applied = upto
        while len(self._files) > 1 and self._files[1][1] <= upto + 1:
            path = path_of(self._folder, self._files[0][0])
            with self._failing():
                if self._retention and self._clock.now() / 1e6 - path.stat().st_mtime < self._retention:
                    return
                path.unlink(missing_ok=True)
            self._files.popleft()

    def _forget(self) -> None:
        """Drop what is not written, and close the files."""
        self._buffer = bytearray()
        self._event = False
        for file in {*self._unsynced, *([self._file] if self._file else [])}:
            file.close()
        self._unsynced, self._file = [], None

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Convert an error of the disk."""
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"the next events cannot be stored in the relay: {error.strerror}; nothing of them was applied",
                hint=f"make room in the folder, or let {OPTION} name another one",
                folder=str(self._folder),
                service=self._service or None,
                seqno=self._applied + 1,
            ) from error


def _part(records: memoryview | Records, begin: int, end: int) -> memoryview | Records:
    return records[begin:end] if isinstance(records, memoryview) else records.part(begin, end)


def _records_of(segment: Segment) -> Records:
    if segment.records is None:
        raise TypeError("a segment without the records of its messages")
    return segment.records


def _joined(segments: Sequence[Segment]) -> Iterator[tuple[Sequence[int], memoryview | Records, Sequence[int]]]:
    """Yield the seqnos, records and records' ends of segments in the order of the log."""
    if len(segments) == 1:
        (segment,) = segments
        yield segment.seqnos, _records_of(segment), segment.record_ends
        return
    events = []
    for segment in segments:
        records = _records_of(segment).mapped()
        begins = (0, *segment.record_ends[:-1])
        events += [
            (seqno, records[begin:end])
            for seqno, begin, end in zip(segment.seqnos, begins, segment.record_ends, strict=True)
        ]
    for seqno, record in sorted(events, key=lambda event: event[0]):
        # A small one is copied at once; a large one would be written when the file may be written over.
        yield (seqno,), record if len(record) < WRITE_BYTES else memoryview(bytes(record)), (len(record),)
