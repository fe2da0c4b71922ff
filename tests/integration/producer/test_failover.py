"""A source dies before its replica has its last transactions: the log forks; targets that applied them are refused."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from urllib.request import urlopen

import pytest

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.errors import ConfigError, HistoriesDiffer
from connector.log.ids import Seqno
from connector.log.transaction.position import TargetPosition
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.ports import free_port
from connector.sandbox.settings import MYSQL_FAST
from connector.spark.session import SparkRun
from connector.verify import verify
from tests.integration.producer.test_produce import last_seqno
from tests.support.producing import Bench, finished, fragments, table_of, until
from tests.support.proxy import Proxy
from tests.support.servers.environment import Broker
from tests.support.spark import session as spark_session

SMALL = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M"}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[MySqlServer, MySqlServer]]:
    """A source and its replica, by GTID."""
    first = MySqlServer(tmp_path / "first", settings=SMALL, die_with_parent=True)
    second = MySqlServer(tmp_path / "second", settings={**SMALL, "server_id": "2"}, die_with_parent=True)
    with first, second:
        second.run_sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{first.host}', SOURCE_PORT = {first.port}, SOURCE_USER = "
            f"'{first.user}', SOURCE_PASSWORD = '{first.password}', SOURCE_AUTO_POSITION = 1, "
            "GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
        )
        yield first, second


def thl(bench: Bench, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "connector", *arguments],
        env={**os.environ, **bench.environment},
        capture_output=True,
        text=True,
        check=False,
    )


def apply(bench: Bench, spark: SparkRun, target: Path) -> TargetPosition | None:
    """Up to the log's last event."""
    config = at(bench, target)
    return Applier(config, spark, SystemClock(), Event(), until=Seqno(last_seqno(bench))).run()


def at(bench: Bench, target: Path) -> Config:
    return bench.config.model_copy(update={"target": Target(url=f"sqlite:///{target}")})


def rows_of(target: Path) -> list[tuple[int, str]]:
    with sqlite3.connect(target) as db:
        ((name,),) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 't'").fetchall()
        return db.execute(f'SELECT id, v FROM "{name}" ORDER BY id').fetchall()


def waits_for(bench: Bench, replica: MySqlServer) -> dict[str, str]:
    return {
        "THL_SOURCE__FILTERS__DO": bench.service,
        "THL_PUBLISH__WAIT_FOR": f"mysql://{replica.user}:{replica.password}@{replica.host}:{replica.port}",
    }


def lagging(port: int, replica: MySqlServer) -> Callable[[], bool]:
    """Return whether a producer says that publication waits for a replica."""
    line = f'replica="{replica.host}:{replica.port}"'

    def found() -> bool:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            said = page.read().decode()
        (since,) = [
            float(one.rpartition(" ")[2])
            for one in said.splitlines()
            if one.startswith("thl_replica_lagging_since_seconds{") and line in one
        ]
        return since > 0

    return found


def test_publication_follows_the_replica_and_a_lost_source_takes_what_waits_with_it(
    pair: tuple[MySqlServer, MySqlServer], kafka_broker: Broker, tmp_path: Path
) -> None:
    """The producer runs on: its source is lost while a transaction waits, and the replica takes its address."""
    first, second = pair
    port = free_port()
    first.run_sql("CREATE USER capture IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO capture")
    with Proxy((first.host, first.port)) as address:
        bench = Bench(first, kafka_broker, tmp_path)
        bench.settings |= waits_for(bench, second) | {
            "THL_SOURCE__HOST": "127.0.0.1",
            "THL_SOURCE__PORT": str(address.port),
            "THL_SOURCE__USER": "capture",
            "THL_SOURCE__PASSWORD": "secret",
            "THL_SOURCE__START": "now",
            "THL_METRICS__PORT": str(port),
        }
        bench.make_table()
        with bench.start() as running:
            running.online()
            waits = lagging(port, second)
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
            until(lambda: last_seqno(bench) == 0)
            assert not waits()
            second.run_sql("STOP REPLICA SQL_THREAD")  # it receives, and does not execute
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('waits')")
            until(waits)
            assert last_seqno(bench) == 0
            second.run_sql("START REPLICA SQL_THREAD")
            until(lambda: last_seqno(bench) == 1)
            assert not waits()
            published = finished(fragments(bench.config))[1][0]["gtid"]
            assert second.run_sql(f"SELECT GTID_SUBSET('{published}', @@gtid_executed)").splitlines()[1] == "1"

            second.run_sql("STOP REPLICA")
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('lost')")
            until(waits)
            first.kill()
            address.reset()
            second.run_sql("RESET REPLICA ALL")
            bench.mysql, address.server = second, (second.host, second.port)
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('new line')")
            until(lambda: last_seqno(bench) == 2)
            assert "transactions that waited for replicas are dropped" in running.text
            assert running.stop() == 0
    rows = table_of(finished(fragments(bench.config)))
    assert [value for _, value in rows] == ["third", "waits", "new line"]
    assert rows == bench.rows()[2:]


def test_log_continues_without_trapped_transactions(
    pair: tuple[MySqlServer, MySqlServer], kafka_broker: Broker, tmp_path: Path
) -> None:
    first, second = pair
    bench = Bench(first, kafka_broker, tmp_path, settings={"THL_APPLY__CHECKPOINT_DIR": str(tmp_path / "spark")})
    bench.make_table()
    waiting = Bench(first, kafka_broker, tmp_path, settings=waits_for(bench, second))
    with bench.start() as producer, waiting.start() as careful:
        producer.loaded()  # what is written before is in the load, or behind it
        careful.loaded()
        loaded = last_seqno(bench)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        executed = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1]
        second.run_sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60); STOP REPLICA IO_THREAD")
        before = loaded + 1
        until(lambda: last_seqno(bench) == before)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('lost'), ('lost, too')")
        bench.sql(f"UPDATE {bench.service}.t SET v = 'lost' WHERE id = 1")
        bench.sql(f"DELETE FROM {bench.service}.t WHERE id = 2")
        until(lambda: last_seqno(bench) == before + 3)
        assert producer.stop() == 0
        until(lambda: "publication waits for a replica that lags" in careful.text)
        told = json.loads(thl(waiting, "status", "--format", "json").stdout)
        assert told["producer"]["waitsFor"] == [f"{second.host}:{second.port} lacks 3 transactions"]
        assert told["producer"]["maximumStoredSeqNo"] == before
        assert careful.stop() == 0
        assert "is unfinished" not in careful.text
    assert [event[0]["seqno"] for event in finished(fragments(waiting.config))] == list(range(before + 1))
    nothing = thl(bench, "trapped")
    assert (nothing.returncode, nothing.stdout.strip()) == (
        0,
        "no trapped events: the source has every transaction of the log",
    )
    misled, behind, fresh = (tmp_path / name for name in ("misled.db", "behind.db", "fresh.db"))
    with spark_session(tmp_path / "session") as spark:
        assert Applier(at(bench, behind), spark, SystemClock(), Event(), until=Seqno(before)).run()
        assert apply(bench, spark, misled)
        lost = [row for row in rows_of(misled) if row[1].startswith("lost")]
        assert len(lost) == 3

        first.kill()
        second.run_sql("STOP REPLICA; RESET REPLICA ALL")
        bench.mysql = waiting.mysql = second
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('new line')")

        assert thl(waiting, "trapped").stdout.startswith("no trapped events")
        with waiting.start() as moved:  # now it waits for the source itself, which has all of it
            until(lambda: last_seqno(waiting) == before + 1)
            assert moved.stop() == 0

        with bench.start() as refused:
            assert refused.ended() == HistoriesDiffer.exit_code
            assert "The source lacks 3 transactions" in refused.text
            assert "--accept-trapped" in refused.text
        listed = thl(bench, "trapped")
        assert listed.returncode == HistoriesDiffer.exit_code, listed.stderr
        assert f"seqno {before + 1}, epoch 1: " in listed.stdout
        assert f"{bench.service}.t (2 rows)" in listed.stdout
        told = json.loads(thl(bench, "trapped", "--format", "json").stdout)
        assert [(event["seqno"], event["rows"]) for event in told["events"]] == [
            (before + number, {f"{bench.service}.t": rows}) for number, rows in ((1, 2), (2, 1), (3, 1))
        ]
        assert (told["count"], told["passed"]) == (3, 0)

        file = tmp_path / "a file"
        file.touch()
        with bench.start("--accept-trapped", "--from-files", str(file)) as mixed:
            assert mixed.ended() == ConfigError.exit_code
        with bench.start("--accept-trapped") as accepting:
            accepting.online()
            assert "continuing without trapped transactions" in accepting.text
            bench.sql(f"UPDATE {bench.service}.t SET v = 'new line' WHERE id = 1")
            until(lambda: last_seqno(bench) == before + 5)
            assert accepting.stop() == 0
        with bench.start() as again:  # from then on it is an ordinary log
            again.online()
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('last')")
            until(lambda: last_seqno(bench) == before + 6)
            assert again.stop() == 0
        assert thl(bench, "trapped").returncode == 0
        seqnos = [event[0]["seqno"] for event in finished(fragments(bench.config))]
        assert seqnos == list(range(before + 7))  # each once, none given again
        shown = thl(bench, "list", "--from-seqno", str(before), "--headers", "--format", "json").stdout.splitlines()
        assert [json.loads(line)["seqno"] for line in shown] == [before, before + 4, before + 5, before + 6]

        was = rows_of(misled)
        with pytest.raises(HistoriesDiffer) as error:
            apply(bench, spark, misled)
        assert error.value.where["trapped_events"] == f"{before + 1}-{before + 3}"
        assert error.value.where["trapped"] == told["trapped"]
        assert rows_of(misled) == was
        for target in (behind, fresh):
            assert apply(bench, spark, target)
            assert rows_of(target) == bench.rows()
            assert verify(at(bench, target)).equal


def test_a_record_store_goes_on_without_trapped_transactions(
    pair: tuple[MySqlServer, MySqlServer], kafka_broker: Broker, tmp_path: Path
) -> None:
    """It had their rows: what completes later images is the row before them."""
    first, second = pair
    bench = Bench(first, kafka_broker, tmp_path, settings={"THL_SOURCE__RECORDS__DIR": str(tmp_path / "records")})
    bench.make_table()
    table = f"{bench.service}.t"
    bench.sql(f"ALTER TABLE {table} ADD COLUMN w INT NOT NULL DEFAULT 1")
    for server in pair:
        server.run_sql("SET GLOBAL binlog_row_image = 'MINIMAL'")
    with bench.start() as producer:
        producer.loaded()
        bench.sql(f"UPDATE {table} SET w = 2 WHERE id = 1")
        executed = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1]
        second.run_sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60); STOP REPLICA IO_THREAD")
        until(lambda: values(bench)[-1:] == [[1, "first", 2]])
        before = last_seqno(bench)
        bench.sql(f"UPDATE {table} SET v = 'lost' WHERE id = 1")
        until(lambda: last_seqno(bench) == before + 1)
        assert producer.stop() == 0
    first.kill()
    second.run_sql("STOP REPLICA; RESET REPLICA ALL")
    bench.mysql = second
    # The fork is not written.
    with bench.start("--accept-trapped", THL_CRASH_POINT="produce.before_epoch_commit:1") as killed:
        assert killed.ended() != 0
    with bench.start("--accept-trapped") as accepting:
        accepting.online()
        bench.sql(f"UPDATE {table} SET w = 3 WHERE id = 1")
        until(lambda: last_seqno(bench) == before + 2)
        assert accepting.stop() == 0
    with bench.start() as again:
        again.online()
        bench.sql(f"UPDATE {table} SET w = 4 WHERE id = 1")
        until(lambda: last_seqno(bench) == before + 3)
        assert again.stop() == 0
        assert "the record store has read" not in again.text
    assert values(bench) == [[1, "first", 2], [1, "lost", 2], [1, "first", 3], [1, "first", 4]]


def values(bench: Bench) -> list[object]:
    """The after images of the updates in the log, trapped ones included."""
    changes = [change for event in finished(fragments(bench.config)) for one in event for change in one["changes"]]
    return [row["after"] for change in changes if change.get("action") == "update" for row in change["rows"]]
