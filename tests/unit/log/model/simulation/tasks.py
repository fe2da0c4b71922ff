"""Spark's tasks: each reads a range of a partition's offsets and compacts what is whole in it; and what waits of that.

A task has no effect but its result. So it may die and run again, or run twice at once; one result of it counts. A
segment counts whole or not at all. The real `SequencerFeed` decides, and has its messages read again if it does not.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from connector.log.compact.segment import Segment, Unread
from connector.log.format.header import FragmentHeader
from connector.log.reading.event_range import EventRange, linked
from tests.unit.log.model.ranges import Message, range_of, whole_events

Fetch = Callable[[int, int, int], list[Message]]  # partition, begin, end


@dataclass(frozen=True)
class One:
    """A message."""

    partition: int
    offset: int
    header: FragmentHeader
    piece: Any


class Slice:
    """Messages of one partition; more than one are events that follow each other, each of one fragment."""

    size = 1

    def __init__(self, partition: int, messages: Sequence[Message]) -> None:
        self.partition, self.messages = partition, messages

    def __len__(self) -> int:
        return len(self.messages)

    def message(self, number: int) -> One:
        return One(self.partition, *self.messages[number])

    def since(self, number: int) -> Slice:
        return Slice(self.partition, self.messages[number:])

    @property
    def begin(self) -> int:
        return self.messages[0][0]

    def event_range(self) -> EventRange[Slice]:
        found: EventRange[Any] = range_of(self.partition, [[message] for message in self.messages])
        return EventRange(
            found.partition,
            found.seqnos,
            found.prev_seqno,
            found.last_barrier,
            found.offsets,
            found.end,
            found.header,
            self,
        )

    def events(self) -> list[tuple[FragmentHeader, list[Any]]]:
        return [(header, [piece]) for _, header, piece in self.messages]


Part = Segment | Unread | Slice


def run_task(partition: int, messages: Sequence[Message], interval: int) -> list[Part]:
    """Read and compact.

    Args:
        partition: the partition.
        messages: of the task's range.
        interval: the length of an interval of seqnos, with which a segment ends; 0: there is one partition.
    """
    found: list[Part] = []
    at = 0
    while at < len(messages):
        events = whole_events(messages[at:], interval)
        if events:
            found.append(_segment(partition, events))
            at += sum(map(len, events))
        else:
            found.append(Slice(partition, [messages[at]]))
            at += 1
    return found


def _segment(partition: int, events: Sequence[Sequence[Message]]) -> Segment:
    made = range_of(partition, events)
    count = sum(map(len, events))
    changed: Any = [
        SimpleNamespace(layout=SimpleNamespace(name=shard))
        for shard in dict.fromkeys(event[0][1].shard for event in events)
    ]
    return Segment(
        partition=partition,
        seqnos=made.seqnos,
        prev_seqno=made.prev_seqno,
        last_barrier=made.last_barrier,
        offsets=array("q", made.offsets),
        end=made.end,
        header=made.header,
        messages=count,
        size=count,
        rows=count,
        gtids=(),
        commit_times=array("q"),
        changes=changed,
        events=made.body,  # their rows, which nothing but a commit of the whole segment gets
    )


class Buffers:
    """What was read and waits, each partition in its order.

    Args:
        fetch: reads offsets again.
    """

    reads_again = True

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._parts: dict[int, list[Part]] = {}
        self._numbers: list[int] = []  # of partitions, in ascending order

    def add(self, parts: Iterable[Part]) -> None:
        for part in sorted(parts, key=lambda part: part.begin):
            if part.partition not in self._parts:
                self._parts[part.partition] = []
                self._numbers = sorted(self._parts)
            self._parts[part.partition].append(part)

    @property
    def partitions(self) -> Sequence[int]:
        return [number for number in self._numbers if self._parts[number]]

    def parts(self, partition: int) -> Sequence[Part]:
        return self._parts[partition]

    def drop(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            self._parts[segment.partition].pop(0)

    def read_again(self, segment: Segment) -> None:
        unread = Unread(segment.partition, segment.begin, segment.end, segment.messages, segment.size)
        self._parts[segment.partition][:1] = [unread] if self.reads_again else []

    def poll(self, partition: int) -> Sequence[Slice]:
        part = self._parts[partition].pop(0)
        if isinstance(part, Slice):
            return _slices(part)
        assert isinstance(part, Unread)
        again = self._fetch(partition, part.begin, part.end)
        self._parts[partition][:0] = [Slice(partition, again)] if again else []
        return ()


def _slices(part: Slice) -> list[Slice]:
    """Its messages, those together that are events which follow each other, as a scan has them."""
    found: list[list[Message]] = []
    for message in part.messages:
        before = found[-1][-1] if found else None
        plain = bool(whole_events([message]))
        if before and plain and whole_events([before]) and linked(before[1], message[1]):
            found[-1].append(message)
        else:
            found.append([message])
    return [Slice(part.partition, messages) for messages in found]
