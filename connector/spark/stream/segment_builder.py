"""Makes segments of a partition's messages, in a task.

What lies whole in the task's range is compacted; rows of loads for other targets are left out. The rest stays messages:
markers, DDL, voided events, the edges of loads, events that begin before the range or end after it, and large events,
which the target gets part by part: those of many bytes, and those with a large message.
Where compaction fails, the driver reads the offsets itself, and reports the error with the target's position.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import pyarrow as pa

from connector.errors import ConnectorError
from connector.log.compact.compact import Compactor
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import AppliedEvent
from connector.log.compact.scan import Messages, Scanner
from connector.log.compact.segment import COMMIT_BYTES, COMMIT_ROWS, COMMIT_TABLES, Segment, Unread
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.gtid.gtid_runs import GtidRun, joined
from connector.log.ids import Kind
from connector.log.reading.event_range import is_plain, joins, rows_alone
from connector.relay.spool import RecordSpool
from connector.spark.stream.foreign_loads import ForeignLoads
from connector.spark.stream.parts import Part

LARGE_EVENT: Final = 16 << 20  # bytes from which on an event stays messages


@dataclass(slots=True)
class _Open:
    """The segment that is being made.

    Args:
        first: the header of the first event.
        last: the header of the last event's last fragment.
        begin, end: the offset of the first message, and the one after the last.
        records_begin: the size of the spool before the segment's records.

    The other fields are as those of `Segment`.
    """

    first: FragmentHeader
    last: FragmentHeader
    begin: int
    end: int
    seqnos: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    commit_times: array[int] = field(default_factory=lambda: array("q"))
    gtids: list[GtidRun] = field(default_factory=list)
    events: list[AppliedEvent] = field(default_factory=list)
    records_begin: int = 0
    record_ends: array[int] = field(default_factory=lambda: array("q"))
    messages: int = 0
    size: int = 0
    rows: int = 0

    def add(
        self,
        last: FragmentHeader,
        end: int,
        *,
        seqnos: Iterable[int],
        offsets: Iterable[int],
        commit_times: Iterable[int],
        gtids: Iterable[GtidRun],
        messages: int,
        size: int,
        rows: int,
        events: Iterable[AppliedEvent],
    ) -> None:
        """Add events that come next.

        Args:
            last, end: of the last of them.
            gtids: their GTIDs; the index of the first event is 0.
            seqnos, offsets, commit_times, messages, size, rows, events: of them, as those of `Segment`.
        """
        before = len(self.seqnos)
        self.last, self.end = last, end
        self.gtids += (GtidRun(run.first, before + run.index, run.count) for run in gtids)
        self.seqnos.extend(seqnos)
        self.offsets.extend(offsets)
        self.commit_times.extend(commit_times)
        self.messages += messages
        self.size += size
        self.rows += rows
        self.events += events


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A fragment of an unfinished event, and its place."""

    message: Message
    batch: pa.RecordBatch
    index: int


class SegmentBuilder:
    """Makes the parts of one task.

    Args:
        topic: the event topic, for errors.
        partition: the partition of all messages.
        columns: the target's metadata columns; None if it has none.
        history: the tables that have a history on the target; None: there are none.
        events: true: segments have their events one by one.
        records: gets the messages of segments as records of the relay; None: there is no relay.
        interval: other partitions have events of the log, too: a segment ends with each interval of this many
            seqnos, so that those of all partitions end together; 0: there are no others.
        target: the target's ID, as that of `load.for_others`: segments have no rows of loads for other targets.
        others: leaves them out of messages, too; None: those stay as they are.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: MetadataColumns | None = None,
        *,
        history: HistoryTables | None = None,
        events: bool = False,
        records: RecordSpool | None = None,
        interval: int = 0,
        target: str | None = None,
        others: ForeignLoads | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._columns = columns
        self._history = history
        self._events = events
        self._records = records
        self._target = target
        self._others = others
        self._scanner = Scanner(topic, interval, target)
        self._interval = interval
        self._row_parts = RowParts(topic)
        self._compactor = Compactor(topic, columns, history=history)
        self._open: _Open | None = None
        self._event: list[_Fragment] = []
        self._event_size = 0
        self._messages: tuple[pa.RecordBatch, int, int] | None = None  # a batch, and the messages of it that stay some
        self._parts: list[Part] = []

    def add(self, batch: pa.RecordBatch, *, alone: bool = False) -> None:
        """Add messages.

        Args:
            batch: columns partition, offset, value; a null value stands for a large message.
            alone: true: the first message of an event stays one, and the markers before it.

        Raises:
            LogDamaged: they are not messages of a log; nothing of the batch was added.
        """
        index = 0
        batch, scanned = self._shortened(batch)
        for found in scanned:
            if isinstance(found, int):
                self._give_up_event()
                self._stay(batch, index, index + found)
                index += found
                alone = False
                continue
            messages, count = found, len(found)
            if alone:
                self._stay(batch, index, index + 1)
                alone = messages.header(0).kind is Kind.EPOCH
                if count == 1:
                    index += 1
                    continue
                messages = messages.since(1)
            if len(messages) > 1 or is_plain(messages.header(0), self._target):
                self._give_up_event()
                self._whole_events(messages)
            else:
                self._fragment(_Fragment(messages.message(0), batch, index))
            index += count

    def shortened(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return messages as `add` takes them, without the rows of loads for other targets.

        Raises:
            LogDamaged: they are not messages of a log.
        """
        return batch if self._others is None else self._shortened(batch)[0]

    def drain(self) -> list[Part]:
        """Drain the finished parts, in the order of their offsets."""
        parts, self._parts = self._parts, []
        return parts

    def finish(self) -> list[Part]:
        """Finish, and drain all parts."""
        self._give_up_event()
        self._close()
        self._flush_messages()
        return self.drain()

    def _shortened(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[Messages | int]]:
        """Return a batch without the rows of loads for other targets, and its messages."""
        scanned = self._scanned(batch)
        if self._others is None or not any(not isinstance(one, int) and one.any_for_others for one in scanned):
            return batch, scanned
        batch = self._others.without_rows(batch, scanned)
        return batch, self._scanned(batch)

    def _scanned(self, batch: pa.RecordBatch) -> Sequence[Messages | int]:
        """Return the messages of a batch in its order; for large ones that follow each other their number."""
        if not batch["value"].null_count:
            return self._scanner.scan(batch)
        found: list[Messages | int] = []
        at = 0
        for large, same in groupby(batch["value"].is_null().to_pylist()):
            count = len(list(same))
            found += [count] if large else self._scanner.scan(batch.slice(at, count))
            at += count
        return found

    def _whole_events(self, messages: Messages) -> None:
        """Add whole events of one fragment each."""
        at, end = 0, len(messages)
        while at < end:
            first = at
            if self._open is not None and self._open.first.barrier and not isinstance(messages.seqnos(at, end), range):
                self._close()  # a segment that begins with a barrier has no gaps: see `event_range.joins`
            open_ = self._open_for(messages.header(at), messages.offsets(at, at + 1)[0])
            try:
                at = self._compactor.add_range(messages, at, end, COMMIT_ROWS, COMMIT_BYTES)
            except ConnectorError:
                self._leave_to_driver(open_, messages.offsets(end - 1, end)[0] + 1, messages.size, end - first)
                return
            offsets = messages.offsets(first, at)
            open_.add(
                messages.header(at - 1),
                offsets[-1] + 1,
                seqnos=messages.seqnos(first, at),
                offsets=offsets,
                commit_times=messages.commit_times(first, at),
                gtids=(GtidRun(gtid, index - first, count) for gtid, index, count in messages.gtids(first, at)),
                messages=at - first,
                size=messages.size * (at - first) // end,  # about: as if all messages were equally large
                rows=messages.rows(first, at),
                events=(AppliedEvent.of(messages.header(one)) for one in range(first, at)) if self._events else (),
            )
            if self._records is not None:
                self._records.add_range(open_.records_begin, open_.record_ends, messages, first, at)
            self._close_full()

    def _fragment(self, fragment: _Fragment) -> None:
        """Add a message that is not a whole event of rows."""
        header = fragment.message.header
        if not self._continues(header):
            self._give_up_event()
        if not rows_alone(header, self._target) or (header.fragno and not self._event):
            self._give_up_event()
            self._stay(fragment.batch, fragment.index, fragment.index + 1)
            return
        self._event.append(fragment)
        self._event_size += fragment.message.size
        if header.last_frag:
            self._whole_event()
        elif self._event_size > LARGE_EVENT:
            self._give_up_event()

    def _continues(self, header: FragmentHeader) -> bool:
        """Return whether a fragment is the next one of the unfinished event."""
        if not self._event:
            return False
        last = self._event[-1].message.header
        return (
            header.seqno == last.seqno
            and header.epoch == last.epoch
            and header.fragno == last.fragno + 1
            and header.rows >= last.rows
            and header.prev_seqno == last.prev_seqno
            and header.last_barrier == last.last_barrier
        )

    def _whole_event(self) -> None:
        """Add the event whose last fragment has come."""
        event, size = self._event, self._event_size
        self._event, self._event_size = [], 0
        first, last = event[0].message, event[-1].message
        open_ = self._open_for(first.header, first.offset)
        try:
            rows = 0
            kept = (one.message for one in event if not one.message.for_others)
            for message in filter(None, map(self._row_parts.whole, kept)):
                rows = self._compactor.add(message, rows)
        except ConnectorError:
            self._leave_to_driver(open_, last.offset + 1, size, len(event))
            return
        header = last.header
        open_.add(
            header,
            last.offset + 1,
            seqnos=(header.seqno,),
            offsets=(first.offset,),
            commit_times=(header.commit_time or 0,),
            gtids=() if header.gtid is None else (GtidRun(header.gtid, 0, 1),),
            messages=len(event),
            size=size,
            rows=header.rows,
            events=(AppliedEvent.of(header),) if self._events else (),
        )
        if self._records is not None:
            for one in event:
                self._records.add(one.message)
            open_.record_ends.append(self._records.size - open_.records_begin)
        self._close_full()

    def _open_for(self, header: FragmentHeader, offset: int) -> _Open:
        """Open, or leave open, the segment to which an event belongs that begins with this header at this offset."""
        self._flush_messages()
        if self._open is not None and not joins(self._open.first, self._open.last, header, self._interval):
            self._close()
        if self._open is None:
            self._open = _Open(header, header, offset, offset, records_begin=self._records.size if self._records else 0)
        return self._open

    def _close_full(self) -> None:
        compactor = self._compactor
        if compactor.rows >= COMMIT_ROWS or compactor.size >= COMMIT_BYTES or compactor.table_count >= COMMIT_TABLES:
            self._close()

    def _close(self) -> None:
        """Finish the segment."""
        open_, self._open = self._open, None
        if open_ is None:
            return
        self._parts.append(
            Segment(
                partition=self._partition,
                seqnos=_as_range(open_.seqnos),
                prev_seqno=open_.first.prev_seqno,
                last_barrier=open_.first.last_barrier,
                offsets=open_.offsets,
                end=open_.end,
                header=open_.last,
                messages=open_.messages,
                size=open_.size,
                rows=open_.rows,
                gtids=joined(open_.gtids, open_.seqnos),
                commit_times=open_.commit_times,
                changes=self._compactor.drain(),
                events=open_.events,
                records=None if self._records is None else self._records.since(open_.records_begin),
                record_ends=open_.record_ends,
            )
        )

    def _leave_to_driver(self, open_: _Open, end: int, size: int, messages: int) -> None:
        """Leave the open segment to the driver, up to an offset: its changes contradict each other."""
        self._open = None
        self._row_parts = RowParts(self._topic)
        self._compactor = Compactor(self._topic, self._columns, history=self._history)
        self._parts.append(Unread(self._partition, open_.begin, end, open_.messages + messages, open_.size + size))

    def _give_up_event(self) -> None:
        """Let the fragments of the unfinished event stay messages."""
        event, self._event, self._event_size = self._event, [], 0
        for one in event:
            self._stay(one.batch, one.index, one.index + 1)

    def _stay(self, batch: pa.RecordBatch, first: int, end: int) -> None:
        """Let messages stay messages."""
        self._close()
        if self._messages is not None and self._messages[0] is batch and self._messages[2] == first:
            self._messages = batch, self._messages[1], end
            return
        self._flush_messages()
        self._messages = batch, first, end

    def _flush_messages(self) -> None:
        if self._messages is not None:
            batch, first, end = self._messages
            self._messages = None
            self._parts.append(batch.slice(first, end - first))


def _as_range(seqnos: array[int]) -> range | array[int]:
    """Return ascending seqnos as a range if they have no gaps."""
    return range(seqnos[0], seqnos[-1] + 1) if seqnos[-1] - seqnos[0] == len(seqnos) - 1 else seqnos
