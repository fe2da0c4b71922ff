"""What `verify` tells while the source is written to: only what does not pass."""

from __future__ import annotations

from connector.verify.report import Difference, TableReport, What
from connector.verify.run import _lasting


def a_report(*rows: str, more: bool = False) -> TableReport:
    differences = [Difference(What.CHANGED, row) for row in rows]
    return TableReport("s.t", 9, (*differences, *([Difference(What.MORE)] if more else [])))


def test_rows_that_were_on_their_way_are_not_told() -> None:
    assert _lasting(a_report("id=1", "id=2"), a_report("id=2", "id=3")) == a_report("id=2")
    assert _lasting(a_report("id=1"), a_report("id=2")).equal


def test_the_first_round_is_told_as_it_is() -> None:
    assert _lasting(None, a_report("id=1")) == a_report("id=1")


def test_where_not_all_was_named_nothing_is_left_out() -> None:
    assert _lasting(a_report("id=1", more=True), a_report("id=2")) == a_report("id=2")
    assert _lasting(a_report("id=1"), a_report("id=2", more=True)) == a_report("id=2", more=True)
