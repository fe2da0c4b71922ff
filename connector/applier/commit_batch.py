"""The events of the next commit, counted without an object for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Final

from connector.log.compact.net_changes import AppliedEvent, NetChanges
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.header import FragmentHeader
from connector.log.transaction.layout import TableName

OBSERVED: Final = 32  # number of evenly spaced events per commit whose latencies are observed


class CommitBatch:
    """The whole events of the next commit, in ascending order."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = 0
        self.last: FragmentHeader | None = None
        self.by_table: dict[TableName, tuple[int, int]] = {}  # row changes, and bytes of their net images
        self._parts: list[FragmentHeader | list[Segment] | tuple[Messages, int, int]] = []

    def __iter__(self) -> Iterator[AppliedEvent]:
        """Each event; may be iterated again. Segments have theirs only if tasks were asked for them."""
        for part in self._parts:
            if isinstance(part, list):
                yield from merge(*(segment.events for segment in part), key=lambda event: event.seqno)
            elif isinstance(part, FragmentHeader):
                yield AppliedEvent.of(part)
            else:
                messages, first, end = part
                for index in range(first, end):
                    yield AppliedEvent.of(messages.header(index))

    def count_tables(self, changes: Iterable[NetChanges]) -> None:
        """Count staged changes by table."""
        for net in changes:
            rows, size = self.by_table.get(net.layout.name, (0, 0))
            images = sum(len(one.data) for one in (net.inserts, net.updates, net.deletes))
            self.by_table[net.layout.name] = rows + net.changes, size + images

    def add(self, header: FragmentHeader) -> None:
        """Add an event by the header of its last fragment."""
        self._parts.append(header)
        self.count += 1
        self.rows += header.rows
        self.last = header

    def add_range(self, messages: Messages, first: int, end: int) -> None:
        """Add some of these messages, each a whole event."""
        self._parts.append((messages, first, end))
        self.count += end - first
        self.rows += messages.rows(first, end)
        self.last = messages.header(end - 1)

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Add segments that together are consecutive events."""
        self._parts.append(list(segments))
        self.count += sum(map(len, segments))
        self.rows += sum(segment.rows for segment in segments)
        self.last = max((segment.header for segment in segments), key=lambda header: header.seqno)

    def commit_times(self) -> Iterator[int]:
        """The known commit times of about `OBSERVED` events, evenly spaced."""
        step = 1 + self.count // OBSERVED
        skip = 0
        for times in self._commit_times():
            yield from filter(None, times[skip::step])
            skip = (skip - len(times)) % step

    def _commit_times(self) -> Iterator[Sequence[int]]:
        """The commit times of all events, part by part; 0 where one is not known."""
        for part in self._parts:
            if isinstance(part, FragmentHeader):
                yield (part.commit_time or 0,)
            elif isinstance(part, list):
                yield from (segment.commit_times for segment in part)
            else:
                messages, first, end = part
                yield messages.commit_times(first, end)
