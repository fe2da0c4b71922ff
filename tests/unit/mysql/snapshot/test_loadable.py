"""Why tables cannot be loaded: each reason for the loads that it counts for, and all tables that it is about."""

from __future__ import annotations

from typing import Any

import pytest

from connector.config.filters import Filters
from connector.errors import PreflightError
from connector.log.transaction.layout import TableName
from connector.mysql.snapshot.loadable import (
    REASONS,
    LoadCandidate,
    Purpose,
    by_reason,
    captured,
    refuse_unloadable,
    unloadable,
)
from connector.mysql.transforms.filters import Filter

INITIAL, AGAIN, JOIN, ROUND = Purpose.INITIAL, Purpose.AGAIN, Purpose.JOIN, Purpose.ROUND
ANY = {INITIAL, AGAIN, JOIN, ROUND}


def table(name: str, *, has_key: bool = True, transactional: bool = True, kind: str = "BASE TABLE") -> LoadCandidate:
    return LoadCandidate(TableName("s", name), has_key, transactional, kind)


def rules(*tables: Any) -> Filter:
    return Filter(Filters.model_validate({"tables": tables}))


def actions(*published: str, match: str = "s.t") -> dict[str, Any]:
    return {"match": [match], "actions": published}


TOGETHER = tuple({"match": [name], "publish_as": "s.both"} for name in ("s.a", "s.b"))
A, B = table("a"), table("b", has_key=False)


@pytest.mark.parametrize(
    ("tables", "filter", "purposes", "reason", "named"),
    [
        ([table("t", transactional=False)], rules(), ANY, "no transactions", "s.t"),
        ([table("t", kind="SYSTEM VERSIONED", transactional=False)], rules(), ANY, "SELECT differs", "s.t (system v"),
        ([table("t")], rules(actions("insert", "update", "delete")), {AGAIN, JOIN}, "add ddl", "s.t"),
        ([table("t")], rules(actions("insert", "update", "ddl")), {AGAIN, JOIN}, "add delete", "s.t"),
        ([table("t")], rules(actions("update", "delete", "ddl")), {JOIN}, "add insert", "s.t"),
        ([A, B], rules(*TOGETHER), {INITIAL, AGAIN}, "without a primary key", "s.b"),
        ([A, table("b")], rules(*TOGETHER), {JOIN}, "cannot join by itself", "s.a, s.b"),
    ],
)
def test_reason_counts_for_its_loads_and_names_its_tables(
    tables: list[LoadCandidate], filter: Filter, purposes: set[Purpose], reason: str, named: str
) -> None:
    other = table("other")
    for purpose in Purpose:
        found = unloadable([*tables, other], filter, purpose)
        assert other.name not in found
        if purpose not in purposes:
            assert found == {} or reason not in str(next(iter(found.values())).error)
            continue
        (one,) = found.values()
        assert set(found) == {filter.published_name(tables[0].name)}
        assert reason in str(one.error)
        assert str(one.error.where["tables"]).startswith(named)
        assert ("source.start = now" in one.error.hint) is (purpose is INITIAL)
        with pytest.raises(PreflightError, match="tables=s"):
            refuse_unloadable(tables, filter, purpose)


@pytest.mark.parametrize("purpose", Purpose)
def test_table_without_rules_is_loaded(purpose: Purpose) -> None:
    refuse_unloadable([table("t"), table("u", has_key=False)], rules(), purpose)


@pytest.mark.parametrize("purpose", [INITIAL, AGAIN, ROUND])
def test_tables_of_one_name_with_keys_are_loaded_if_one_is_defined(purpose: Purpose) -> None:
    first, second = TOGETHER
    refuse_unloadable([A, table("b")], rules(first, second | {"actions": ["insert", "update", "delete"]}), purpose)


def test_each_reason_is_named_once_with_all_tables() -> None:
    tables = [*(table(f"m{n:02}", transactional=False) for n in range(30)), table("v", kind="SYSTEM VERSIONED")]
    engine, kind = by_reason(unloadable(tables, rules(), INITIAL).values())
    assert str(engine.error.where["tables"]).endswith(", s.m19 and 10 more")
    assert engine.error.hint.startswith("ALTER TABLE `s`.`m00` ENGINE = InnoDB")
    assert kind.error.where["tables"] == "s.v (system versioned)"


def test_captured_are_tables_whose_rows_are_published() -> None:
    filter = rules(actions("update", "delete", "ddl"))
    assert captured([table("t"), table("u")], filter) == [table("u")]
    assert captured([table("t"), table("u")], Filter(Filters(do=("s.t",)))) == [table("t")]


def test_every_reason_has_a_remedy() -> None:
    assert all(reason.hint and reason.purposes for reason in REASONS)
