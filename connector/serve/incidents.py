"""The last problems of a service, with their remedies and times; those that are over are kept for a while."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from connector.status.report import Problem

MOST: Final = 50
# Numbers that stand alone: those in a table's or server's name, and a target's before a colon, tell problems apart.
_NUMBERS: Final = re.compile(r"(?<![\w.-])[0-9]+(?:\.[0-9]+)?(?![\w:]|\.[0-9])")


@dataclass(frozen=True, slots=True)
class Incident:
    """A problem.

    Args:
        problem: as it was read last.
        since, last: the first and the last reading that had it, in µs since 1970 UTC.
        present: the newest reading has it.
    """

    problem: Problem
    since: int
    last: int
    present: bool = True

    def as_object(self) -> dict[str, object]:
        """The problem for JSON."""
        return {
            "text": self.problem.text,
            "remedy": self.problem.remedy,
            "since": self.since / 1e6,
            "last": self.last / 1e6,
            "present": self.present,
        }


class Incidents:
    """The last problems of a service. A problem whose numbers alone change is the same; of one reading none are."""

    def __init__(self) -> None:
        self._by_kind: dict[tuple[str, int], Incident] = {}

    def update(self, problems: Iterable[Problem], now: int) -> None:
        """Take over the problems of the newest reading."""
        kinds = {kind: replace(one, present=False) for kind, one in self._by_kind.items()}
        counts: Counter[str] = Counter()
        for problem in problems:
            words = _NUMBERS.sub("0", problem.text)
            kind = words, counts[words]
            counts[words] += 1
            before = self._by_kind.get(kind)
            since = before.since if before is not None and before.present else now
            kinds[kind] = Incident(problem, since, now)
        newest = sorted(kinds.items(), key=lambda item: (item[1].present, item[1].last))[-MOST:]
        self._by_kind = dict(newest)

    def all(self) -> list[Incident]:
        """The problems: present ones first, then the last that are over."""
        return sorted(self._by_kind.values(), key=lambda one: (not one.present, -one.last, one.problem.text))
