"""Two streams of rows are equal if and only if they are equal as multisets."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.verify.compare import compare
from connector.verify.report import DifferenceKind
from connector.verify.values import Row, number_form, shown

values = st.one_of(st.none(), st.sampled_from([b"", b"\0", b"a", b"1", b"None", b"\xff"]), st.binary(max_size=3))
rows = st.tuples(values, values)
NAMES = ("id", "name")


def kinds(source: list[Row], target: list[Row], key: tuple[int, ...] = ()) -> list[DifferenceKind]:
    return [difference.what for difference in compare(lambda: source, lambda: target, NAMES, key)[1]]


@given(here=st.lists(rows, max_size=12), there=st.lists(rows, max_size=12), data=st.data())
def test_streams_are_equal_iff_multisets_are_equal(here: list[Row], there: list[Row], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([(), (0,), (0, 1)]))
    count, differences = compare(lambda: here, lambda: there, NAMES, key)
    assert count == len(here)
    assert (not differences) == (Counter(here) == Counter(there))


@given(some=st.lists(rows, max_size=12), data=st.data())
def test_order_of_rows_is_ignored(some: list[Row], data: st.DataObject) -> None:
    assert kinds(some, data.draw(st.permutations(some))) == []


def test_each_kind_of_difference_is_found() -> None:
    many: list[Row] = [(str(number).encode(), b"x" * number) for number in range(300)]
    assert kinds(many, many[:100] + many[101:], key=(0,)) == [DifferenceKind.MISSING]
    assert kinds(many[:100] + many[101:], many, key=(0,)) == [DifferenceKind.EXTRA]
    assert kinds(many, [*many, many[7]]) == [DifferenceKind.COUNT]
    assert kinds(many, [*many[:-1], (b"299", b"x" * 298 + b"y")], key=(0,)) == [DifferenceKind.CHANGED]
    assert kinds(many, [*many[:-1], (b"299", None)], key=(0,)) == [DifferenceKind.CHANGED]


def test_changed_row_is_named_with_both_values() -> None:
    found = compare(lambda: [(b"1", b"a")], lambda: [(b"1", b"b")], NAMES, (0,))[1]
    assert [str(difference) for difference in found] == ["id=1 is different (name: a on the source, b on the target)"]


def test_named_differences_are_bounded() -> None:
    many: list[Row] = [(str(number).encode(), b"") for number in range(20_000)]
    found = compare(lambda: many, list[Row], NAMES, (0,))[1]
    assert len(found) < 1000
    assert found[-1].what is DifferenceKind.MORE


def test_differences_of_more_buckets_than_are_kept_at_once_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.verify.compare.EXAMINED", 16)
    monkeypatch.setattr("connector.verify.compare.KEPT_ROWS", 0)
    many: list[Row] = [(str(number).encode(), b"x") for number in range(300)]
    _, found = compare(lambda: many, list, NAMES, (0,), 300)
    assert sorted(one.key for one in found) == sorted((key,) for key, _ in many)
    _, found = compare(lambda: many, list, NAMES, (0,), 299)
    assert (len(found), found[-1].what) == (300, DifferenceKind.MORE)


def test_difference_of_a_row_has_its_key() -> None:
    here: list[Row] = [(b"1", b"a"), (b"2", b"b")]
    there: list[Row] = [(b"1", b"x"), (b"3", None)]
    _, found = compare(lambda: here, lambda: there, NAMES, (0,))
    assert [(one.what, one.key) for one in found] == [
        (DifferenceKind.CHANGED, (b"1",)),
        (DifferenceKind.MISSING, (b"2",)),
        (DifferenceKind.EXTRA, (b"3",)),
    ]
    assert [one.key for one in compare(lambda: here, list, NAMES, ())[1]] == [(), ()]


def test_null_differs_from_text_none() -> None:
    assert kinds([(b"1", None)], [(b"1", b"None")], key=(0,)) == [DifferenceKind.CHANGED]


def test_number_form_removes_leading_zeros_only() -> None:
    assert [number_form(text) for text in (b"000", b"0042", b"-0042", b"0.50", b"00.50", b"-00")] == [
        b"0",
        b"42",
        b"-42",
        b"0.50",
        b"0.50",
        b"-0",
    ]


def test_shown_values_are_readable_and_cut() -> None:
    assert shown(None) == "NULL"
    assert shown("ü€".encode()) == "ü€"
    assert shown(b"\xff\x00") == "0xff00"
    assert shown(b"a\nb") == "'a\\nb'"
    assert len(shown(b"x" * 1000)) < 80
