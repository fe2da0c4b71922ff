"""GTID sets against plain Python sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import Unsupported
from connector.log.gtid.mysql import GtidSet

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4350f323-7565-4e59-8763-4b1b83a0ce0e"
SOURCES = (A, f"{A}:blue", f"{A}:green", B)

gtids = st.tuples(st.sampled_from(SOURCES), st.integers(1, 30)).map(lambda it: f"{it[0]}:{it[1]}")
plain = st.sets(gtids, max_size=60)


def made(of: set[str] | list[str]) -> GtidSet:
    result = GtidSet()
    for gtid in of:
        result.add(gtid)
    return result


def listed(of: GtidSet) -> set[str]:
    return {f"{source}:{number}" for source, span in of for number in range(span.first, span.last + 1)}


@given(st.lists(gtids))
def test_set_contains_what_was_added_in_any_order(added: list[str]) -> None:
    it = made(added)
    assert listed(it) == set(added)
    assert it.count() == len(set(added))
    assert bool(it) == bool(added)
    assert it == made(sorted(added))


@given(plain, plain)
def test_operations_are_those_of_sets(left: set[str], right: set[str]) -> None:
    a, b = made(left), made(right)
    assert listed(a | b) == left | right
    assert listed(a - b) == left - right
    assert listed(a & b) == left & right
    assert a.issubset(b) == left.issubset(right)
    assert (a == b) == (left == right)
    assert (listed(a), listed(b)) == (left, right)


@given(plain, gtids)
def test_one_gtid_is_added_and_removed(of: set[str], gtid: str) -> None:
    it = made(of)
    assert it.contains(gtid) == (gtid in it) == (gtid in of)
    it.remove(gtid)
    assert listed(it) == of - {gtid}
    it.add(gtid)
    assert listed(it) == of | {gtid}


@given(plain)
def test_the_text_reads_back_and_is_the_same_for_equal_sets(of: set[str]) -> None:
    it = made(of)
    assert GtidSet.parse(str(it)) == it
    assert str(made(sorted(of, reverse=True))) == str(it)


@given(plain, gtids)
def test_changed_copy_leaves_the_original(of: set[str], gtid: str) -> None:
    it = made(of)
    other = it.copy()
    other.add(gtid)
    other.remove(gtid)
    assert listed(it) == of


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (f"{A}:1-5:7", f"{A}:1-5:7"),
        (f"{A}:7:1-3:4-5", f"{A}:1-5:7"),
        (f" {A.upper()}:1-2 ,\n {B}:3 ", f"{A}:1-2,{B}:3"),
        (f"{A}:1:2:3,{A}:4", f"{A}:1-4"),
        (f"{A}:5-3", ""),
        (f"{A}:1-3:Blue:4-5:green:1", f"{A}:1-3:blue:4-5:green:1"),
        (f"{A}:green:1,{A}:blue:2", f"{A}:blue:2:green:1"),
        (A.replace("-", "") + ":1", f"{A}:1"),
        (f"{A}:{2**63 - 2}", f"{A}:{2**63 - 2}"),
    ],
)
def test_every_form_of_mysqls_text_is_read(text: str, canonical: str) -> None:
    assert str(GtidSet.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    ["x", A, f"{A}:", f"{A}:0", f"{A}:-3", f"{A}:1-{2**63 - 1}", f"{A}:blue", f"{A}:blue:green:1", "0-1-5", f"{A}:9a:1",
     f"{A}:" + "b" * 33 + ":1"],
)  # fmt: skip
def test_malformed_set_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        GtidSet.parse(text)


@pytest.mark.parametrize("gtid", ["", "0-1-5", A, f"{A}:0", f"{A}:1-2", f"{A}:blue:green:1", f"{A}:٣", f"{A}:9a:1"])
def test_malformed_gtid_is_refused(gtid: str) -> None:
    it = GtidSet.parse(f"{A}:1-2")
    for refuses in (it.add, it.remove, it.contains):
        with pytest.raises(Unsupported):
            refuses(gtid)


def test_consecutive_gtids_are_added_at_once() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    found = GtidSet.parse(f"{uuid}:1-5:9")
    found.add(f"{uuid}:6", 2)
    assert str(found) == f"{uuid}:1-7:9"
    found.add(f"{uuid}:8", 4)
    assert str(found) == f"{uuid}:1-11"
    found.add(f"{uuid}:tag:3", 2)
    assert str(found) == f"{uuid}:1-11:tag:3-4"
    with pytest.raises(Unsupported):
        found.add(f"{uuid}:{2**63 - 3}", 3)
