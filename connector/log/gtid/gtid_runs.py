"""GTIDs of events in runs: a source's GTIDs nearly always grow as the log's seqnos do, so a first one tells all.

Within a partition both may have gaps, where other partitions have events. Of all partitions together neither has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class GtidRun:
    """GTIDs of one source, each as far from the first as their events' seqnos are.

    Args:
        first: the first GTID.
        index: the index of its event.
        count: the number of events, one after the other.
    """

    first: str
    index: int
    count: int


def joined(runs: Iterable[GtidRun], seqnos: Sequence[int]) -> list[GtidRun]:
    """Join runs, where one continues the one before.

    Args:
        runs: in ascending order.
        seqnos: the seqno of each event.
    """
    found: list[GtidRun] = []
    for run in runs:
        last = found[-1] if found else None
        if (
            last is not None
            and last.index + last.count == run.index
            and _away(last.first, seqnos[run.index] - seqnos[last.index]) == run.first
        ):
            found[-1] = replace(last, count=last.count + run.count)
        else:
            found.append(run)
    return found


def gtid_ranges(partitions: Sequence[tuple[Sequence[GtidRun], Sequence[int]]]) -> Iterator[tuple[str, int]]:
    """Yield the GTIDs of events that together are consecutive, as pairs: the first of consecutive numbers, their count.

    Args:
        partitions: the runs of some events of a partition, and the events' seqnos.
    """
    first = min(seqnos[0] for _, seqnos in partitions)
    beginnings = {_at(first, runs, seqnos) for runs, seqnos in partitions}
    if len(beginnings) == 1 and (gtid := beginnings.pop()):
        yield gtid, sum(len(seqnos) for _, seqnos in partitions)
        return
    for runs, seqnos in partitions:
        for run in runs:
            found = seqnos[run.index : run.index + run.count]
            if found[-1] - found[0] == run.count - 1:
                yield run.first, run.count
            else:
                yield from ((_away(run.first, seqno - found[0]), 1) for seqno in found)


def _at(seqno: int, runs: Sequence[GtidRun], seqnos: Sequence[int]) -> str:
    """Return the GTID of an event if it is in the only run; "" if there are others, or events without a GTID."""
    if len(runs) != 1 or runs[0].count != len(seqnos):
        return ""
    return _away(runs[0].first, seqno - seqnos[0])


def _away(gtid: str, distance: int) -> str:
    """Return the GTID of the same source whose number is so much larger; "" if there is none."""
    at = max(gtid.rfind(":"), gtid.rfind("-")) + 1
    number = int(gtid[at:]) + distance if gtid[at:].isdecimal() else 0
    return f"{gtid[:at]}{number}" if number > 0 else ""
