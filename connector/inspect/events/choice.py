"""Which events of the log are listed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from connector.errors import ConfigError
from connector.inspect.events.attempts import Attempt

# Commit times may fall by so much from one event to a later one, µs: servers have clocks, and replace each other.
SLACK: Final = 24 * 3600 * 1_000_000
_EVENT: Final = re.compile(r"(?P<file>[^:;]+):(?P<end>\d+)(;(?P<thread>\d+))?")


class EventLocation(NamedTuple):
    """An event id, its thread perhaps not told, its digits perhaps fewer."""

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
        """Whether an event of the log is the one that is meant."""
        return self[:2] == other[:2] and self.thread in (None, other.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is wanted; None: no bound. An event must be within all of them.

    Args:
        low, high: seqnos, both included.
        first, last: so many at the log's beginning, or at its end; over `low` and `high`.
        since, until: commit times, µs since 1970 UTC, both included.
        event: the one that ended there.
        gtid: the one that has it, as logs have it.
        voided: also what was given up, and what is not finished yet, as far as seqnos choose.
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
        """A single event is named, so that none found is an error."""
        return self.event is not None or self.gtid is not None or (self.low is not None and self.low == self.high)

    def bounds(self, ends: Callable[[], tuple[int, int]]) -> tuple[int | None, int | None]:
        """The range of seqnos; None: as far as the log goes.

        Args:
            ends: tells the oldest and the newest event of the log; asked only where it matters.
        """
        if self.first is not None:
            oldest, _ = ends()
            return oldest, oldest + self.first - 1
        if self.last is not None:
            # What is not finished yet bears the number that comes next.
            _, newest = ends()
            return max(newest - self.last + 1, 0), None if self.voided else newest
        return self.low, self.high

    def wants(self, attempt: Attempt) -> bool:
        """Whether one is wanted that is within the range of seqnos."""
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

    def over(self, attempt: Attempt) -> bool:
        """Whether nothing behind this one in its partition can be wanted."""
        return (
            self.until is not None
            and attempt.ending is not None
            and (attempt.ending["commit_time"] > self.until + SLACK)
        )
