"""Messages given to an `EventSequencer` as readers do: ranges of whole events at once, others one by one.

A scan makes ranges of events of one fragment each, a task of Spark also of events of several fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connector.log.format.header import FragmentHeader
from connector.log.reading import event_range as rule
from connector.log.reading.event_range import EventRange
from connector.log.reading.event_sequencer import EventSequencer

Message = tuple[int, FragmentHeader, Any]  # offset, header, body


def accept_in_ranges(sequencer: EventSequencer[Any, Any], partition: int, messages: Sequence[Message]) -> int:
    """Give a sequencer a partition's next messages.

    Returns:
        The number of messages that it accepted in ranges.
    """
    at = in_ranges = 0
    while at < len(messages):
        events = whole_events(messages[at:])
        count = sum(map(len, events))
        if count > 1 and sequencer.accept_range(range_of(partition, events)):
            in_ranges += count
            at += count
            continue
        offset, header, body = messages[at]
        sequencer.accept(header, partition, offset, body)
        at += 1
    return in_ranges


def whole_events(messages: Sequence[Message], interval: int = 0) -> list[Sequence[Message]]:
    """The whole events of one range with which messages begin."""
    events: list[Sequence[Message]] = []
    at = 0
    while (end := _end_of_event(messages, at)) and (not events or _follows(events, messages[at:end], interval)):
        events.append(messages[at:end])
        at = end
    return events


def _end_of_event(messages: Sequence[Message], at: int) -> int:
    """The index after the whole event that begins at one; 0 if none does."""
    for end in range(at, len(messages)):
        offset, header, _ = messages[end]
        before = messages[end - 1] if end > at else None
        if (
            not rule.rows_alone(header)
            or header.fragno != end - at
            or (before and not _continues(before, offset, header))
        ):
            return 0
        if header.last_frag:
            return end + 1
    return 0


def _continues(before: Message, offset: int, header: FragmentHeader) -> bool:
    last = before[1]
    return (
        offset > before[0]
        and header.rows >= last.rows
        and (header.seqno, header.epoch) == (last.seqno, last.epoch)
        and (header.prev_seqno, header.last_barrier) == (last.prev_seqno, last.last_barrier)
    )


def _follows(events: Sequence[Sequence[Message]], after: Sequence[Message], interval: int) -> bool:
    first, last = events[0][-1], events[-1][-1]
    return after[0][0] > last[0] and rule.joins(first[1], last[1], after[0][1], interval)


def range_of(partition: int, events: Sequence[Sequence[Message]]) -> EventRange[Any]:
    first, last = events[0][0][1], events[-1][-1]
    return EventRange(
        partition,
        [event[0][1].seqno for event in events],
        first.prev_seqno,
        first.last_barrier,
        [event[0][0] for event in events],
        last[0] + 1,
        last[1],
        [(event[-1][1], [body for _, _, body in event]) for event in events],
    )
