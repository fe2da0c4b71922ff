"""Rules for tables, on a real server: one producer, one log, and a target at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.publish.reading import LogReader
from connector.sandbox.environment import Broker, SqlServer
from connector.thl.gtids import lacking
from tests.integration.producing import Bench, finished, fragments, until

IDLE = {"THL_PUBLISH__IDLE_POSITION_SECONDS": "0.2"}


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(IDLE))
    made.sql(f"CREATE DATABASE {made.service}")
    yield made
    made.sql(f"DROP DATABASE {made.service}")


def ruled(bench: Bench, *rules: dict[str, Any]) -> str:
    """Rules whose tables are of the bench's schema."""
    return json.dumps([{**rule, "match": [f"{bench.service}.{name}" for name in rule["match"]]} for rule in rules])


def changes(bench: Bench, *, load: bool = False) -> list[tuple[str, ...]]:
    """What the log holds of the initial load, or behind it: in order, the definitions and the rows."""
    found: list[tuple[str, ...]] = []
    for event in finished(fragments(bench.config)):
        for part in event:
            if bool(part["metadata"].get("snapshot")) is not load:
                continue
            for change in part["changes"]:
                if "sql" in change:
                    found.append((change["sql"],))
                    continue
                for row in change["rows"]:
                    found.append((change["table"], change["action"], str(row["before"]), str(row["after"])))
    return found


def everything_is_passed(bench: Bench) -> bool:
    with LogReader(bench.config) as reader:
        position = reader.position()
    executed = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].replace("\\n", "")
    return position is not None and not lacking(executed, position.gtid_set or "")


def test_actions(bench: Bench) -> None:
    """Some actions of some tables: a transaction of which nothing is left takes no seqno, and the position goes on."""
    db = bench.service
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = ruled(
        bench,
        {"match": ["added"], "actions": ["insert", "ddl"]},
        {"match": ["gone", "defined"], "actions": ["ddl"]},
        {"match": ["quiet"], "actions": ["insert", "update", "delete"]},
    )
    for name in ("added", "gone", "quiet", "whole"):
        bench.sql(f"CREATE TABLE {db}.{name} (id INT PRIMARY KEY, v INT); INSERT INTO {db}.{name} VALUES (1, 1)")
    with bench.start() as first:
        first.loaded()
        bench.sql(f"CREATE TABLE {db}.defined (id INT PRIMARY KEY); INSERT INTO {db}.defined VALUES (1)")
        bench.sql(f"UPDATE {db}.added SET v = 2; DELETE FROM {db}.added; INSERT INTO {db}.added VALUES (2, 2)")
        bench.sql(f"TRUNCATE {db}.added; TRUNCATE {db}.gone; ALTER TABLE {db}.gone ADD w INT")
        bench.sql(f"ALTER TABLE {db}.quiet ADD w INT; UPDATE {db}.quiet SET v = 3; TRUNCATE {db}.quiet")
        bench.sql(f"BEGIN; INSERT INTO {db}.gone VALUES (5, 5, 5); DELETE FROM {db}.whole; COMMIT")
        bench.sql(f"INSERT INTO {db}.gone VALUES (6, 6, 6)")
        until(lambda: everything_is_passed(bench))
        assert first.stop() == 0
    loaded = changes(bench, load=True)
    assert [change for change in loaded if len(change) > 1] == [
        ("added", "insert", "None", "[1, 1]"),
        ("quiet", "insert", "None", "[1, 1]"),
        ("whole", "insert", "None", "[1, 1]"),
    ]
    assert {sql.partition(" (")[0] for sql, *rows in loaded if not rows and "TABLE" in sql} == {
        "CREATE TABLE `added`",
        "CREATE TABLE `gone`",
        "CREATE TABLE `whole`",
    }
    expected = [
        (f"CREATE TABLE {db}.defined (id INT PRIMARY KEY)",),
        ("added", "insert", "None", "[2, 2]"),
        (f"ALTER TABLE {db}.gone ADD w INT",),
        ("quiet", "update", "[1, 1, None]", "[1, 3, None]"),
        (f"TRUNCATE {db}.quiet",),
        ("whole", "delete", "[1, 1]", "None"),
    ]
    assert changes(bench) == expected
    seqnos = [event[0]["seqno"] for event in finished(fragments(bench.config))]
    assert seqnos == list(range(len(seqnos)))

    # The log's last event is one that the next filters leave out: it is not compared, and that is told.
    with bench.start(THL_SOURCE__FILTERS__TABLES=ruled(bench, {"match": ["whole"], "actions": ["ddl"]})) as second:
        second.online()
        assert "not compared with the source: the filters have changed" in second.text
        bench.sql(f"INSERT INTO {db}.whole VALUES (7, 7); INSERT INTO {db}.added VALUES (7, 7)")
        until(lambda: everything_is_passed(bench))
        assert second.stop() == 0
    assert changes(bench)[len(expected) :] == [("added", "insert", "None", "[7, 7]")]
    with bench.start(THL_SOURCE__FILTERS__TABLES=ruled(bench, {"match": ["whole"], "actions": ["ddl"]})) as third:
        third.online()
        assert "not compared" not in third.text
        assert third.stop() == 0
