"""The last problems of a service, with their remedies and times; those that are over are kept for a while."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

MOST: Final = 50
# Begin of a problem that `thl status` finds in the numbers → its remedy.
_REMEDIES: Final = {
    "there is no log": "thl check says whether all is set up",
    "no producer reads": "start `thl produce`; the last line and the exit code of the one before tell why it ended",
    "no applier has": "the last line and the exit code of the one before tell why it ended",
    "the producer is": "thl info --source shows how far it has read; docs/performance.md has its rates",
    "the applier is": "if it runs, wait until it has caught up; target.writers gives it several connections",
    "the source may purge": "set binlog_expire_logs_seconds higher on the source, or start `thl archive`",
    "no round of a load begins": "thl load --status has the remedy",
    "Kafka no longer has": "begin the target again with a load, and keep events longer: retention.ms of the topic",
    "table may differ": "thl verify --repair",
    "table is not applied": "correct the target, then thl load TABLE",
    "table is being loaded": "thl load --status shows how far it is",
}
# Numbers that stand alone: those in a table's or server's name, and a target's before a colon, tell problems apart.
_NUMBERS: Final = re.compile(r"(?<![\w.-])[0-9]+(?:\.[0-9]+)?(?![\w:]|\.[0-9])")


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


def remedy_of(problem: str) -> str:
    """Return the remedy of a problem that `thl status` finds in the numbers; "" if none is known."""
    return next((remedy for begin, remedy in _REMEDIES.items() if problem.startswith(begin)), "")


class Incidents:
    """The last problems of a service. A problem whose numbers alone change is the same; of one reading none are."""

    def __init__(self) -> None:
        self._by_kind: dict[tuple[str, int], Incident] = {}

    def update(self, problems: Iterable[str], remedies: Mapping[str, str], now: int) -> None:
        """Take over the problems of the newest reading."""
        kinds = {kind: replace(one, present=False) for kind, one in self._by_kind.items()}
        counts: Counter[str] = Counter()
        for text in problems:
            words = _NUMBERS.sub("0", text)
            kind = words, counts[words]
            counts[words] += 1
            before = self._by_kind.get(kind)
            since = before.since if before is not None and before.present else now
            kinds[kind] = Incident(text, remedies.get(text, ""), since, now)
        newest = sorted(kinds.items(), key=lambda item: (item[1].present, item[1].last))[-MOST:]
        self._by_kind = dict(newest)

    def all(self) -> list[Incident]:
        """The problems: present ones first, then the last that are over."""
        return sorted(self._by_kind.values(), key=lambda one: (not one.present, -one.last, one.text))
