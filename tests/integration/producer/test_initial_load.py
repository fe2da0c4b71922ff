"""An initial load under load: it ends equal to the source, goes on where it was killed, and follows DDL."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from connector.log.ids import Kind
from connector.log.transaction.load import LoadEvent, Part
from connector.mysql.server.connection import query
from tests.integration.producer.test_table_loads import SMALL_ROUNDS, events, go_on, replayed, stopped, wait_for_log
from tests.support.long import long
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import TABLES, asked, connection_to, fill, on_source, writing

INITIAL = {**SMALL_ROUNDS, "THL_SOURCE__START": "snapshot"}


def parts(bench: Bench) -> list[tuple[str, str]]:
    """The edges of loads, with the names of their tables, and of the initial load."""
    found = []
    for event in events(bench):
        if event.kind is Kind.LOAD:
            load = LoadEvent.of(event.header.metadata)
            if load.part is not Part.ROWS:
                found.append((load.part.value, load.table.table))
        elif "snapshot" in event.header.metadata:
            found.append((event.header.metadata["snapshot"], ""))
    return found


def ddl_waits(bench: Bench) -> bool:
    """True while DDL waits for a session that reads the table."""
    waits = "SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'"
    with connection_to(bench) as connection:
        return bool(query(connection, waits))


@pytest.mark.parametrize("server", ["mysql_server", *long("mariadb_server")])
def test_initial_load_under_load_is_equal_to_the_source(
    server: str, kafka_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path, settings=dict(INITIAL))
    fill(bench, list(TABLES))
    with writing(bench, list(TABLES)), bench.start() as producing:
        producing.loaded()
    with bench.start() as producing:
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    found = parts(bench)
    assert found[0] == ("begin", "")
    assert sorted(found[1:5]) == [("begin", table) for table in sorted(TABLES)]
    assert found[5] == ("end", "")
    copies = replayed(bench)
    for table in TABLES:
        assert copies.of(table) == on_source(bench, table)


@pytest.mark.parametrize(
    ("point", "begun"),
    [
        ("produce.snapshot_end_before_commit", 2),
        *long(
            ("load.mid_round:3", 1),
            ("produce.snapshot_before_commit:2", 2),
            ("produce.snapshot_end_after_commit", 1),
            ("load.before_rows:1", 1),
        ),
    ],
)
def test_killed_initial_load_goes_on_after_its_beginning(
    point: str, begun: int, mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(INITIAL))
    bench.settings["THL_PUBLISH__COMMIT_BYTES"] = "100"
    fill(bench, ["t", "pair"])
    with writing(bench, ["t", "pair"]):
        with bench.start(THL_CRASH_POINT=point) as producing:
            assert producing.ended() == -signal.SIGKILL, producing.text
        with bench.start() as producing:
            producing.loaded()
    with bench.start() as producing:
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    assert parts(bench).count(("begin", "")) == begun
    copies = replayed(bench)
    for table in ("t", "pair"):
        assert copies.of(table) == on_source(bench, table)
    again = sum(count > 1 for count in copies.read.values())
    assert again <= 500  # the rows of one round


def test_tables_renamed_swapped_and_dropped_while_they_are_loaded_are_loaded_under_their_new_names(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(INITIAL))
    fill(bench, ["t"])
    bench.sql(
        f"USE {bench.service}; CREATE TABLE moved LIKE t; CREATE TABLE gone LIKE t; CREATE TABLE swapped LIKE t;"
        "INSERT INTO moved SELECT * FROM t; INSERT INTO gone SELECT * FROM t; INSERT INTO swapped SELECT * FROM t"
    )
    with bench.start(THL_STOP_POINT="load.mid_round:2") as producing:
        until(lambda: stopped(producing))
        changes = threading.Thread(
            target=bench.sql,
            args=(
                f"USE {bench.service}; RENAME TABLE moved TO arrived; DROP TABLE gone; CREATE TABLE fresh LIKE swapped;"
                "INSERT INTO fresh SELECT * FROM swapped; RENAME TABLE swapped TO old, fresh TO swapped",
            ),
        )
        changes.start()
        until(lambda: ddl_waits(bench))  # for the end of the round
        go_on(producing)
        changes.join()
        producing.loaded()
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    copies = replayed(bench)
    for table in ("t", "arrived", "old", "swapped"):
        assert copies.of(table) == on_source(bench, table)
    assert copies.loading == {"moved", "gone"}  # which are no more
    ends = Counter(table for part, table in parts(bench) if part == "end")
    assert (ends["arrived"], ends["old"], ends["t"], ends["moved"], ends["gone"]) == (1, 1, 1, 0, 0)
    assert "ERROR" not in producing.text


def test_tables_published_under_one_name_are_one_load_and_those_whose_rows_are_kept_none(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(INITIAL))
    at = bench.service
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = json.dumps(
        [
            {"match": [f"{at}.one"], "publish_as": f"{at}.both", "actions": ["insert", "update", "delete"]},
            {"match": [f"{at}.two"], "publish_as": f"{at}.both"},
            {"match": [f"{at}.kept"], "actions": ["insert", "update", "ddl"]},
            {"match": [f"{at}.plain"], "actions": ["insert", "update", "delete"]},
        ]
    )
    bench.sql(
        f"CREATE DATABASE {at}; USE {at}; CREATE TABLE one (id INT PRIMARY KEY, v VARCHAR(60));"
        "CREATE TABLE two LIKE one;"
        "CREATE TABLE kept LIKE one; CREATE TABLE plain LIKE one; INSERT INTO one"
        " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT i, 'a' FROM n;"
        "INSERT INTO two SELECT id + 1000, 'b' FROM one; INSERT INTO kept SELECT * FROM one"
    )
    both = sorted(on_source(bench, "one") + on_source(bench, "two"), key=repr)
    with bench.start() as producing:
        producing.loaded()
        wait_for_log(bench)
        assert replayed(bench).of("both") == both
        assert asked(bench, f"{at}.one", "--wait") == 0
        assert asked(bench, f"{at}.kept") == asked(bench, f"{at}.plain") == 3
        assert producing.stop() == 0, producing.text
    assert replayed(bench).of("both") == both
    edges = Counter(part for part, table in parts(bench) if table == "both")
    assert edges == {"begin": 2, "end": 2}
    told = capsys.readouterr()
    assert told.out.count("asked to load") == 2
    assert "would delete the rows" in told.err
    assert "add ddl to its actions" in told.err
