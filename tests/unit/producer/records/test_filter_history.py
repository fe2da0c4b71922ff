"""The tables whose rows later filters publish otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connector.config.source import Source
from connector.log.epochs.control import EpochRecord
from connector.log.ids import Epoch
from connector.log.transaction.layout import Column, TableName
from connector.mysql.transforms.filters import capture_of, fingerprint
from connector.producer.records.filter_history import FilterHistory
from connector.targets.table import Table, make_table
from tests.support.log_objects import epochs

COLUMNS = [
    Column("id", "int", nullable=False),
    Column("mail", "varchar(99)", charset="utf8mb4"),
    Column("born", "date"),
    Column("city", "varchar(99)", charset="utf8mb4"),
]


def table(name: str = "people", schema: str = "shop", columns: tuple[str, ...] = ()) -> Table:
    chosen = [replace(one, name=name) for one, name in zip(COLUMNS, columns, strict=True)] if columns else COLUMNS
    return make_table(TableName(schema, name), chosen, [chosen[0].name])


def history(*filters: dict[str, Any]) -> FilterHistory:
    return FilterHistory([record(number, one) for number, one in enumerate(filters, 1)])


def record(number: int, filters: dict[str, Any]) -> EpochRecord:
    ignored = filters.pop("ignore_server_ids", ())
    source = Source.model_validate({"filters": filters, "ignore_server_ids": ignored})
    (made,) = epochs(10 * number)
    return replace(made, epoch=Epoch(number), filters=fingerprint(source), capture=capture_of(source))


def changed(*filters: dict[str, Any], tables: tuple[Table, ...] = (table(), table("orders")), after: int = 1) -> Any:
    found = history(*filters).changed(tables, Epoch(after), Epoch(len(filters)))
    return [f"{name.schema}.{name.table}" for name in (one.name for one in found)]


def rule(match: str = "shop.people", **fields: Any) -> dict[str, Any]:
    return {"tables": [{"match": [match], **fields}]}


KEY = {"hash_key": "k" * 16}
MASKED = rule(mask={"mail": {"fixed": "x"}})
HASHED = rule(mask={"mail": {"hash": 16}})


@pytest.mark.parametrize(
    "filters",
    [
        [{}, MASKED],
        [MASKED, {}],
        [MASKED, rule(mask={"mail": {"fixed": "y"}})],
        [MASKED, rule(mask={"mail": {"truncate": 1}})],
        [MASKED, rule(mask={"mail": {"fixed": None}})],
        [{}, rule(mask={"*": {"fixed": None}})],
        [{}, rule(drop=["mail"])],
        [{}, rule(rename={"mail": "email"})],
        [{}, rule(rename={"mail": "city", "city": "mail"})],
        [{}, rule(zero_dates=["born"])],
        [{}, rule(publish_as="shop.folk")],
        [HASHED | KEY, HASHED | {"hash_key": "l" * 16}],
        [{}, {"ignore": ["shop.people"]}],
        [{}, {"do": ["shop.orders"]}],
        [{"ignore": ["shop.people"]}, {}],
        [{}, {"ignore": ["shop.people"]}, {}],  # as now, but changed meanwhile
        [{}, MASKED, {}],
        [{}, rule(actions=["insert"]), {}],
        [MASKED, {"tables": [{"match": ["shop.p*"]}, *MASKED["tables"]]}],  # the first rule counts
    ],
)
def test_a_table_with_another_rule_is_found_and_no_other(filters: list[dict[str, Any]]) -> None:
    assert changed(*filters) == ["shop.people"]


@pytest.mark.parametrize(
    "filters",
    [
        [MASKED, MASKED],
        [{}, rule("shop.else", mask={"mail": {"fixed": "x"}})],
        [{}, rule("shop.*", mask={"phone": {"fixed": "x"}}, drop=["fax"])],  # no column of it
        [{}, rule("shop.*", zero_dates=["mail"])],  # no date
        [{}, rule("shop.people", rename={"fax": "phone"})],
        [{}, {"do": ["shop"]}],
        [MASKED, {"tables": [{"match": ["shop.else"], "drop": ["mail"]}, *MASKED["tables"]]}],
        [HASHED | KEY, HASHED | KEY],
        [MASKED | KEY, MASKED | {"hash_key": "l" * 16}],  # nothing is hashed
        [{}, {"unknown_ddl": ["DROP GHOST *"]}],
    ],
)
def test_filters_that_publish_a_table_alike_leave_it_known(filters: list[dict[str, Any]]) -> None:
    assert changed(*filters) == []


def test_only_epochs_after_that_of_the_rows_count() -> None:
    assert changed({}, MASKED, MASKED, after=2) == []
    assert changed(MASKED, {}, {}, after=1) == ["shop.people"]


def test_servers_that_are_ignored_meanwhile_change_every_table() -> None:
    assert changed({}, {"ignore_server_ids": [5]}, {}) == ["shop.people", "shop.orders"]


def test_tables_are_found_by_their_published_names() -> None:
    folk = table("folk")
    one = rule(publish_as="shop.folk")
    assert changed(one, rule(publish_as="shop.folk", mask={"mail": {"fixed": "x"}}), tables=(folk, table())) == [
        "shop.folk"
    ]
    elsewhere = table(schema="lake")
    assert changed(rule("shop", publish_as="lake"), rule("shop", publish_as="lake", drop=["mail"]), tables=(elsewhere,))
    named = table(columns=("id", "email", "born", "city"))
    renamed = rule(rename={"mail": "email"})
    assert changed(renamed, rule(rename={"mail": "email"}, mask={"mail": {"fixed": "x"}}), tables=(named,))
    assert not changed(renamed, rule(rename={"mail": "email"}, mask={"email": {"fixed": "x"}}), tables=(named,))


def test_one_of_two_tables_that_are_published_together_counts() -> None:
    both = [{"match": ["a", "b"], "publish_as": "shop"}]
    assert changed({"tables": both}, {"tables": both, "ignore": ["b.people"]}) == ["shop.people"]


def test_names_are_compared_with_and_without_their_case() -> None:
    """It is not recorded whether the source distinguishes them."""
    assert changed(rule("shop.People", drop=["mail"]), rule("shop.people", drop=["mail"])) == ["shop.people"]


def test_filters_that_are_not_recorded_count_by_their_fingerprint() -> None:
    first, second = record(1, {}), record(2, MASKED)
    unread = replace(second, capture={"filters": {"of": "a later version"}})
    found = [
        [one.name.table for one in FilterHistory(pair).changed([table()], Epoch(1), Epoch(2))]
        for pair in (
            (replace(first, capture=None), second),
            (replace(first, capture=None), replace(first, epoch=Epoch(2))),
            (replace(first, capture=None, filters=None), second),
            (first, unread),
        )
    ]
    assert found == [["people"], [], [], ["people"]]


def test_the_reason_names_the_event() -> None:
    (one,) = history({}, MASKED).changed([table()], Epoch(1), Epoch(2))
    assert one.why == "source.filters publish it otherwise since event 20"


@pytest.mark.parametrize(
    ("filters", "followed"),
    [
        ([{}, MASKED], True),
        ([{}, rule(drop=["mail"]), {}], True),
        ([{}, {"ignore": ["shop.people"]}, {}], False),
        ([{}, MASKED, {"ignore": ["shop.people"]}, {}], False),
        ([{}, rule(actions=["insert", "update", "delete"])], False),
        ([{}, {"ignore_server_ids": [5]}, {}], False),
    ],
)
def test_definitions_are_followed_where_they_were_published_all_the_time(
    filters: list[dict[str, Any]], followed: bool
) -> None:
    (found,) = history(*[dict(one) for one in filters]).changed([table()], Epoch(1), Epoch(len(filters)))
    assert found.followed is followed


def test_an_xa_transaction_has_the_filters_of_the_epoch_that_read_its_prepare() -> None:
    uuid = "11111111-1111-1111-1111-111111111111"
    first, second, third = (record(number, filters) for number, filters in enumerate(({}, MASKED, MASKED), 1))
    made = FilterHistory(
        [replace(one, gtid_set=f"{uuid}:1-{10 * number}") for number, one in enumerate((first, second, third), 1)]
    )

    def found(prepared: str) -> list[str]:
        return [one.name.table for one in made.since_prepared([table()], prepared, Epoch(3))]

    assert found(f"{uuid}:15") == ["people"]  # before the mask
    assert found(f"{uuid}:25") == found(f"{uuid}:35") == []
    assert found("binlog.000001:4") == ["people"]  # it may have been


def test_epochs_with_cascades_that_are_not_logged_leave_no_row_known() -> None:
    epochs = [record(1, {}), record(2, {})]
    accepted = Source.model_validate({"accept_unlogged_cascades": True})
    (found,) = FilterHistory([replace(epochs[0], capture=capture_of(accepted)), epochs[1]]).changed(
        [table()], Epoch(1), Epoch(2)
    )
    assert found.name == table().name
