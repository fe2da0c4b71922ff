"""Writes to the relay what is applied next, and has it on the disk before the target commits it.

An event's fragments follow each other, events follow in the order of the log, and a file ends only between events. What
was written for an event that is given up is cut off again.
"""

from __future__ import annotations

import errno
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connector import failpoints as faults
from connector import private_files as private
from connector.clock import Clock
from connector.errors import disk_error
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Records, Segment
from connector.log.epochs.history import History
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.position import TargetPosition
from connector.relay import record_appender
from connector.relay.cut_back import cut_back
from connector.relay.folder import OPTION, Lock, Owner, path_of
from connector.relay.frames import FileHead, file_head_record, trapped_record
from connector.relay.record import add_record, add_records
from connector.relay.record_appender import RecordAppender


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
        self._records = RecordAppender(self._folder, self._lock.check)
        self._files: deque[tuple[int, Seqno]] = deque()  # number and first event of each file
        self._events_end = 0  # the offset after the newest file's last whole event
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
        self._records.close()
        self._lock.close()

    def begin(self, position: TargetPosition, history: History, gtid_set: str | None, owner: Owner) -> None:
        """Continue after a target's position; `cut_back` says which events are cut off.

        Args:
            position: the position.
            history: the log's.
            gtid_set: the transactions applied at the position; None if the source has no GTIDs.
            owner: the target, and its claim that returned the position.

        Raises:
            ConfigError: the relay is of another log or target.
            LogDamaged: events are damaged that the target has applied.
        """
        with self._failing():
            self._records.wait()
            self._records.forget()
            self._event = False
            self._log_id, self._service, self._gtid_set = history.log_id, position.service, gtid_set
            self._applied = position.seqno
            end = cut_back(self._folder, position, history, owner=owner, before=self._lock.owner)
            self._files = deque((file.number, file.first) for file in end.files)
            self._last, self._epoch = end.seqno, end.epoch
            if end.offset is not None:
                self._records.open(end.files[-1].path, end.offset)
                self._events_end = end.offset
            self._lock.claim(owner)

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
            at = min(bisect_left(ends, begin + self._max - self._records.size, at) + 1, len(ends))
            self._copy(_part(records, begin, ends[at - 1]))
            begin = ends[at - 1]
            self._last, self._epoch, self._events_end = Seqno(seqnos[at - 1]), epoch, self._records.size

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
            self._records.write(memoryview(record))
        if header.last_frag:
            self._event = False
            self._last, self._epoch, self._events_end = header.seqno, header.epoch, self._records.size

    def void(self) -> None:
        """Cut off what was written of an unfinished event."""
        with self._failing():
            self._void()

    def _void(self) -> None:
        if self._event and self._records.has_file:
            self._event = False
            self._records.truncate(self._events_end)

    def _next_event(self, seqno: Seqno) -> None:
        """Begin an event: in the next file, if the current one is large enough."""
        if not self._records.has_file or self._records.size >= self._max:
            self._begin_file()
        if seqno != self._last + 1:
            # The sequencer passes over trapped events alone.
            self._records.write(memoryview(trapped_record(Seqno(self._last + 1), Seqno(seqno - 1))))
            self._last, self._events_end = Seqno(seqno - 1), self._records.size

    def _begin_file(self) -> None:
        continues = self._records.has_file
        number = self._files[-1][0] + 1 if self._files else 1
        self._records.create(path_of(self._folder, number))
        self._files.append((number, Seqno(self._last + 1)))
        gtid_set = self._gtid_set if self._last == NO_SEQNO else None
        head = FileHead(self._log_id, self._service, self._last, self._epoch, continues, gtid_set)
        self._records.write(memoryview(file_head_record(head)))
        self._events_end = self._records.size

    def _copy(self, records: memoryview | Records) -> None:
        if isinstance(records, memoryview):
            self._records.write(records)
        else:
            self._records.copy(records)

    def sync_soon(self) -> None:
        """Begin to bring what was written to the disk; `sync` waits for it."""
        with self._failing():
            self._records.sync_soon()

    def sync(self) -> None:
        """Wait until what was written before `sync_soon` is on the disk."""
        with self._failing():
            self._records.wait()
        faults.point("relay.after_sync")

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

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Convert an error of the disk."""
        try:
            yield
        except OSError as error:
            raise disk_error(error)(
                f"the next events cannot be stored in the relay: {error.strerror}; nothing of them was applied",
                hint=f"let no other program change the folder of {OPTION}, then start thl apply again"
                if error.errno == errno.ESTALE
                else f"make room in the folder by thl purge --to-seqno, or let {OPTION} name another one",
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
        yield (
            (seqno,),
            record if len(record) < record_appender.WRITE_BYTES else memoryview(bytes(record)),
            (len(record),),
        )
