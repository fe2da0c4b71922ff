"""Where a consumer begins that has no position of its own yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Self

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SLACK: Final = timedelta(minutes=5)
MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Start:
    """A place in the log, to be looked for when the consumer opens; made by the methods of this class."""

    at: Literal["beginning", "oldest", "seqno", "end", "time", "gtid", "committed"]
    number: int = 0
    gtid_text: str = ""
    slack: int = 0
    otherwise: Start | None = None

    @classmethod
    def beginning(cls) -> Self:
        """Event 0. Refused when the topic's retention has deleted any event."""
        return cls("beginning")

    @classmethod
    def oldest(cls) -> Self:
        """The first event from which on Kafka holds all."""
        return cls("oldest")

    @classmethod
    def end(cls) -> Self:
        """The event after the last one that is finished now."""
        return cls("end")

    @classmethod
    def seqno(cls, seqno: int) -> Self:
        """This event, which is finished, or the one after the last. Found by halving: O(log n) messages are read."""
        return cls("seqno", number=seqno)

    @classmethod
    def time(cls, when: datetime, slack: timedelta = SLACK) -> Self:
        """The first event that was committed on its source then or later, by the event's own commit time.

        Not by Kafka's time of its messages, which is the broker's when the event was published. Found by halving, and
        by walking over the headers from `slack` before it on.

        Args:
            when: with its zone.
            slack: by how much a later event's commit time may be before an earlier one's: clocks, several servers.

        Raises:
            ValueError: the time has no zone.
        """
        if when.tzinfo is None:
            raise ValueError(f"{when} is in no zone: is it UTC?")
        return cls("time", number=(when - EPOCH) // MICROSECOND, slack=slack // MICROSECOND)

    @classmethod
    def gtid(cls, gtid: str) -> Self:
        """The event of this GTID. O(n): headers are read, of the epoch that it was published in alone."""
        return cls("gtid", gtid_text=gtid)

    @classmethod
    def committed(cls, otherwise: Start | None = None) -> Self:
        """After the event that the group last committed.

        Args:
            otherwise: where a group begins that has committed nothing; default: at the beginning.
        """
        return cls("committed", otherwise=otherwise or cls("beginning"))
