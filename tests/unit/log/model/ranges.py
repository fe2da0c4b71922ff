"""Messages given to an `EventSequencer` as readers do: ranges at once, others one by one."""

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
        end = at + 1
        while end < len(messages) and _follows(messages[end - 1], messages[end]):
            end += 1
        if end - at > 1 and sequencer.accept_range(_range(partition, messages[at:end])):
            in_ranges += end - at
            at = end
            continue
        offset, header, body = messages[at]
        sequencer.accept(header, partition, offset, body)
        at += 1
    return in_ranges


def _follows(before: Message, after: Message) -> bool:
    return after[0] > before[0] and rule.follows(before[1], after[1])


def _range(partition: int, messages: Sequence[Message]) -> EventRange[Any]:
    first = messages[0][1]
    return EventRange(
        partition,
        first.seqno,
        first.prev_seqno,
        first.last_barrier,
        [offset for offset, _, _ in messages],
        messages[-1][0] + 1,
        messages[-1][1],
        [(header, body) for _, header, body in messages],
    )
