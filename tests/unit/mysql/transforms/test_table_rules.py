"""Rules for tables: the published rows, columns, names and definitions."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from connector.config.filters import Filters, TableRule
from connector.config.source import Source
from connector.ddl.captured import RULES_HINT
from connector.errors import ConfigError, PreflightError, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.server.heartbeat_table import heartbeat_table
from connector.mysql.transforms.filters import EVERYTHING, Filter, fingerprint


def ruled(*rules: tuple[str, tuple[str, ...]], case: int = 0) -> Filter:
    made = [TableRule(match=(match,), actions=actions) for match, actions in rules]  # type: ignore[arg-type]
    return Filter(Filters(do=("shop", "other"), tables=tuple(made)), case)


def test_first_matching_rule_applies() -> None:
    filter = ruled(("shop.orders", ("insert",)), ("shop", ("ddl",)))
    assert set(filter.actions("shop", "orders")) == {"insert"}
    assert set(filter.actions("shop", "items")) == {"ddl"}
    assert set(filter.actions("other", "orders")) == EVERYTHING
    assert ruled(("SHOP.Orders", ("insert",)), case=1).rule("shop", "ORDERS") is not None
    assert ruled(("SHOP.Orders", ("insert",))).rule("shop", "orders") is None


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE TABLE log (id INT)", False),
        ("ALTER TABLE log ADD x INT", False),
        ("CREATE TABLE orders (id INT)", True),
        ("TRUNCATE log", False),
        ("TRUNCATE orders", True),
        ("TRUNCATE kept", False),
        ("DROP TABLE kept", True),
        ("DROP TABLE log, log", False),
        ("CREATE DATABASE shop", True),
        ("CREATE DATABASE quiet", False),
        ("DROP DATABASE other", True),
        ("CREATE VIEW log AS SELECT 1", True),
        ("CREATE TABLE elsewhere.t (id INT)", False),
    ],
)
def test_rules_decide_which_definitions_are_published(sql: str, wanted: bool) -> None:
    rules = [("shop.log", ("insert", "update")), ("shop.kept", ("insert", "ddl")), ("quiet", ("insert", "delete"))]
    filter = ruled(*rules)
    assert bool(filter.definitions(Statement("shop", sql))) is wanted


@pytest.mark.parametrize(
    ("sql", "option"),
    [("RENAME TABLE log TO orders", "source.filters.tables"), ("DROP GHOST x", "source.filters.unknown_ddl")],
)
def test_ddl_of_unclear_tables_stops(sql: str, option: str) -> None:
    with pytest.raises(Unsupported) as refused:
        ruled(("shop.log", ("insert",))).definitions(Statement("shop", sql))
    assert refused.value.where["sql"] == sql
    assert option in refused.value.hint
    assert Filter(Filters()).definitions(Statement("shop", sql))


@pytest.mark.parametrize("rule", [{}, {"match": []}, {"match": ["a"], "actions": ["drop"]}, {"match": ["a"], "x": 1}])
def test_invalid_rule_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TableRule.model_validate(rule)


def test_settings_that_contradict_a_rule_are_refused() -> None:
    rules = Filters(tables=(TableRule(match=("shop",)),))
    with pytest.raises(ValidationError, match="statements=keep"):
        Source(filters=rules, statements="keep")
    with pytest.raises(ConfigError) as refused:
        heartbeat_table(Source(filters=rules, heartbeat_table="shop.beats"))
    assert refused.value.where["table"] == "shop.beats"
    assert "source.filters" in refused.value.hint
    with pytest.raises(ConfigError) as half:
        Filter(Filters(tables=(TableRule(match=("shop.",)),)))
    assert half.value.where == {"option": "source.filters.tables.0.match"}


def test_rule_that_matches_no_column_is_refused() -> None:
    column = Column("Mail", "varchar(9)", charset="utf8mb4")
    tables = [TableLayout(TableName("shop", name), (Column("id", "int"), column), (0,)) for name in ("a", "b")]

    def check(*rules: dict[str, object]) -> None:
        Filter(Filters(tables=tuple(TableRule.model_validate(rule) for rule in rules))).check_rules(tables)

    check({"match": ["shop"], "drop": ["m*"]}, {"match": ["gone"], "actions": ["ddl"]})
    check({"match": ["shop.a"], "mask": {"MAIL": {"truncate": 1}}})
    for unknown, rules in (
        ("mial", [{"match": ["shop"], "mask": {"mial": {"truncate": 1}}}]),
        ("mail", [{"match": ["shop"]}, {"match": ["shop.a"], "drop": ["mail"]}]),
        ("born", [{"match": ["shop"], "zero_dates": ["born"]}]),
        ("born", [{"match": ["shop"], "rename": {"mail": "address", "born": "birthday"}}]),
    ):
        with pytest.raises(PreflightError) as misspelt:
            check(*rules)
        assert misspelt.value.where["unknown"] == unknown
        assert "source.filters.tables" in misspelt.value.hint
    with pytest.raises(Unsupported) as refused:
        check({"match": ["shop.b"], "drop": ["*"]})
    assert refused.value.where["column"]
    with pytest.raises(Unsupported) as refused:
        check({"match": ["shop.b"], "rename": {"MAIL": "ID"}})
    assert str(refused.value.where["column"]).lower() == "mail"


def test_publish_as_renames_tables() -> None:
    rules = [
        {"match": ["shop.t"], "publish_as": "other.it"},
        {"match": ["shop"], "publish_as": "store"},
        {"match": ["old"], "publish_as": "new"},
    ]
    filter = Filter(Filters.model_validate({"tables": rules, "ignore": ["shop.gone"]}))
    names = {name: filter.published_name(TableName("shop", name)) for name in ("t", "u", "gone")}
    assert names == {"t": ("other", "it"), "u": ("store", "u"), "gone": ("shop", "gone")}
    assert [filter.published_schema(name) for name in ("shop", "old", "x")] == ["store", "new", "x"]
    layout = TableLayout(TableName("shop", "u"), (Column("id", "int"),), (0,))
    shape = filter.row_transform(layout)
    assert shape is not None
    assert shape.layout == TableLayout(TableName("store", "u"), layout.columns, (0,))
    assert shape.rows(0, b"as it is", b"8 bytes.", b"b", b"a") == (b"as it is", b"8 bytes.", b"b", b"a")

    def published(sql: str) -> str | None:
        found = filter.published_statement(Statement("shop", sql), lambda _: None)
        return found and found.sql

    assert published("CREATE TABLE u (id INT)") == "CREATE TABLE `store`.`u` (id INT)"
    assert published("DROP DATABASE old") == "DROP DATABASE `new`"
    assert published("DROP DATABASE x") == "DROP DATABASE x"
    for sql in ("DROP DATABASE shop", "DROP DATABASE new", "DROP DATABASE other"):
        with pytest.raises(Unsupported) as refused:
            published(sql)
        assert refused.value.where["sql"] == sql


@pytest.mark.parametrize(
    ("match", "name"),
    [
        (["shop"], "a.b"),
        (["shop.*"], "a.b"),
        (["shop.t", "shop.u"], "a.b"),
        (["shop.t"], "a"),
        (["sho?"], "a"),
        (["shop.t"], "a.b.c"),
        (["shop.t"], ".b"),
        (["shop.t"], "a."),
    ],
)
def test_publish_as_that_fits_neither_table_nor_schema_is_refused(match: list[str], name: str) -> None:
    with pytest.raises(ValidationError, match="publish_as"):
        TableRule.model_validate({"match": match, "publish_as": name})


@pytest.mark.parametrize(
    "fields",
    [
        {"rename": {"a": "x", "A": "y"}},
        {"rename": {"a": "x", "b": "X"}},
        {"rename": {"Secret": "x"}, "drop": ["se*"]},
        {"rename": {"a*": "x"}},
        {"rename": {"a?": "x"}},
        {"rename": {"": "x"}},
        {"rename": {"a": ""}},
        {"rename": {"a": "x "}},
        {"rename": {"a": "x\0y"}},
        {"rename": {"a": "x" * 65}},
    ],
)
def test_rename_to_an_impossible_column_name_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="rename"):
        TableRule.model_validate({"match": ["shop"], **fields})


def test_rename_changes_column_names() -> None:
    rules = [
        {"match": ["shop.t"], "rename": {"Old": "new x", "n": "N"}, "drop": ["gone"], "publish_as": "store.it"},
        {"match": ["shop.masked"], "rename": {"mail": "address"}, "mask": {"mail": {"truncate": 1}}},
        {"match": ["shop.swap"], "rename": {"a": "b", "b": "a"}},
    ]
    filter = Filter(Filters.model_validate({"tables": rules}))
    assert filter.published_column(TableName("shop", "t"), "OLD") == "new x"
    assert filter.published_column(TableName("shop", "u"), "old") == "old"

    def published(sql: str, known: TableLayout | None = None) -> str | None:
        found = filter.published_statement(Statement("shop", sql), lambda name: known)
        return found and found.sql

    assert published("CREATE TABLE t (old INT, gone INT, n INT, PRIMARY KEY (old), KEY (gone), KEY n (n))") == (
        "CREATE TABLE `store`.`it` (`new x` INT, `N` INT, PRIMARY KEY (`new x`), KEY n (`N`))"
    )
    after = TableLayout(TableName("shop", "t"), tuple(Column(name, "int") for name in ("old", "gone", "x")))
    assert published("ALTER TABLE t ADD x INT AFTER gone", after) == (
        "ALTER TABLE `store`.`it` ADD x INT AFTER `new x`"  # behind the one that is published there
    )
    assert published("ALTER TABLE t DROP gone") is None
    assert published("ALTER TABLE swap DROP a, ADD INDEX a (b)") == "ALTER TABLE swap DROP `b`, ADD INDEX a (`a`)"
    two_of_a_name = TableLayout(after.name, (*after.columns, Column("NEW X", "int")))
    for sql, known in (
        ("ALTER TABLE masked RENAME COLUMN mail TO x", None),
        ("RENAME TABLE swap TO free", None),
        ("RENAME TABLE t TO swap", None),
        ("CREATE TABLE free LIKE swap", None),
        ("CREATE TABLE t (old INT, `New X` INT)", None),
        ("ALTER TABLE t ADD old INT", two_of_a_name),
    ):
        with pytest.raises(Unsupported) as caught:
            published(sql, known)
        assert caught.value.hint == RULES_HINT
        assert caught.value.where == {"sql": sql}


def test_other_names_change_the_fingerprint() -> None:
    def told(**rule: object) -> str:
        return fingerprint(Source(filters=Filters.model_validate({"tables": [{"match": ["shop"], **rule}]})))

    assert told() == told(rename={})
    assert len({told(), told(rename={"a": "b"}), told(rename={"a": "c"}), told(rename={"c": "b"})}) == 4
    assert told(rename={"a": "b", "c": "d"}) == told(rename={"c": "d", "a": "b"})
