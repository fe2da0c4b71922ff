"""Consecutive GTIDs are counted as a range, and give the same set as one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connector.log.gtid.gtid_range import GtidRange
from connector.log.gtid.mysql import GtidSet

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
GTIDS = st.builds(
    lambda source, number: f"{source}:{number}",
    st.sampled_from((A, B, f"{A}:tag", A.upper())),
    st.integers(1, 12) | st.integers(10**18 - 3, 10**18 + 3) | st.integers(2**63 - 4, 2**63 - 2),
)


@given(st.lists(GTIDS | st.integers(1, 30).map(lambda number: f"{A}:{number}"), max_size=40))
def test_set_built_by_ranges_equals_the_set_built_one_by_one(gtids: list[str]) -> None:
    single, by_runs, run = GtidSet(), GtidSet(), GtidRange()
    for gtid in gtids:
        single.add(gtid)
        if run.goes_on(gtid):
            continue
        if run.first is not None:
            by_runs.add(run.first, run.count)
        by_runs.add(gtid)
        run.begin(gtid)
    if run.first is not None:
        by_runs.add(run.first, run.count)

    assert by_runs == single


def test_range_continues_only_with_the_next_number_of_its_source() -> None:
    run = GtidRange()
    assert not run.goes_on(f"{A}:1")

    run.begin(f"{A}:9")

    assert run.goes_on(f"{A}:10")
    for other in (f"{A}:10", f"{A}:12", f"{B}:11", f"{A}:tag:11", f"{A}:011", f"{A}:11x", f"{A}:", "", "11"):
        assert not run.goes_on(other), other
    assert (run.first, run.count) == (f"{A}:9", 2)


def test_malformed_gtid_begins_no_range() -> None:
    run = GtidRange()
    for text in (None, "", ":", "7", f"{A}:", f"{A}:x", f"{A}:0", f"{A}:{10**18}"):
        run.begin(text)
        assert run.first is None, text
