"""`thl load` while the producer publishes: what a reader has from a load's beginning to its end equals the source."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from connector.consume.consumer import Consumer
from connector.consume.event import Event
from connector.kafka.log_reader import LogReader
from connector.log.epochs.loads import LoadRequest, LoadState
from connector.log.ids import Action, Kind
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.mysql.server.connection import query
from connector.mysql.server.snapshot_point import LOCK_SECONDS
from connector.mysql.server.source_state import sessions
from tests.support.clock import PATIENCE
from tests.support.long import long
from tests.support.producing import Bench, Producing, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import TABLES, asked, connection_to, fill, on_source, writing

SMALL_ROUNDS = {
    "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "50",
    "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.005",
    "THL_SOURCE__SNAPSHOT__CONNECTIONS": "2",
    "THL_SOURCE__START": "now",
    "THL_SOURCE__DUMP_HEARTBEAT": "0.5",
}


class Copies:
    """What a reader has of the tables that were loaded, from the beginning of each load on."""

    def __init__(self) -> None:
        self.tables: dict[str, Counter[tuple[Any, ...]] | dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.loading: set[str] = set()
        self.read = Counter[tuple[str, Any]]()

    def take(self, event: Any) -> None:
        load = LoadEvent.of(event.header.metadata) if event.kind is Kind.LOAD else None
        if load is not None and load.part is Part.BEGIN:
            self.tables[load.table.table] = {}
            self.loading.add(load.table.table)
        if load is not None and load.part is Part.WHOLE:
            self.tables[load.table.table] = Counter()
        for change in event.changes:
            if hasattr(change, "sql") or change.table not in self.tables:
                continue
            self._change(change)
        if load is not None and load.part is Part.END:
            self.loading.remove(load.table.table)

    def _change(self, change: Any) -> None:
        rows = self.tables[change.table]
        strict = change.table not in self.loading
        for row in change.rows:
            if isinstance(rows, Counter):
                if row.before is not None:
                    rows[tuple(row.before.values())] -= 1
                if row.after is not None:
                    rows[tuple(row.after.values())] += 1
                continue
            if not change.key_columns:
                continue  # a table without a key, whose rows are still to come
            if row.before is not None:
                gone = rows.pop(tuple(row.before[name] for name in change.key_columns), None)
                assert gone is not None or not strict
            if row.after is not None:
                key = tuple(row.after[name] for name in change.key_columns)
                if change.action is Action.READ:
                    self.read[change.table, key] += 1
                elif change.action is Action.INSERT:
                    assert key not in rows or not strict
                rows[key] = tuple(row.after.values())

    def of(self, table: str) -> list[tuple[Any, ...]]:
        rows = self.tables[table]
        assert table not in self.loading
        found = rows.elements() if isinstance(rows, Counter) else rows.values()
        return sorted(found, key=repr)


def replayed(bench: Bench) -> Copies:
    """Read the log to its end."""
    copies = Copies()
    for event in events(bench):
        copies.take(event)
    return copies


def events(bench: Bench) -> Iterator[Event]:
    with Consumer(bench.kafka.bootstrap, bench.service, until_end=True) as consumer:
        yield from consumer


def wait_for_log(bench: Bench) -> None:
    """Wait until the log has what the source has."""
    bench.sql(f"CREATE TABLE {bench.service}.last_one (id INT PRIMARY KEY)")

    def has_it() -> bool:
        return any("last_one" in getattr(change, "sql", "") for event in events(bench) for change in event.changes)

    until(has_it)


@pytest.mark.parametrize(
    ("server", "lock"), [("mysql_server", "none"), *long(("mysql_server", "brief"), ("mariadb_server", "none"))]
)
def test_tables_loaded_under_load_are_equal_from_their_loads_on(
    server: str, lock: str, kafka_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path)
    bench.settings = {**SMALL_ROUNDS, "THL_SOURCE__SNAPSHOT__LOCK": lock}
    if lock == "brief":  # which writers keep from a round for up to a second
        bench.settings["THL_SOURCE__SNAPSHOT__CHUNK_ROWS"] = "500"
    fill(bench, list(TABLES))
    with bench.start() as producing:
        producing.online()
        with writing(bench, list(TABLES)):
            assert asked(bench, f"{bench.service}.*", "--wait") == 0, producing.text
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    copies = replayed(bench)
    for table in TABLES:
        assert copies.of(table) == on_source(bench, table)
    assert producing.text.count("published a round of loads") > 3


def ended(bench: Bench, *tables: str) -> bool:
    """Whether the newest loads of tables have ended."""
    with LogReader(bench.config, high_watermark=False) as reader:
        loads = reader.control().loads
    return all(
        state is not None and state.state is LoadState.ENDED
        for state in (loads.get(TableName(bench.service, table)) for table in tables)
    )


def newest_request(bench: Bench, table: str) -> LoadRequest:
    with LogReader(bench.config, high_watermark=False) as reader:
        return reader.control().load_requests[TableName(bench.service, table)]


def stopped(producing: Producing) -> bool:
    """True while the process is stopped at a failpoint."""
    state = Path(f"/proc/{producing.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T" or producing.process.poll() is not None


def go_on(producing: Producing) -> None:
    producing.process.send_signal(signal.SIGCONT)


CHANGES = (
    "UPDATE t SET v = 'late' WHERE id = 60; DELETE FROM t WHERE id = 61; INSERT INTO t VALUES (900001, 'new', 0);"
    "UPDATE t SET id = 900002 WHERE id = 62; UPDATE t SET id = -4 WHERE id = 63; UPDATE t SET id = 63 WHERE id = 64"
)


@pytest.mark.parametrize(
    ("server", "point"),
    [
        ("mysql_server", "load.before_position:2"),
        *long(("mysql_server", "load.before_position:1"), ("mariadb_server", "load.before_position:2")),
    ],
)
def test_rows_that_change_after_a_rounds_view_are_those_of_the_stream(
    server: str, point: str, kafka_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bench = Bench(
        request.getfixturevalue(server),
        kafka_broker,
        tmp_path,
        settings={**SMALL_ROUNDS, "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.000001"},
    )
    fill(bench, ["t"])
    with bench.start(THL_STOP_POINT=point) as producing:
        producing.online()
        assert asked(bench, f"{bench.service}.t") == 0
        until(lambda: stopped(producing))
        bench.sql(f"USE {bench.service}; {CHANGES}")
        go_on(producing)
        until(lambda: "loaded a table" in producing.text)
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    copies = replayed(bench)
    assert copies.of("t") == on_source(bench, "t")
    assert not copies.read["t", (61,)]


@pytest.mark.parametrize(("server", "lock"), [("mysql_server", "brief"), *long(("mariadb_server", "none"))])
def test_statement_that_keeps_the_lock_from_a_load_does_not_keep_the_load(
    server: str, lock: str, kafka_broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bench = Bench(request.getfixturevalue(server), kafka_broker, tmp_path)
    bench.settings = {**SMALL_ROUNDS, "THL_SOURCE__SNAPSHOT__LOCK": lock}
    fill(bench, ["t"])
    with connection_to(bench) as reader, connection_to(bench) as other, bench.start() as producing:
        producing.online()
        number = query(reader, "SELECT CONNECTION_ID() AS id")[0]["id"]
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(query, reader, f"SELECT SLEEP(1000) FROM {bench.service}.t LIMIT 1")
            until(lambda: any(row["Id"] == number and row["Time"] > LOCK_SECONDS for row in sessions(other)))
            assert asked(bench, f"{bench.service}.t", "--wait") == 0, producing.text
            assert not slow.done()
            query(other, f"KILL {number}")
            assert slow.exception(PATIENCE) is not None
        assert producing.stop() == 0, producing.text
    assert replayed(bench).of("t") == on_source(bench, "t")


def test_ddl_and_a_partial_image_after_a_rounds_view_make_the_round_again(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    settings = {**SMALL_ROUNDS, "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.000001"}
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=settings)
    fill(bench, ["t"])
    with bench.start(THL_STOP_POINT="load.before_position:2") as producing:
        producing.online()
        assert asked(bench, f"{bench.service}.t") == 0
        until(lambda: stopped(producing))
        bench.sql(
            f"USE {bench.service}; SET SESSION binlog_row_image = MINIMAL; UPDATE t SET v = 'minimal' WHERE id = 2000;"
            "CREATE TABLE other (id INT PRIMARY KEY)"
        )
        go_on(producing)
        until(lambda: "loaded a table" in producing.text)
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    (ddl,) = [event.seqno for event in events(bench) if "CREATE TABLE other" in str(list(event.changes))]
    ((seqno, row),) = [
        (event.seqno, row.after)
        for event in events(bench)
        if event.kind is Kind.LOAD
        for change in event.changes
        for row in getattr(change, "rows", ())
        if row.after["id"] == 2000
    ]
    assert seqno > ddl
    assert row["v"] == "minimal"


@pytest.mark.parametrize("point", ["load.mid_round:5", *long("load.before_rows:4", "load.mid_round:1")])
def test_load_whose_producer_is_killed_goes_on_after_the_last_whole_round(
    point: str, mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, ["t", "keyless"])
    with writing(bench, ["t", "keyless"]):
        with bench.start(THL_CRASH_POINT=point) as producing:
            producing.online()
            assert asked(bench, f"{bench.service}.t") == 0
            assert asked(bench, f"{bench.service}.keyless") == 0
            assert producing.ended() == -signal.SIGKILL, producing.text
        with bench.start() as producing:
            until(lambda: ended(bench, "t", "keyless"))
            assert (
                point != "load.mid_round:5"
                or f"begins service={bench.service} table={bench.service}.t " not in producing.text
            )
    with bench.start() as producing:
        producing.online()
        wait_for_log(bench)
        assert producing.stop() == 0, producing.text
    copies = replayed(bench)
    for table in ("t", "keyless"):
        assert copies.of(table) == on_source(bench, table)
    again = sum(count > 1 for count in copies.read.values())
    assert again <= 500  # the rows of one round


def test_table_that_cannot_be_read_stops_its_own_load_alone(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, ["t"])
    bench.sql(
        f"USE {bench.service}; CREATE TABLE isam (id INT PRIMARY KEY); INSERT INTO isam VALUES (1);"
        "CREATE TABLE gone (id INT PRIMARY KEY); SET sql_mode = '';"
        "CREATE TABLE broken (v VARCHAR(9) CHARACTER SET latin1); INSERT INTO broken VALUES ('good');"
        "CREATE TABLE bad_text (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET sjis);"
        "INSERT INTO bad_text VALUES (1, 'good'), (2, _binary x'81FF')"
    )
    with bench.start() as producing:
        assert producing.online().stop() == 0
    assert asked(bench, *(f"{bench.service}.{table}" for table in ("isam", "gone", "bad_text", "broken", "t"))) == 0
    bench.sql(f"DROP TABLE {bench.service}.gone; ALTER TABLE {bench.service}.isam ENGINE = MyISAM")
    with bench.start() as producing:
        until(lambda: producing.text.count("has stopped") + producing.text.count("loaded a table") >= 5)
        assert producing.stop() == 0, producing.text
    capsys.readouterr()
    assert asked(bench, "--status", "--format", "json") == 0
    found = {row["table"].partition(".")[2]: row for row in json.loads(capsys.readouterr().out)}
    assert found["t"]["state"] == found["broken"]["state"] == "ended"
    assert "no transactions" in found["isam"]["why"]
    assert found["gone"]["state"] in {"cancelled", "ended", "stopped"}
    assert replayed_without(bench, "isam", "gone", "bad_text").of("t") == on_source(bench, "t")


def replayed_without(bench: Bench, *tables: str) -> Copies:
    copies = replayed(bench)
    copies.loading -= set(tables)
    return copies


def test_load_is_asked_for_by_captured_tables_alone(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    fill(bench, ["t"])
    assert asked(bench, f"{bench.service}.t") == 3
    assert "there is no log" in capsys.readouterr().err
    with bench.start() as producing:
        producing.online()
        assert producing.stop() == 0
    assert asked(bench, f"{bench.service}.unknown") == 3
    assert "no captured table" in capsys.readouterr().err
    assert asked(bench, f"{bench.service}.t") == 0
    assert asked(bench, "--cancel", f"{bench.service}.t") == 0
    capsys.readouterr()
    assert asked(bench, "--status") == 0
    assert "cancelled" in capsys.readouterr().out
    with ThreadPoolExecutor(1) as pool:  # who waits is told that another request replaced the load
        waiting = pool.submit(asked, bench, f"{bench.service}.t", "--wait")
        until(lambda: not newest_request(bench, "t").cancel)
        assert asked(bench, f"{bench.service}.t") == 0
        assert waiting.result(PATIENCE) == 3
    assert "another load of" in capsys.readouterr().err
    assert asked(bench, "--cancel", f"{bench.service}.t", "--wait") == 0
    with bench.start() as producing:
        producing.online()
        assert producing.stop() == 0
    assert not [event for event in events(bench) if event.kind is Kind.LOAD]
