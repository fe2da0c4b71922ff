"""The last problems of a service, with their remedies and times; those that are over are kept for a while."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

MOST: Final = 50
_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Incident:
    """A problem.

    Args:
        text: the problem as it was read last.
        remedy: "" if none is known.
        since, last: the first and the last reading that had it, in µs since 1970 UTC.
        present: the newest reading has it.
    """

    text: str
    remedy: str
    since: int
    last: int
    present: bool = True

    def as_object(self) -> dict[str, object]:
        """The problem for JSON."""
        return {
            "text": self.text,
            "remedy": self.remedy,
            "since": self.since / 1e6,
            "last": self.last / 1e6,
            "present": self.present,
        }


class Incidents:
    """The last problems of a service. A problem whose numbers alone change is the same."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Incident] = {}

    def update(self, problems: Iterable[str], remedies: Mapping[str, str], now: int) -> None:
        """Take over the problems of the newest reading."""
        kinds = {kind: replace(one, present=False) for kind, one in self._by_kind.items()}
        for text in problems:
            kind = _NUMBERS.sub("0", text)
            before = self._by_kind.get(kind)
            since = before.since if before is not None and before.present else now
            kinds[kind] = Incident(text, remedies.get(text, ""), since, now)
        newest = sorted(kinds.items(), key=lambda item: (item[1].present, item[1].last))[-MOST:]
        self._by_kind = dict(newest)

    def all(self) -> list[Incident]:
        """The problems: present ones first, then the last that are over."""
        return sorted(self._by_kind.values(), key=lambda one: (not one.present, -one.last, one.text))
