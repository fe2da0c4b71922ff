"""GTIDs in runs are those of the events, whichever partitions they are in."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from connector.log.gtid.gtid_runs import GtidRun, gtid_ranges, joined

GTIDS = st.sampled_from(["u:{}", "u:{}", "u:{}", "u:{}", "v:t:{}", "3-1-{}", "odd", None])


def runs_of(gtids: Sequence[str | None]) -> list[GtidRun]:
    """A run for each event, as the events of several fragments have them."""
    return [GtidRun(gtid, index, 1) for index, gtid in enumerate(gtids) if gtid is not None]


def numbers(found: Sequence[tuple[str, int]]) -> list[str]:
    """The GTIDs of ranges, one by one."""
    told = []
    for first, count in found:
        at = max(first.rfind(":"), first.rfind("-")) + 1
        told += [first] if count == 1 else [f"{first[:at]}{int(first[at:]) + more}" for more in range(count)]
    return told


@given(st.lists(st.tuples(st.integers(0, 2), GTIDS, st.sampled_from([0, 0, 0, 5])), min_size=1, max_size=30))
def test_runs_of_partitions_have_each_gtid_once(events: list[tuple[int, str | None, int]]) -> None:
    partitions: dict[int, tuple[list[int], list[str | None]]] = {}
    number, gtids = 0, []
    for seqno, (partition, form, gap) in enumerate(events):
        number += 1 + gap
        gtid = form and form.format(number)
        gtids.append(gtid)
        seqnos, given = partitions.setdefault(partition, ([], []))
        seqnos.append(100 + seqno)
        given.append(gtid)
    told = [(joined(runs_of(given), seqnos), seqnos) for seqnos, given in partitions.values()]
    assert sorted(numbers(list(gtid_ranges(told)))) == sorted(filter(None, gtids))


def test_gtids_that_grow_as_the_seqnos_are_one_range() -> None:
    even = joined(runs_of([f"u:{n}" for n in range(10, 20, 2)]), range(0, 10, 2))
    odd = joined(runs_of([f"u:{n}" for n in range(11, 20, 2)]), range(1, 10, 2))
    assert even == [GtidRun("u:10", 0, 5)]
    assert list(gtid_ranges([(odd, range(1, 10, 2)), (even, range(0, 10, 2))])) == [("u:10", 10)]


def test_a_number_below_one_is_no_gtid() -> None:
    """The first event of all has none, so nothing tells the GTIDs before the others'."""
    others = joined(runs_of(["u:1", "u:3"]), range(1, 5, 2))
    assert list(gtid_ranges([(others, range(1, 5, 2)), ([], [0, 2])])) == [("u:1", 1), ("u:3", 1)]
