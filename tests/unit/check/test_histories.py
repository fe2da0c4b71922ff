"""Patterns of `target.history` in `thl check`."""

from __future__ import annotations

from connector.check.checks import check_histories
from connector.check.result import CheckState
from connector.log.transaction.layout import TableName

NAMES = [TableName("shop", "orders"), TableName("shop", "audit_1"), TableName("other", "t")]


def test_pattern_that_finds_no_table_is_a_warning_with_its_text() -> None:
    found = list(check_histories(["shop.orders", "shop.Orders", " shop.audit_* ", "shop.ordrs", "other"], NAMES))
    assert [one.state for one in found] == [CheckState.WARNING] * 2
    assert ["shop.Orders " in found[0].found, "shop.ordrs " in found[1].found] == [True, True]


def test_without_a_history_nothing_is_checked() -> None:
    assert list(check_histories([], NAMES)) == []
