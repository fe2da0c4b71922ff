"""Gives the sequencer what comes next: messages of a partition, or segments that together are consecutive events.

Spark's tasks make a segment of what they read of one partition. It may be applied once those of the other partitions
have all events between its own. Where they have not, the segment's messages are read again, and wait one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from connector.applier.partition_buffers import PartitionBuffers
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.ids import Seqno
from connector.log.reading.event_order import EventOrder


class SequencerFeed:
    """Gives a sequencer what the buffers have, each partition in its order.

    Args:
        sequencer: the sequencer of all partitions.
        buffers: what was read.
        one_by_one: whether the events of a segment are needed one by one.
    """

    def __init__(
        self,
        sequencer: EventOrder[Message, Messages | Segment],
        buffers: PartitionBuffers,
        one_by_one: Callable[[Segment], bool],
    ) -> None:
        self._sequencer = sequencer
        self._buffers = buffers
        self._one_by_one = one_by_one
        self._last = -1  # the partition whose messages were given last

    def next(self, *, more: bool) -> tuple[list[Message], int] | None:
        """Give the sequencer what comes next.

        Args:
            more: true: segments may wait for others that are read next.

        Returns:
            The messages that the sequencer got one by one, and the bytes of all; None if nothing can come next.

        Raises:
            LogDamaged: something is missing, or cannot be there by the protocol.
            BrokerUnavailable: the brokers do not answer.
        """
        waiting = self._buffers.partitions
        for partition in (*waiting[bisect_right(waiting, self._last) :], *waiting):  # by turns
            if not self._sequencer.ahead(partition) and not isinstance(self._buffers.parts(partition)[0], Segment):
                self._last = partition
                return self._messages(self._buffers.poll(partition))
        segments, wanted = self._consecutive()
        if segments and not wanted and self._accepted(segments):
            self._buffers.drop(segments)
            return [], sum(segment.size for segment in segments)
        # Its messages, given one by one, make the sequencer raise the exact error.
        refused = self._not_next() or ([] if wanted and more else segments[:1])
        for segment in refused:
            self._buffers.read_again(segment)
        return ([], 0) if refused else None

    def _messages(self, polled: Sequence[Messages]) -> tuple[list[Message], int]:
        """Give the sequencer messages, where it accepts that as ranges of events."""
        single: list[Message] = []
        for messages in polled:
            rest = messages
            while len(rest) == 1 or not self._sequencer.accept_range(rest.event_range()):
                message = rest.message(0)
                self._sequencer.accept(message.header, message.partition, message.offset, message)
                single.append(message)
                if len(rest) == 1:
                    break
                rest = rest.since(1)
        return single, sum(messages.size for messages in polled)

    def _consecutive(self) -> tuple[list[Segment], bool]:
        """Return the fewest segments that begin with the next event and may together be consecutive events.

        Returns:
            The segments in ascending order; whether others are wanted between them, which may still be read.
        """
        waiting = {partition: self._buffers.parts(partition) for partition in self._buffers.partitions}
        taken = dict.fromkeys(waiting, 0)
        last = first = self._sequencer.released + 1
        found: list[Segment] = []
        before = -1
        while before < len(found):
            before = len(found)
            for partition, parts in waiting.items():
                while (
                    taken[partition] < len(parts)
                    and isinstance(part := parts[taken[partition]], Segment)
                    and part.first <= last
                ):
                    found.append(part)
                    taken[partition] += 1
                    last = max(last, part.header.seqno)
        found.sort(key=lambda segment: segment.first)
        if not found or found[0].first != first:
            return [], True
        mixed = self._sequencer.waits(Seqno(last)) or any(
            taken[partition] < len(parts) and not isinstance(parts[taken[partition]], Segment)
            for partition, parts in waiting.items()
        )
        return found, sum(map(len, found)) < last + 1 - first and not mixed

    def _accepted(self, segments: Sequence[Segment]) -> bool:
        """Return whether the sequencer has accepted segments; if not, their events are needed one by one."""
        tables = [(segment.partition, change.layout.name) for segment in segments for change in segment.changes]
        return (
            # Partitions do not share tables between two barriers. Were it otherwise, the order would matter.
            len({table for _, table in tables}) == len(set(tables))
            and not any(map(self._one_by_one, segments))
            and self._sequencer.accept_range(*(segment.event_range() for segment in segments))
        )

    def _not_next(self) -> list[Segment]:
        """Return the segments that are not the next events of their partitions, or have events that were released."""
        released = self._sequencer.released
        first = (self._buffers.parts(partition)[0] for partition in self._buffers.partitions)
        return [
            part
            for part in first
            if isinstance(part, Segment) and (part.first <= released or not self._sequencer.follows(part.event_range()))
        ]
