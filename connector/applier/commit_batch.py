"""The events that the next commit covers: counted as they come, told one by one only to those who ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from connector.log.compact.net_changes import AppliedEvent
from connector.log.compact.scan import Messages
from connector.log.format.header import FragmentHeader

OBSERVED: Final = 32  # latencies of one commit: of a crowd, some evenly spaced events stand for all


class CommitBatch:
    """Whole events, ascending."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = 0
        self.last: FragmentHeader | None = None
        self._parts: list[FragmentHeader | tuple[Messages, int, int]] = []

    def __iter__(self) -> Iterator[AppliedEvent]:
        """Each event; may be asked for again."""
        for part in self._parts:
            if isinstance(part, FragmentHeader):
                yield _event(part)
            else:
                messages, first, end = part
                for index in range(first, end):
                    yield _event(messages.header(index))

    def add(self, header: FragmentHeader) -> None:
        """One more; the header of its last fragment."""
        self._parts.append(header)
        self.count += 1
        self.rows += header.rows
        self.last = header

    def add_run(self, messages: Messages, first: int, end: int) -> None:
        """Some of these messages, each an event."""
        self._parts.append((messages, first, end))
        self.count += end - first
        self.rows += messages.rows(first, end)
        self.last = messages.header(end - 1)

    def commit_times(self) -> Iterator[int]:
        """The commit times of some `OBSERVED` events, evenly spaced, where they are known."""
        step = 1 + self.count // OBSERVED
        skip = 0
        for part in self._parts:
            if isinstance(part, FragmentHeader):
                found = [part.commit_time or 0] if skip == 0 else []
                size = 1
            else:
                messages, first, end = part
                found = [messages.commit_time(index) for index in range(first + skip, end, step)]
                size = end - first
            skip = (skip - size) % step
            yield from filter(None, found)


def _event(header: FragmentHeader) -> AppliedEvent:
    return AppliedEvent(
        seqno=header.seqno,
        epoch=header.epoch,
        event_id=header.event_id or "",
        commit_time=header.commit_time or 0,
        rows=header.rows,
    )
