"""A producer whose filter begins to capture tables with rows is refused, with their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.config.source import Source
from connector.errors import PreflightError
from connector.kafka.log_reader import LogReader
from connector.log.transaction.layout import TableName
from connector.mysql.preflight.wider_filters import check_widened
from connector.mysql.server.connection import session
from connector.mysql.transforms.filters import Filter, capture_of
from tests.integration.producer.test_produce_xa import pending
from tests.integration.producer.test_table_loads import replayed
from tests.support.loading import a_database, a_user, run
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import on_source

KEY = "a key for this test alone"
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(80), d DATE)",
    "INSERT INTO t VALUES (1, 2, 'x', NULL)",
    "CREATE TABLE u (id INT PRIMARY KEY)",
    "INSERT INTO u VALUES (1)",
    "CREATE TABLE bare (id INT PRIMARY KEY)",
    "CREATE VIEW v AS SELECT * FROM u",
)


@pytest.fixture(scope="module")
def source(mysql_server: SqlServer) -> Iterator[Source]:
    with a_database(mysql_server, "widened") as (made, name):
        run(made, name, *TABLES)
        yield made


def filtered(source: Source, **filters: Any) -> Source:
    """The source with these filters; `@` stands for its database."""
    name = source.filters.do[0]
    found = json.loads(json.dumps(filters).replace("@", name))
    more = {"ignore_server_ids": found.pop("servers", [])}
    return Source.model_validate(
        {**source.model_dump(exclude={"filters"}), "filters": {"hash_key": KEY, **found}, **more}
    )


def lacking(source: Source, before: dict[str, Any], now: dict[str, Any], *accepted: str) -> str:
    """What is said when filters become others; "" where nothing is."""
    old, new = filtered(source, **before), filtered(source, **now)
    name = source.filters.do[0]
    stored = json.loads(json.dumps(capture_of(old)))  # as the control topic has it
    with session(source) as connection:
        try:
            patterns = [one.replace("@", name) for one in accepted]
            change = check_widened(connection, new, Filter(new.filters), stored, patterns)
        except PreflightError as error:
            return str(error).replace(name, "@")
    found = {"joins": change.joined, "left": change.left}
    return "; ".join(f"{what}: {', '.join(map(str, tables))}" for what, tables in found.items() if tables).replace(
        name, "@"
    )


def rule(**fields: Any) -> dict[str, Any]:
    return {"do": ["@"], "tables": [{"match": ["@.t"], **fields}]}


def ruled(**fields: Any) -> dict[str, Any]:
    return {"do": ["@"], "tables": [{"match": ["@.u"], **fields}]}


WHOLE = {"do": ["@"]}
HASHED = rule(mask={"b": {"hash": 16}})


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (
            {"do": ["@.t"]},
            {**WHOLE, "tables": [{"match": ["@.u"], "actions": ["insert"]}]},
            "@.u (it was not captured, and no load can bring its rows: a load begins with the table's definition",
        ),
        (
            {"do": ["@.t"]},
            {**WHOLE, "tables": [{"match": ["@.u"], "actions": ["update"]}]},
            "@.u (it was not captured, and no load can bring its rows: source.filters.tables does not publish the rows",
        ),
        (
            {"do": ["@.t"]},
            {**WHOLE, "tables": [{"match": ["@.u"], "actions": ["insert", "ddl"]}]},
            "@.u (it was not captured, and no load can bring its rows: the load would delete the rows",
        ),
        (
            {"do": ["@.t"]},
            {**WHOLE, "tables": [{"match": ["@.u"], "publish_as": "@.t"}]},
            "@.u (it was not captured, and no load can bring its rows: a table that is published under the name of",
        ),
        (rule(actions=["update", "delete", "ddl"]), WHOLE, "@.t (without insert)"),
        (rule(actions=["insert", "update", "ddl"]), WHOLE, "@.t (deletes were not published)"),
        (rule(drop=["a"]), WHOLE, "@.t (of columns that were dropped or masked: a)"),
        (rule(drop=["a", "b"]), rule(drop=["b"]), "@.t (of columns that were dropped or masked: a)"),
        (HASHED, WHOLE, "@.t (of columns that were dropped or masked: b)"),
        (HASHED, rule(mask={"b": {"hash": 20}}), "@.t (of columns that were dropped or masked: b)"),
        (HASHED, {**HASHED, "hash_key": KEY[::-1]}, "@.t (of columns that were dropped or masked: b)"),
        (rule(zero_dates=["d"]), WHOLE, "@.t (of columns whose zero dates were published as NULL: d)"),
        (rule(publish_as="@.other"), WHOLE, "@.t (it was published as @.other)"),
        ({**WHOLE, "servers": [5, 6]}, {**WHOLE, "servers": [6]}, "server_id=5 (its changes were ignored"),
    ],
)
def test_newly_captured_tables_with_rows_are_named(
    source: Source, before: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    told = lacking(source, before, now)
    assert said in told
    assert "@.bare" not in told
    what = said.partition(" ")[0]
    assert f"--accept-partial {what}" in told
    assert lacking(source, before, now, what) in ("", "joins: @.bare")
    assert lacking(source, before, now, "no.such") == told


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"do": ["@.t"]}, WHOLE),
        ({"do": ["@.t"]}, {"do": ["@.t", "@.u"]}),
        ({"do": ["@"], "ignore": ["@.u", "*.temp"]}, {"do": ["@"], "ignore": ["*.temp"]}),
    ],
)
def test_newly_captured_tables_join_with_rows_or_without(
    source: Source, before: dict[str, Any], now: dict[str, Any]
) -> None:
    joined = lacking(source, before, now).removeprefix("joins: ").split(", ")
    assert "@.u" in joined
    assert lacking(source, before, now, "@.u").removeprefix("joins: ").split(", ") in ([""], ["@.bare"])


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (WHOLE, WHOLE),
        (WHOLE, {"do": ["@.*"]}),
        (WHOLE, rule(drop=["a"], mask={"b": {"fixed": None}}, zero_dates=["d"])),
        (WHOLE, rule(actions=["insert"])),
        (rule(actions=["insert", "update", "delete"]), WHOLE),  # definitions alone
        (HASHED, HASHED),
        (rule(drop=["no_such"]), WHOLE),
        (rule(mask={"b": {"hash": 16}}), rule(drop=["b"])),
        ({**WHOLE, "servers": [5]}, {**WHOLE, "servers": [5, 6]}),
    ],
)
def test_narrower_or_equal_filter_is_accepted(source: Source, before: dict[str, Any], now: dict[str, Any]) -> None:
    assert lacking(source, before, now) == ""


@pytest.mark.parametrize(
    ("now", "left"),
    [({"do": ["@.t"]}, "left: @.bare, @.u"), ({"do": ["@"], "ignore": ["@.u"]}, "left: @.u")],
)
def test_tables_that_are_no_longer_captured_are_named(source: Source, now: dict[str, Any], left: str) -> None:
    assert lacking(source, WHOLE, now) == left


def test_filter_that_captures_nothing_any_more_is_refused(source: Source) -> None:
    assert "captures no table of the source any more" in lacking(source, WHOLE, {"do": ["@_typo"]})
    assert lacking(source, WHOLE, {"do": ["@_typo"]}, "*") == ""


def test_user_that_cannot_see_the_tables_is_refused(source: Source, mysql_server: SqlServer) -> None:
    name = source.filters.do[0]
    with a_user(mysql_server, f"SELECT ON {name}.t", do=(name,)) as blind, session(blind) as connection:
        seen = f"`{name}`.*"
        with pytest.raises(PreflightError) as told:
            check_widened(connection, blind, Filter(blind.filters), capture_of(filtered(source, do=["@.t"])), ())
        assert f"GRANT SELECT ON {seen}" in told.value.hint


def test_log_without_its_capture_record_is_refused(source: Source) -> None:
    with session(source) as connection, pytest.raises(PreflightError) as told:
        check_widened(connection, source, Filter(source.filters), None, ())
    assert "--accept-partial" in told.value.hint


def test_tables_of_a_wider_filter_are_loaded_unless_they_may_be_partial(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    bench.make_table()
    at = bench.service
    bench.sql(f"USE {at}; CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (1), (2);")
    bench.sql(f"CREATE TABLE {at}.later (id INT PRIMARY KEY)")
    narrow = {"THL_SOURCE__FILTERS__DO": json.dumps([f"{at}.t"])}
    with bench.start(**narrow) as producing:
        assert producing.loaded().stop() == 0
    bench.sql(f"DELETE FROM {at}.u WHERE id = 2; INSERT INTO {at}.u VALUES (3)")  # the log has this without the rest
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
        joined = re.search(r"tables join: their loads begin service=\S+ tables=(.*)", producing.text)
        assert joined and sorted(re.findall(r"\.(\w+)", joined[1])) == ["later", "u"]
    copies = replayed(bench)
    assert copies.of("u") == on_source(bench, "u") == [(1,), (3,)]
    with LogReader(bench.config) as log:
        control = log.control()
    assert [epoch.epoch for epoch in control.epochs] == [1, 2]
    assert control.load_requests[TableName(at, "u")].asked_by == "source.filters"
    for again in ({}, narrow):
        with bench.start(**again) as producing:
            assert producing.online().stop() == 0
            assert "join" not in producing.text
    bench.sql(f"DELETE FROM {at}.u; ALTER TABLE {at}.u ADD v INT")  # not captured, and targets have its rows
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    assert replayed(bench).of("u") == []
    with bench.start(**narrow) as producing:
        assert producing.online().stop() == 0
    with bench.start("--accept-partial", f"{at}.u") as producing:
        assert producing.online().stop() == 0
        assert "the log continues with partial tables" in producing.text


def test_tables_do_not_join_while_xa_transactions_are_prepared(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    bench.make_table()
    at = bench.service
    bench.sql(f"USE {at}; CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (1)")
    narrow = {"THL_SOURCE__FILTERS__DO": json.dumps([f"{at}.t"])}
    with bench.start(**narrow) as producing:
        producing.loaded()
        bench.sql(
            f"USE {at}; XA START 'w'; INSERT INTO u VALUES (2); INSERT INTO t (v) VALUES ('x');"
            "XA END 'w'; XA PREPARE 'w'"
        )
        until(lambda: pending(bench) != [])
        assert producing.stop() == 0
    try:
        with bench.start() as producing:
            assert producing.ended() == PreflightError.exit_code
            assert "tables join while XA transactions are prepared" in producing.text
            assert f"tables={at}.u" in producing.text
    finally:
        bench.sql("XA COMMIT 'w'")
    with bench.start(**narrow) as producing:
        until(lambda: pending(bench) == [])
        assert producing.stop() == 0
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    assert replayed(bench).of("u") == [(1,), (2,)]
