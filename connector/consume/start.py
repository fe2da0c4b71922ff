"""The event that a consumer without a position begins with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Self

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SLACK: Final = timedelta(minutes=5)
MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Start:
    """A first event, found when the consumer opens; created by the methods of this class."""

    at: Literal["beginning", "oldest", "seqno", "end", "time", "gtid", "committed"]
    number: int = 0
    gtid_text: str = ""
    slack: int = 0
    otherwise: Start | None = None

    @classmethod
    def beginning(cls) -> Self:
        """Event 0; an error if the topic's retention has deleted any event."""
        return cls("beginning")

    @classmethod
    def oldest(cls) -> Self:
        """The first event from which Kafka holds all events."""
        return cls("oldest")

    @classmethod
    def end(cls) -> Self:
        """The event after the last finished one."""
        return cls("end")

    @classmethod
    def seqno(cls, seqno: int) -> Self:
        """The event with this seqno, or the next event of the log; binary search reads O(log n) messages."""
        return cls("seqno", number=seqno)

    @classmethod
    def time(cls, when: datetime, slack: timedelta = SLACK) -> Self:
        """The first event that its source committed at a time or later, by the event's own commit time.

        Kafka's message time is not used: it is the broker's time of publication. Binary search finds the time, and the
        headers are read from `slack` before it on.

        Args:
            when: the time, with its zone.
            slack: the most by which commit times decrease from one event to a later one (clocks, several servers).

        Raises:
            ValueError: the time has no zone.
        """
        if when.tzinfo is None:
            raise ValueError(f"{when} has no time zone: is it UTC?")
        return cls("time", number=(when - EPOCH) // MICROSECOND, slack=slack // MICROSECOND)

    @classmethod
    def gtid(cls, gtid: str) -> Self:
        """The event with this GTID; reads the headers of the epoch that published it, O(n)."""
        return cls("gtid", gtid_text=gtid)

    @classmethod
    def committed(cls, otherwise: Start | None = None) -> Self:
        """After the event that the group last committed.

        Args:
            otherwise: the start of a group that has committed nothing; default: `beginning`.
        """
        return cls("committed", otherwise=otherwise or cls("beginning"))
