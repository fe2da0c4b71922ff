"""The seam between the apply core and what decides the order of events: the topic's sequencer, or the relay's."""

from __future__ import annotations

from typing import Protocol

from connector.log.format.header import FragmentHeader
from connector.log.ids import Seqno
from connector.log.reading.event_range import EventRange, R
from connector.log.reading.event_sequencer import Release, Voided
from connector.log.reading.sequenced_partition import B


class EventOrder(Protocol[B, R]):
    """Accepts messages of the log's partitions, and releases whole events in the order of their seqnos, each once.

    It begins after a target's position. Each partition's messages are accepted in the order of their offsets; which
    partition comes next is the caller's choice. No event is released before all events before it. The event after the
    last complete one may be released in parts, and may be given up then.

    After an error it is of no use: read again from the target's position.
    """

    @property
    def partitions(self) -> int:
        """The number of partitions."""

    @property
    def released(self) -> Seqno:
        """The last event that was finished with everything before it; `release` has given it or is about to."""

    @property
    def waiting(self) -> int:
        """Fragments that are held until an event before theirs has come."""

    def waits(self, upto: Seqno, /) -> bool:
        """Return whether anything of an event up to this one is held."""

    def ahead(self, partition: int, /) -> bool:
        """Return whether a partition has an event that waits for one before it, in another partition."""

    def follows(self, events: EventRange[R], /) -> bool:
        """Return whether a range comes next in its partition."""

    def accept(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Accept the next message of a partition.

        Args:
            header: the header of the fragment.
            partition, offset: its place in the topic.
            body: the message, released with the event.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there.
            HistoriesDiffer: the topic holds another log than before.
        """

    def accept_range(self, *ranges: EventRange[R]) -> bool:
        """Accept whole events where they directly come next; return False, and change nothing, where they do not."""

    def release(self) -> list[Release[B] | tuple[EventRange[R], ...] | Voided]:
        """Drain what may be applied now, in the order of seqnos.

        Every event of a single range may be committed; of several ranges that were accepted together only the last.
        After an event that was released in part and is given up a `Voided` comes.
        """

    def resumable(self, upto: Seqno) -> dict[int, int]:
        """Return partition → the offset to resume from, once everything up to `upto` is committed on the target.

        `upto` is not above `released`, and never below that of an earlier call.
        """
