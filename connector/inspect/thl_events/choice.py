"""The choice of events to list."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from connector.errors import ConfigError
from connector.inspect.thl_events.attempts import Attempt

# µs by which commit times may decrease from one event to a later one: clocks of several servers.
SLACK: Final = 24 * 3600 * 1_000_000
_EVENT: Final = re.compile(r"(?P<file>[^:;]+):(?P<end>\d+)(;(?P<thread>\d+))?")


class EventLocation(NamedTuple):
    """An event id as a user writes it: the thread and leading zeros are optional."""

    file: str
    end: int
    thread: int | None = None

    @classmethod
    def parse(cls, text: str) -> EventLocation:
        """Read `file:end` or `file:end;thread`.

        Raises:
            ConfigError: it is neither.
        """
        form = _EVENT.fullmatch(text.strip())
        if form is None:
            raise ConfigError("an event id is like mysql-bin.000002:0000000000002081;1748", event=text)
        return cls(form["file"], int(form["end"]), int(form["thread"]) if form["thread"] else None)

    def matches(self, other: EventLocation) -> bool:
        """True if an event of the log has this id."""
        return self[:2] == other[:2] and self.thread in (None, other.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Bounds of the events to list; None: no bound. An event must be within all of them.

    Args:
        low, high: seqnos, both included.
        first, last: number of events at the log's beginning or end; overrides `low` and `high`.
        since, until: commit times, µs since 1970 UTC, both included.
        event: id of the only event.
        gtid: GTID of the only event, in the log's spelling.
        voided: include attempts that were given up or are unfinished, within the seqnos.
    """

    low: int | None = None
    high: int | None = None
    first: int | None = None
    last: int | None = None
    since: int | None = None
    until: int | None = None
    event: EventLocation | None = None
    gtid: str | None = None
    voided: bool = False

    @property
    def one(self) -> bool:
        """True if a single event is named; it is an error if the log does not have it."""
        return self.event is not None or self.gtid is not None or (self.low is not None and self.low == self.high)

    def bounds(self, ends: Callable[[], tuple[int, int]]) -> tuple[int | None, int | None]:
        """The range of seqnos; None: to the end of the log.

        Args:
            ends: returns the oldest and the newest event of the log; called only if needed.
        """
        if self.first is not None:
            oldest, _ = ends()
            return oldest, oldest + self.first - 1
        if self.last is not None:
            # An unfinished event has the next seqno.
            _, newest = ends()
            return max(newest - self.last + 1, 0), None if self.voided else newest
        return self.low, self.high

    def includes(self, attempt: Attempt) -> bool:
        """True if an attempt within the range of seqnos is chosen."""
        if attempt.ending is None:
            return self.voided and (self.since, self.until, self.event, self.gtid) == (None,) * 4
        ending = attempt.ending
        return (
            (self.voided or not attempt.trapped)
            and (self.since is None or ending["commit_time"] >= self.since)
            and (self.until is None or ending["commit_time"] <= self.until)
            and (self.gtid is None or ending["gtid"] == self.gtid)
            and (self.event is None or self.event.matches(EventLocation.parse(ending["event_id"])))
        )

    def ends_before(self, attempt: Attempt) -> bool:
        """True if no attempt from this one on in its partition can be chosen."""
        return (
            self.until is not None
            and attempt.ending is not None
            and (attempt.ending["commit_time"] > self.until + SLACK)
        )
