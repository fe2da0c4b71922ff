"""`thl produce` on a real MariaDB and a real Kafka: initial load, kills, purges, failover, refusals."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.errors import HistoriesDiffer, PreflightError, Purged
from connector.log.gtid.mariadb import DomainPosition
from connector.log.ids import Seqno
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.position import AfterGtids
from connector.mysql.server.connection import connect, session
from connector.mysql.server.dump import open_stream
from connector.mysql.server.source_state import check_available, end_position, is_read, resolve_start, sessions
from connector.sandbox.mariadb import MariaDbServer
from connector.status.source import read_source
from tests.integration.mariadb.test_log import CASES
from tests.support.binlog import changes, images, read_from
from tests.support.grants import granted
from tests.support.loading import a_database, a_user, as_source, checked, take, values
from tests.support.producing import SMALL, Bench, check, finished, fragments, last_seqno, table_of, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.spark import session as spark_session


@dataclass
class MariaBench(Bench):
    """The same on a MariaDB."""

    def insert_many(self, rows: int) -> None:
        """One transaction."""
        self.sql(f"USE {self.service}; INSERT INTO t (v) SELECT concat(repeat('x', 100), seq) FROM seq_1_to_{rows}")


@pytest.fixture
def bench(mariadb_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = MariaBench(mariadb_server, kafka_broker, tmp_path, settings=dict(SMALL))
    result.make_table()
    return result


def test_producer_loads_follows_ends_and_resumes(bench: Bench) -> None:
    with bench.start() as first:
        first.loaded()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        bench.sql(f"SET gtid_domain_id = 7; UPDATE {bench.service}.t SET v = 'changed' WHERE id = 1")
        until(lambda: last_seqno(bench) >= 6)
        assert first.stop() == 0
        assert "stopped after event 6" in first.text
    bench.sql(f"DELETE FROM {bench.service}.t WHERE id = 2")
    with bench.start(THL_SOURCE__ROWS_QUERY_BYTES="99") as second:
        until(lambda: last_seqno(bench) >= 7)
        assert second.stop() == 0
    events = check(bench)
    assert [event[0]["epoch"] for event in events] == [1, 1, 1, 1, 1, 1, 1, 2]
    told = [event[0]["metadata"].get("rows_query.0") for event in events]
    assert told == [None] * 7 + [f"DELETE FROM {bench.service}.t WHERE id = 2"]
    gtids = [event[0]["gtid"] for event in events]
    assert gtids[:5] == [None] * 5
    assert [gtid.split("-")[:2] for gtid in gtids[5:]] == [["0", "2"], ["7", "2"], ["0", "2"]]
    assert int(gtids[7].split("-")[2]) == int(gtids[5].split("-")[2]) + 1


@pytest.mark.parametrize("point", ["produce.mid_event_after_commit", "produce.after_commit"])
def test_producer_killed_in_the_stream_publishes_each_event_once(bench: Bench, point: str) -> None:
    with bench.start(THL_SOURCE__START="now") as first:
        first.online()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 0)
        assert first.stop() == 0
    bench.insert_many(3000)
    with bench.start(THL_CRASH_POINT=point) as killed:
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('fourth')")
        assert killed.ended() == -signal.SIGKILL
    with bench.start() as third:
        third.online()
        until(lambda: last_seqno(bench) >= 2)
        assert third.stop() == 0
    events = finished(fragments(bench.config))
    assert [event[0]["seqno"] for event in events] == [0, 1, 2]
    assert table_of(events) == bench.rows()[2:]  # without the two that were there before


def test_a_server_that_is_killed_is_waited_for(bench: Bench, mariadb_server: SqlServer) -> None:
    with bench.start() as running:
        running.online()
        until(lambda: last_seqno(bench) >= 4)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 5)
        mariadb_server.kill()
        mariadb_server.start()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('fourth')")
        until(lambda: last_seqno(bench) >= 6)
        assert running.stop() == 0
    check(bench)


def test_only_dumps_of_its_server_id_count_as_the_producer(bench: Bench) -> None:
    source = bench.config.source
    other = source.model_copy(update={"server_id": source.server_id + 1})
    with closing(connect(source)) as connection:
        end = end_position(connection)
        assert not is_read(connection, source.server_id)
        with closing(open_stream(other, end)):
            assert not is_read(connection, source.server_id)
            with closing(open_stream(source, end)):
                assert is_read(connection, source.server_id)
                with closing(open_stream(source, end)):  # the server ends the older one
                    until(lambda: [row["Command"] for row in sessions(connection)].count("Binlog Dump") == 2)
                    assert is_read(connection, source.server_id)
        until(lambda: not is_read(connection, source.server_id))


@pytest.mark.parametrize("start", ["snapshot", "now"])
def test_columns_without_names_are_followed(bench: Bench, start: str) -> None:
    """NO_LOG, MariaDB's default; killed between a definition and its rows."""
    bench.sql(
        f"SET GLOBAL binlog_row_metadata = NO_LOG; CREATE TABLE {bench.service}.n (id int unsigned PRIMARY KEY, "
        "a bigint unsigned, b varchar(9) character set latin1, c varchar(9), e enum('x', 'y'), u uuid, j json)"
    )
    try:
        with bench.start(THL_SOURCE__START=start) as first:
            first.online()
            bench.sql(f"INSERT INTO {bench.service}.n (id, a, b) VALUES (4000000000, 18446744073709551615, '\u00e9')")
            until(lambda: named(bench) != [])
            first.process.kill()
            first.ended()
        bench.sql(
            f"USE {bench.service}; ALTER TABLE n CHANGE c b2 varchar(9) AFTER id, ADD COLUMN IF NOT EXISTS a int; "
            "INSERT INTO n (id, b2, e, j) VALUES (2, '\u20ac', 'y', '[1]'); RENAME TABLE n TO m; "
            "SET SESSION binlog_alter_two_phase = ON; ALTER TABLE m DROP COLUMN a; DELETE FROM m WHERE id = 2"
        )
        with bench.start() as second:
            until(lambda: len(named(bench)) == 3)
            assert second.stop() == 0
    finally:
        bench.sql("SET GLOBAL binlog_row_metadata = FULL")
    row = dict.fromkeys(("id", "a", "b", "c", "e", "u", "j"))
    two = {"id": 2, "b2": "\u20ac", "a": None, "b": None, "e": "y", "u": None, "j": "[1]"}
    assert named(bench) == [
        row | {"id": 4000000000, "a": "18446744073709551615", "b": "\u00e9"},
        two,
        {name: value for name, value in two.items() if name != "a"},
    ]
    assert [list(found) for found in named(bench)][1:] == [list(two), [name for name in two if name != "a"]]


def named(bench: Bench) -> list[dict[str, Any]]:
    """The rows of tables m and n in the log, by the names of their columns."""
    return [
        dict(zip([column["name"] for column in change["columns"]], row["after"] or row["before"], strict=True))
        for event in finished(fragments(bench.config))
        for change in event[0]["changes"]
        if change.get("table") in ("m", "n")
        for row in change.get("rows", ())
    ]


def purge(server: SqlServer) -> None:
    """Purge all but a new file; repeat, because a file that a dump connection still reads is kept."""
    server.run_sql("FLUSH BINARY LOGS")
    newest = server.run_sql("SHOW MASTER STATUS").splitlines()[1].split("\t")[0]

    def gone() -> bool:
        server.run_sql(f"PURGE BINARY LOGS TO '{newest}'")
        return server.run_sql("SHOW BINARY LOGS").splitlines()[1].split("\t")[0] == newest

    until(gone)


def test_purged_transactions_are_refused(bench: Bench) -> None:
    with bench.start() as first:
        first.loaded()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 5)
        assert first.stop() == 0
    purge(bench.mysql)
    with bench.start() as refused:  # nothing is lost, but a server that was reset would look the same
        assert refused.ended() == 8
        assert "the source has purged the file that was read last" in refused.text
    bench.settings["THL_SOURCE__ACCEPT_GTIDS_ALONE"] = "true"
    with bench.start() as second:  # what it has published is all that was purged
        second.online()
        assert "not compared" in second.text
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('fourth')")
        until(lambda: last_seqno(bench) >= 6)
        assert second.stop() == 0
    check(bench)
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('fifth')")
    purge(bench.mysql)
    with bench.start() as third:
        assert third.ended() != 0
        assert "purged_up_to=0-2-" in third.text


def test_a_server_that_lost_its_log_is_refused(bench: Bench) -> None:
    with bench.start() as first:
        first.loaded()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 5)
        assert first.stop() == 0
    bench.sql("RESET MASTER")
    with bench.start() as second:
        assert second.ended() != 0
        assert "lost the end of a binary log" in second.text or "lacks" in second.text
    events = finished(fragments(bench.config))
    assert len(events) == 6


@pytest.fixture
def replica(mariadb_server: SqlServer, tmp_path: Path) -> Iterator[MariaDbServer]:
    settings = {"server_id": "3", "log_slave_updates": "ON", "relay_log": "relay", "log_bin": "other-bin"}
    with MariaDbServer(tmp_path / "replica", settings=settings, die_with_parent=True) as server:
        position = mariadb_server.run_sql("SELECT @@gtid_binlog_pos").splitlines()[1]
        server.run_sql(
            f"SET GLOBAL gtid_slave_pos = '{position}'; CHANGE MASTER TO MASTER_HOST = '{mariadb_server.host}', "
            f"MASTER_PORT = {mariadb_server.port}, MASTER_USER = '{mariadb_server.user}', "
            f"MASTER_PASSWORD = '{mariadb_server.password}', MASTER_SSL_VERIFY_SERVER_CERT = 0, "
            "MASTER_USE_GTID = slave_pos; START SLAVE"
        )
        yield server


def caught_up(replica: MariaDbServer, master: SqlServer) -> None:
    position = master.run_sql("SELECT @@gtid_binlog_pos").splitlines()[1]
    assert replica.run_sql(f"SELECT MASTER_GTID_WAIT('{position}', 60)").splitlines()[1] == "0"


@pytest.mark.long
def test_a_replica_takes_over(
    mariadb_server: SqlServer, replica: MariaDbServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    """Other files and places, the same GTIDs: the last transaction is compared, nothing is missing or twice.

    Until then it is waited for: what it has not taken is not published.
    """
    bench = MariaBench(mariadb_server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.make_table()
    address = f"mysql://{replica.user}:{replica.password}@{replica.host}:{replica.port}"
    with bench.start(THL_PUBLISH__WAIT_FOR=address) as first:
        first.loaded()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 5)
        replica.run_sql("STOP SLAVE")
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('unread')")
        until(lambda: "publication waits for a replica that lags" in first.text)
        assert last_seqno(bench) == 5
        assert first.stop() == 0
    assert last_seqno(bench) == 5
    replica.run_sql("START SLAVE")
    caught_up(replica, mariadb_server)
    replica.run_sql("STOP SLAVE; RESET SLAVE ALL")
    bench.mysql = replica
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('after')")
    with bench.start() as second:
        until(lambda: last_seqno(bench) >= 7)
        assert second.stop() == 0
    with bench.start() as third:  # and from its own place, behind a transaction of another server
        third.online()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('last')")
        until(lambda: last_seqno(bench) >= 8)
        assert third.stop() == 0
    events = check(bench)
    assert [event[0]["gtid"].split("-")[1] for event in events[5:]] == ["2", "2", "3", "3"]
    # The old server has two transactions that the new one's log contradicts.
    mariadb_server.run_sql(f"INSERT INTO {bench.service}.t (v) VALUES ('trapped')")
    bench.mysql = mariadb_server
    with bench.start() as back:
        assert back.ended() != 0
        assert "The source lacks" in back.text
        assert "trapped=0-3-" in back.text


def test_load_and_log_give_equal_rows(mariadb_server: SqlServer) -> None:
    with a_database(mariadb_server, "loads") as (source, database):
        with session(source) as connection:
            start = resolve_start(connection, "now").gtid_set
            with connection.cursor() as cursor:
                cursor.execute(f"USE {database}")
                cursor.execute("SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")
                for number, (_, definition, wanted) in enumerate(CASES):
                    cursor.execute(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
                    for value in wanted:
                        cursor.execute(f"INSERT INTO t{number} (v) VALUES ({value})")
                cursor.execute("CREATE TABLE finished (id int)")
        assert start is not None
        logged: dict[TableLayout, list[Any]] = {}
        for change in changes(read_from(mariadb_server, AfterGtids(start), ended)):
            if isinstance(change, Rows):
                logged.setdefault(change.layout, []).extend(after for _, after in images(change))
        loaded: dict[TableLayout, list[Any]] = {}
        for change in take(source):
            if isinstance(change, Rows):
                loaded.setdefault(change.layout, []).extend(values(change))
        assert len(loaded) == len(CASES)
        wrong = [(layout, loaded.get(layout), rows) for layout, rows in logged.items() if loaded.get(layout) != rows]
        assert not wrong


def ended(found: list[Any]) -> bool:
    return any("finished" in getattr(change, "sql", "") for change in changes(found[-3:]))


def test_tables_whose_select_differs_from_the_log_are_refused(mariadb_server: SqlServer) -> None:
    with a_database(mariadb_server, "others") as (source, database):
        mariadb_server.run_sql(
            f"USE {database}; CREATE TABLE v (id int) WITH SYSTEM VERSIONING; CREATE SEQUENCE s; CREATE TABLE t (a int)"
        )
        with pytest.raises(PreflightError) as refused:
            take(source)
        assert refused.value.where == {"tables": f"{database}.s (sequence), {database}.v (system versioned)"}


def test_missing_prerequisites_are_reported_with_mariadbs_statements(mariadb_server: SqlServer) -> None:
    with a_user(mariadb_server, server_id=2) as source:
        mariadb_server.run_sql(
            "SET GLOBAL binlog_format = MIXED, GLOBAL binlog_row_metadata = NO_LOG, "
            "GLOBAL binlog_row_image = MINIMAL, GLOBAL gtid_strict_mode = OFF, GLOBAL old_mode = ''"
        )
        try:
            with pytest.raises(PreflightError) as refused:
                checked(source, snapshot=True)
        finally:
            mariadb_server.run_sql(
                "SET GLOBAL binlog_format = ROW, GLOBAL binlog_row_metadata = FULL, "
                "GLOBAL binlog_row_image = FULL, GLOBAL gtid_strict_mode = ON, GLOBAL old_mode = DEFAULT"
            )
        problems = refused.value.problems
        assert {
            problem.where["setting"]: problem.where["found"] for problem in problems if "setting" in problem.where
        } == {
            "binlog_format": "MIXED",
            "binlog_row_metadata": "NO_LOG",
            "binlog_row_image": "MINIMAL",
            "gtid_strict_mode": "OFF",
        }
        assert [problem.where["server_id"] for problem in problems if "server_id" in problem.where] == [2]
        hints = "\n".join(problem.hint for problem in problems)
        for hint in (
            "SET GLOBAL binlog_format = 'ROW'",
            "SET GLOBAL binlog_row_metadata = 'FULL'; or SET GLOBAL old_mode = 'UTF8_IS_UTF8MB3'",
            "SET GLOBAL binlog_row_image = 'FULL'",
            "SET GLOBAL gtid_strict_mode = ON",
            "GRANT REPLICATION SLAVE ON *.*",
            "GRANT BINLOG MONITOR ON *.*",
            "GRANT RELOAD ON *.*",
            "GRANT SELECT ON *.*",
        ):
            assert hint in hints
        assert "PERSIST" not in hints
        for grant in granted("mariadb-source.sql", "log", "tables", "loads", schema="*"):
            mariadb_server.run_sql(f"GRANT {grant} TO {source.user}")
        facts = checked(source.model_copy(update={"server_id": 4711}), snapshot=True)
        assert (facts.server_uuid, facts.mariadb, facts.gtids) == ("mariadb-2", True, True)
        view = read_source(source)
        assert (view.read, view.files[-1]) == (False, view.end.file)


def test_start_settings_are_resolved(mariadb_server: SqlServer) -> None:
    mariadb_server.run_sql("CREATE DATABASE IF NOT EXISTS places; DROP DATABASE places")
    with session(as_source(mariadb_server)) as connection:
        now = resolve_start(connection, "now")
        assert now.gtid_set is not None
        check_available(connection, now.stream)
        earliest = resolve_start(connection, "earliest")
        check_available(connection, earliest.stream)
        assert resolve_start(connection, " 0-2-1, 7-2-1 ").gtid_set == "0-2-1,7-2-1"
        check_available(connection, resolve_start(connection, str(now.position)).stream)
        for lacking in ("0-2-99999999", "0-77-1"):
            with pytest.raises(HistoriesDiffer) as unknown:
                check_available(connection, AfterGtids(lacking))
            stream, _, last = lacking.rpartition("-")
            shown = str(unknown.value.where["lacking"])
            assert shown.startswith(f"{stream}-")
            assert shown.endswith(last)
        of_mysql = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
        with pytest.raises(PreflightError) as refused:
            check_available(connection, AfterGtids(of_mysql))
        assert refused.value.where == {"gtids": of_mysql}
    mariadb_server.run_sql("CREATE DATABASE IF NOT EXISTS places; DROP DATABASE places")
    purge(mariadb_server)
    with session(as_source(mariadb_server)) as connection, pytest.raises(Purged) as purged:
        check_available(connection, AfterGtids("0-2-1"))
    assert str(purged.value.where["purged_up_to"]).startswith("0-2-")


def test_a_target_ends_equal_to_the_source(bench: Bench, tmp_path: Path) -> None:
    """From MariaDB's tables and log to SQLite's rows: load, changes of two domains, a definition."""
    bench.settings |= {
        "THL_TARGET__URL": f"sqlite:///{tmp_path / 'target.db'}",
        "THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark"),
    }
    bench.sql(
        f"CREATE TABLE {bench.service}.u (id bigint unsigned PRIMARY KEY, u uuid, c text COMPRESSED, j json, "
        f"d decimal(9,3), at datetime(6) DEFAULT current_timestamp(6)); INSERT INTO {bench.service}.u VALUES "
        "(1, '123e4567-e89b-12d3-a456-426655440000', repeat('z', 200), '{\"a\": 1}', 1.5, '2024-02-29 01:02:03.000004')"
    )
    with bench.start() as running:
        running.online()
        before = last_seqno(bench)
        bench.sql(f"ALTER TABLE {bench.service}.t ADD COLUMN n int DEFAULT 7; UPDATE {bench.service}.t SET n = id")
        bench.sql(f"SET gtid_domain_id = 7; UPDATE {bench.service}.u SET c = 'short', d = -0.001")
        bench.sql(f"DELETE FROM {bench.service}.t WHERE id = 1")
        until(lambda: last_seqno(bench) >= before + 4)
        assert running.stop() == 0
    with spark_session(tmp_path / "spark-session") as spark:
        last = Seqno(last_seqno(bench))
        position = Applier(bench.config, spark, SystemClock(), Event(), until=last).run()
    assert position is not None
    executed = bench.sql("SELECT @@gtid_binlog_pos").splitlines()[1]
    assert position.gtid_set is not None
    assert DomainPosition.parse(executed).issubset(DomainPosition.parse(position.gtid_set))
    with sqlite3.connect(tmp_path / "target.db") as db:
        names = dict(db.execute("SELECT table_name, target_name FROM thl_tables").fetchall())
        assert db.execute(f'SELECT id, v, n FROM "{names["t"]}"').fetchall() == [(2, "second", 2)]
        assert db.execute(f'SELECT id, hex(u), c, j, d, at FROM "{names["u"]}"').fetchall() == [
            (1, "123E4567E89B12D3A456426655440000", "short", '{"a": 1}', "-0.001", "2024-02-29 01:02:03.000004")
        ]
