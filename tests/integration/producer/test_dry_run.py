"""`thl load --dry-run` tells what the load then does, asks for nothing, and names what would be refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from connector.kafka.log_reader import LogReader
from connector.log.ids import Kind
from connector.log.transaction.load import LoadEvent, Part
from tests.integration.producer.test_table_loads import SMALL_ROUNDS, ended, events, newest_request
from tests.support.long import long
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker
from tests.support.written_tables import ROWS, TABLES, asked, fill

CHUNK_ROWS = int(SMALL_ROUNDS["THL_SOURCE__SNAPSHOT__CHUNK_ROWS"])
OTHERS = (
    "CREATE TABLE isam (id INT PRIMARY KEY) ENGINE = MyISAM; INSERT INTO isam VALUES (1);"
    "CREATE TABLE by_float (f DOUBLE PRIMARY KEY); INSERT INTO by_float VALUES (1.5), (2.5);"
    "CREATE TABLE kept (id INT PRIMARY KEY);"
    "CREATE TABLE bad_text (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET euckr);"
    "INSERT INTO bad_text VALUES (1, 'good'), (2, CONVERT(x'6162c9a1' USING euckr));"
)


def shown(bench: Bench, capsys: pytest.CaptureFixture[str], *patterns: str) -> tuple[int, dict[str, Any]]:
    """The exit code of a dry run, and what it prints."""
    capsys.readouterr()
    code = asked(bench, "--dry-run", "--format", "json", *(f"{bench.service}.{pattern}" for pattern in patterns))
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("server", ["mysql_server", *long("mariadb_server")])
def test_load_does_what_its_dry_run_has_told(
    server: str,
    kafka_broker: Broker,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, list(TABLES))
    bench.sql(f"USE {bench.service}; SET sql_mode = ''; {OTHERS} ANALYZE TABLE by_float, bad_text")
    loaded = [*TABLES, "by_float"]
    with bench.start() as producing:
        producing.online()
        code, told = shown(bench, capsys, *loaded)
        assert (code, told["refused"], told["under_way"]) == (0, [], [])
        assert not list(requests(bench))  # nothing was asked for
        assert asked(bench, *(f"{bench.service}.{table}" for table in loaded)) == 0
        until(lambda: ended(bench, *loaded))
        assert producing.stop() == 0, producing.text
    rows, parts = Counter[str](), Counter[tuple[str, Part]]()
    for event in events(bench):
        if event.kind is Kind.LOAD:
            load = LoadEvent.of(event.header.metadata)
            parts[load.table.table, load.part] += 1
            rows[load.table.table] += sum(len(list(getattr(change, "rows", ()))) for change in event.changes)
    tables = {one["table"].partition(".")[2]: one for one in told["tables"]}
    assert set(tables) == set(loaded)
    for name, one in tables.items():
        assert one["rows"] == pytest.approx(rows[name], rel=0.2)
        assert (one["read_mode"] == "whole_table") == (parts[name, Part.WHOLE] == 1)
        if one["read_mode"] != "whole_table":
            assert one["chunks"] == pytest.approx(parts[name, Part.ROWS], rel=0.2)
        assert one["sampled_rows"] == rows[name]  # so few that half a second reads them all
    assert {name: one["divided_by"] for name, one in tables.items()} == {
        "t": ["id"], "text_key": ["id"], "pair": ["a", "b"], "keyless": [], "by_float": [],
    }  # fmt: skip
    assert (tables["keyless"]["read_mode"], tables["by_float"]["read_mode"]) == ("whole_table", "one_chunk")
    assert rows["t"] == ROWS
    assert tables["t"]["chunks"] > 0.8 * ROWS / CHUNK_ROWS
    assert told["rows"] == sum(one["rows"] for one in told["tables"])
    assert told["seconds"] == pytest.approx(sum(one["seconds"] for one in told["tables"]))
    assert "read and decoded" in told["based_on"]


def requests(bench: Bench) -> list[str]:
    with LogReader(bench.config, high_watermark=True) as reader:
        return [request.load for request in reader.control().load_requests.values()]


@pytest.mark.parametrize("server", ["mysql_server", "mariadb_server"])
def test_what_would_be_refused_or_stop_is_told_with_the_reason_that_the_load_has(
    server: str,
    kafka_broker: Broker,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = json.dumps(
        [{"match": [f"{bench.service}.kept"], "actions": ["insert", "update", "ddl"]}]
    )
    fill(bench, ["t"])
    bench.sql(f"USE {bench.service}; SET sql_mode = ''; {OTHERS}")
    assert asked(bench, "--dry-run", f"{bench.service}.t") == 3  # there is no log
    with bench.start() as producing:
        producing.online()
        code, told = shown(bench, capsys, "t", "isam", "kept", "none*", "bad_text")
        assert code == 3
        why = {one["table"].partition(".")[2]: one["why"] for one in told["refused"]}
        assert set(why) == {"isam", "kept", "none*"}
        assert "the source has no captured table" in why["none*"]
        assert "add delete to the actions" in why["kept"]
        assert {one["table"].partition(".")[2]: one["stops"] != "" for one in told["tables"]} == {
            "t": False,
            "bad_text": True,
        }
        assert asked(bench, "--dry-run", f"{bench.service}.bad_text") == 6
        assert not requests(bench)
        for table in ("kept", "isam", "none*"):  # the command itself
            capsys.readouterr()
            assert asked(bench, f"{bench.service}.{table}") == 3
            assert why[table].partition(" [")[0] in capsys.readouterr().err.replace("\n  hint", "")
        assert asked(bench, f"{bench.service}.bad_text") == 0
        until(lambda: load_of(bench, capsys, "bad_text")["state"] == "stopped")
        stops = {one["table"].partition(".")[2]: one["stops"] for one in told["tables"]}
        assert stops["bad_text"].partition(" [")[0] in load_of(bench, capsys, "bad_text")["why"]
        assert producing.stop() == 0, producing.text


def load_of(bench: Bench, capsys: pytest.CaptureFixture[str], table: str) -> dict[str, Any]:
    """The newest load of a table, as --status shows it."""
    capsys.readouterr()
    assert asked(bench, "--status", "--format", "json", f"{bench.service}.{table}") == 0
    (found,) = json.loads(capsys.readouterr().out)
    return dict(found)


def test_dry_run_tells_of_a_load_under_way_and_replaces_it_by_nothing(
    mysql_server: Any, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, ["t"])
    with bench.start() as producing:
        producing.online()
        assert producing.stop() == 0
    assert asked(bench, f"{bench.service}.t") == 0
    before = newest_request(bench, "t")
    code, told = shown(bench, capsys, "t")
    assert (code, told["under_way"]) == (0, [f"{bench.service}.t"])
    assert newest_request(bench, "t") == before
    bench.settings["THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND"] = "100"
    assert asked(bench, "--dry-run", f"{bench.service}.t") == 0
    printed = capsys.readouterr().out
    assert "by source.snapshot.max_rows_per_second (100)" in printed
    assert "in about 6" in printed  # 60 chunks of 50 rows, by the server's estimate
    assert f"Under way, and to begin again: {bench.service}.t" in printed
