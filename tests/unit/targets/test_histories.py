"""The creation of histories, without a target; tests/contract/target_history.py has the rest."""

from __future__ import annotations

from typing import Any

import pytest

from connector.errors import ValueNotRepresentable
from connector.log.compact.history import history_tables
from connector.log.transaction.layout import Column, TableName
from connector.targets.duckdb.names import DuckDbNames
from connector.targets.histories import create_histories
from connector.targets.mysql.sql.names import MySqlNames
from connector.targets.names import TargetNames, check_names
from connector.targets.postgres.names import PostgresNames
from connector.targets.sqlite.names import SqliteNames
from connector.targets.table import make_table
from connector.targets.target_schema import TargetSchema


def schema_of(*names: TableName) -> TargetSchema:
    return TargetSchema([make_table(name, [Column("id", "int")], ["id"], "utf8mb4") for name in names])


def test_histories_of_many_tables_do_not_cost_a_schema_each(monkeypatch: pytest.MonkeyPatch) -> None:
    before, wanted = schema_of(*(TableName("shop", f"t{n}") for n in range(100))), history_tables(["shop"])
    made = 0
    init = TargetSchema.__init__

    def counted(self: TargetSchema, *given: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        init(self, *given, **named)

    monkeypatch.setattr(TargetSchema, "__init__", counted)
    created, after = create_histories(before, wanted)
    assert (len(created), len(list(after)), made) == (100, 200, 1)
    assert create_histories(after, wanted) == ((), after)
    assert made == 1


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (MySqlNames(), [TableName("é" * 56, "t")]),
        (PostgresNames(), [TableName("s" * 63, "t")]),
        (PostgresNames(), [TableName("s" * 54, "t"), TableName(f"{'s' * 54}__history2", "t")]),
        (SqliteNames(), [TableName("shop", "t"), TableName("SHOP__history", "t")]),
        (DuckDbNames(), [TableName("shop", "t"), TableName("SHOP__history", "t")]),
    ],
)
def test_history_whose_name_a_target_cannot_have_is_refused_with_its_option(
    rules: TargetNames, names: list[TableName]
) -> None:
    before = schema_of(*names)
    check_names(rules, before)
    _, after = create_histories(before, history_tables([f"{names[0].schema}.t"]))
    with pytest.raises(ValueNotRepresentable) as refused:
        check_names(rules, after)
    assert refused.value.hint == f"leave {names[0]} out of target.history"


def test_longest_name_of_a_history_is_a_name_of_mysql() -> None:
    check_names(MySqlNames(), create_histories(schema_of(TableName("é" * 55, "t" * 64)), history_tables(["*"]))[1])
