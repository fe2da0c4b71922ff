"""Messages given to an `EventSequencer` as readers do: ranges at once, others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connector.log.format.header import FragmentHeader
from connector.log.reading import event_range as rule
from connector.log.reading.event_range import EventRange
from connector.log.reading.event_sequencer import EventSequencer

Message = tuple[int, FragmentHeader, Any]  # offset, header, body


def take_in_runs(ledger: EventSequencer[Any, Any], partition: int, messages: Sequence[Message]) -> int:
    """Tell a ledger of a partition's next messages.

    Returns:
        How many it took in runs.
    """
    at = together = 0
    while at < len(messages):
        end = at + 1
        while end < len(messages) and _follows(messages[end - 1], messages[end]):
            end += 1
        if end - at > 1 and ledger.accept_range(_run(partition, messages[at:end])):
            together += end - at
            at = end
            continue
        offset, header, body = messages[at]
        ledger.accept(header, partition, offset, body)
        at += 1
    return together


def _follows(before: Message, after: Message) -> bool:
    return after[0] > before[0] and rule.follows(before[1], after[1])


def _run(partition: int, messages: Sequence[Message]) -> EventRange[Any]:
    first = messages[0][1]
    return EventRange(
        partition,
        first.seqno,
        first.prev_seqno,
        first.last_barrier,
        [offset for offset, _, _ in messages],
        messages[-1][1],
        [(header, body) for _, header, body in messages],
    )
