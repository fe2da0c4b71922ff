"""While the source is written to, `verify` reports only differences that last."""

from __future__ import annotations

from connector.verify.report import Difference, DifferenceKind, TableReport
from connector.verify.run import _lasting


def a_report(*rows: str, more: bool = False) -> TableReport:
    differences = [Difference(DifferenceKind.CHANGED, row) for row in rows]
    return TableReport("s.t", 9, (*differences, *([Difference(DifferenceKind.MORE)] if more else [])))


def test_difference_of_one_round_only_is_not_reported() -> None:
    assert _lasting(a_report("id=1", "id=2"), a_report("id=2", "id=3")) == a_report("id=2")
    assert _lasting(a_report("id=1"), a_report("id=2")).equal


def changed(*values: str) -> TableReport:
    return TableReport("s.t", 9, (Difference(DifferenceKind.CHANGED, "id=1", values=frozenset(values)),))


def test_row_that_differs_in_other_values_each_round_is_in_transit() -> None:
    assert _lasting(
        changed("v: 1 on the source, 0 on the target"), changed("v: 3 on the source, 2 on the target")
    ).equal
    assert not _lasting(changed("v: 3, 2", "w: 7, 8"), changed("v: 5, 4", "w: 7, 8")).equal


def test_row_that_comes_or_goes_meanwhile_is_in_transit() -> None:
    missing = TableReport("s.t", 9, (Difference(DifferenceKind.MISSING, "id=1"),))
    assert _lasting(missing, changed("v: 3, 2")).equal
    assert _lasting(missing, missing) == missing


def test_first_round_is_reported_unchanged() -> None:
    assert _lasting(None, a_report("id=1")) == a_report("id=1")


def test_round_with_unnamed_differences_is_reported_unchanged() -> None:
    assert _lasting(a_report("id=1", more=True), a_report("id=2")) == a_report("id=2")
    assert _lasting(a_report("id=1"), a_report("id=2", more=True)) == a_report("id=2", more=True)
