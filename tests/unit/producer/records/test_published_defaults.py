"""Defaults are published as a row that has them is."""

from __future__ import annotations

import hmac
from dataclasses import replace
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.log.transaction.layout import Column, TableName
from connector.producer.records.conversion import value_of
from connector.producer.records.published_defaults import PublishedDefaults
from connector.targets.table import Table, make_table

KEY = "k" * 16
COLUMNS = [
    Column("id", "int", nullable=False),
    Column("mail", "varchar(99)", charset="utf8mb4"),
    Column("born", "date"),
    Column("at", "timestamp"),
]
DEFAULTS = {"id": 0, "mail": "nobody", "born": "0000-00-00"}  # the one of `at` is the current time


def table(name: str = "people", schema: str = "shop", **names: str) -> Table:
    columns = [replace(one, name=names.get(one.name, one.name)) for one in COLUMNS]
    defaults = {names.get(name, name): value for name, value in DEFAULTS.items()}
    return make_table(TableName(schema, name), columns, [columns[0].name], defaults=defaults)


def defaults(*rules: dict[str, Any], of: Table | None = None, **filters: Any) -> dict[str, Any]:
    given = [{"match": ["shop.people"], **rule} for rule in rules]
    made = Filters.model_validate({"tables": given, "hash_key": KEY, **filters})
    return {name: value_of(value) for name, value in PublishedDefaults(made).of(of or table()).items()}


def test_columns_without_rules_have_their_defaults() -> None:
    assert defaults() == DEFAULTS
    assert defaults({"match": ["shop.else"], "mask": {"mail": {"fixed": "x"}}}) == DEFAULTS
    assert defaults({"mask": {"mail": {"fixed": "x"}}}, ignore=["shop.people"]) == DEFAULTS


def test_a_mask_is_applied_to_defaults() -> None:
    digits = hmac.digest(KEY.encode(), b"nobody", "sha256").hex()[:20]
    masks = [({"fixed": "x"}, "x"), ({"fixed": None}, None), ({"truncate": 2}, "no"), ({"hash": 20}, digits)]
    for mask, expected in masks:
        assert defaults({"mask": {"mail": mask}}) == DEFAULTS | {"mail": expected}
    assert defaults({"zero_dates": ["*"]}) == DEFAULTS | {"born": None}


def test_a_column_whose_mask_is_one_value_has_that_value_whatever_its_default() -> None:
    assert defaults({"mask": {"at": {"fixed": None}}}) == DEFAULTS | {"at": None}


@pytest.mark.parametrize("mask", [{"hash": 16}, {"truncate": 2}])
def test_a_column_whose_mask_depends_on_the_value_has_no_known_default_without_one(mask: dict[str, int]) -> None:
    people = table()
    known = {name: value for name, value in DEFAULTS.items() if name != "mail"}
    unknown = make_table(people.name, people.columns, ["id"], defaults=known)
    assert defaults({"mask": {"mail": mask}}, of=unknown) == known
    assert defaults({"mask": {"mail": {"fixed": "x"}}}, of=unknown) == known | {"mail": "x"}


def test_rules_use_the_names_of_the_source() -> None:
    renamed = {"rename": {"mail": "email"}, "publish_as": "lake.folk", "mask": {"mail": {"fixed": "x"}}}
    assert defaults(renamed, of=table("folk", "lake", mail="email")) == {"id": 0, "email": "x", "born": "0000-00-00"}


def test_a_default_of_tables_with_several_rules_is_not_known() -> None:
    rules = [
        {"match": ["a"], "publish_as": "shop", "mask": {"mail": {"fixed": "x"}}},
        {"match": ["b"], "publish_as": "shop"},
    ]
    assert defaults(*rules) == {"id": 0, "born": "0000-00-00"}


def test_a_rule_that_does_not_fit_an_earlier_definition_gives_no_default() -> None:
    assert defaults({"mask": {"born": {"hash": 16}}}) == {}
    assert defaults({"drop": ["mail"], "mask": {"at": {"fixed": None}}}) == {"id": 0, "born": "0000-00-00", "at": None}
