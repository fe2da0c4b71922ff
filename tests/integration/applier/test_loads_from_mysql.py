"""From MySQL to PostgreSQL: `thl load` makes tables equal that a target has left out, or that were changed there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from connector.fetching.jars import spark_kafka_jars
from tests.support.apply_process import THL, Process
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.written_tables import ROWS, asked, fill, on_source, writing

SETTINGS = {
    "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "300",
    "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.005",
    "THL_SOURCE__DUMP_HEARTBEAT": "0.5",
}


class Copy:
    """A database of PostgreSQL that an applier keeps equal to the source."""

    def __init__(self, bench: Bench, postgres: DatabaseServer, **target: object) -> None:
        self.bench = bench
        database = f"l{uuid.uuid4().hex[:10]}"
        with psycopg.connect(postgres.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {database}".encode())
        self.url = f"postgresql://{postgres.user}:{postgres.password}@{postgres.host}:{postgres.port}/{database}"
        self.file = bench.folder / f"{database}.yaml"
        document = {
            "service": bench.service,
            "kafka": {"bootstrap": bench.kafka.bootstrap},
            "apply": {
                "checkpoint_dir": str(bench.folder / "spark"),
                "heap": "512m",
                "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
            },
            "target": {"url": self.url, **target},
        }
        self.file.write_text(yaml.safe_dump(document))

    def applier(self, *options: str) -> Process:
        return Process([THL, "apply", "--config", str(self.file), *options], self.bench.folder)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as db:
            cursor = db.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def table(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(self.query(f'SELECT * FROM "{self.bench.service}"."{name}"'), key=repr)

    def consistent(self) -> bool:
        return self.query("SELECT consistent FROM thl.thl_position") == [(True,)]

    def has(self, table: str, schema: str = "") -> bool:
        return self.query(f'SELECT to_regclass(\'"{schema or self.bench.service}"."{table}"\')') != [(None,)]


@pytest.mark.long
def test_tables_left_out_or_changed_on_the_target_are_made_equal_under_load(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    tables = ["t", "pair", "keyless"]
    fill(bench, tables)
    copy = Copy(bench, postgres_server)
    with bench.start() as producing:
        producing.loaded()
        bench.sql(f"CREATE TABLE {bench.service}.first_one (id INT PRIMARY KEY)")
        process = copy.applier()
        try:
            until(lambda: copy.query("SELECT to_regclass('thl.thl_position')") != [(None,)] and copy.has("first_one"))
        finally:
            process.popen.terminate()
            assert process.wait() == 0, process.log.read_text()[-3000:]
        name = bench.service
        copy.query(f"INSERT INTO \"{name}\".t SELECT -n, 'only here', n FROM generate_series(1, 1000) n")
        copy.query(f'DELETE FROM "{name}".t WHERE id BETWEEN 100 AND 200')
        copy.query(f"UPDATE \"{name}\".t SET v = 'wrong' WHERE id BETWEEN 300 AND 400")

        process = copy.applier("--exclude-table", f"{name}.pair", "--reason", "a test")
        try:
            assert asked(bench, f"{name}.t") == 0
            assert asked(bench, f"{name}.pair") == 0
            assert asked(bench, f"{name}.keyless") == 0
            until(lambda: producing.text.count("the load of a table begins") == len(tables))
            with writing(bench, tables):
                until(lambda: producing.text.count("loaded a table") == 2 * len(tables))
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: process.popen.poll() is not None or copy.has("last_one"))
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
        assert producing.stop() == 0, producing.text
    for table in tables:
        assert copy.table(table) == on_source(bench, table)
    assert len(copy.table("t")) > ROWS // 2
    assert copy.consistent()
    assert copy.query("SELECT * FROM thl.thl_excluded") == []
    assert copy.query("SELECT * FROM thl.thl_inconsistent_because") == []


@pytest.mark.long
def test_applier_stopped_at_a_broken_table_goes_on_after_a_load_alone(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    name, tables = bench.service, ["t", "pair"]
    fill(bench, tables)
    bench.sql(f"CREATE TABLE {name}.once (n INT)")
    copy = Copy(bench, postgres_server, audit=True)
    with bench.start() as producing:
        producing.loaded()
        bench.sql(f"CREATE TABLE {name}.first_one (id INT PRIMARY KEY)")
        process = copy.applier()
        try:
            until(lambda: copy.query("SELECT to_regclass('thl.thl_position')") != [(None,)] and copy.has("first_one"))
            copy.query(f'DELETE FROM "{name}".t WHERE id = 5')
            bench.sql(f"INSERT INTO {name}.once VALUES (1); UPDATE {name}.t SET v = 'lost', n = -1 WHERE id = 5")
            with writing(bench, tables):
                assert process.wait() != 0
            assert f"to load it again: thl load {name}.t" in process.log.read_text()
        finally:
            process.popen.terminate()
            process.wait()
        for number in range(2, 20):
            bench.sql(f"INSERT INTO {name}.once VALUES ({number})")
        process = copy.applier()
        assert process.wait() != 0, "nothing was asked for: it stops again"
        assert copy.query("SELECT * FROM thl.thl_excluded") == []

        loaded = producing.text.count("loaded a table")
        assert asked(bench, f"{name}.t") == 0
        process = copy.applier()
        try:
            with writing(bench, tables):
                until(lambda: producing.text.count("loaded a table") > loaded)
            bench.sql(f"INSERT INTO {name}.once VALUES (20); CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: process.popen.poll() is not None or copy.has("last_one"))
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
        assert "a table is quarantined" in process.log.read_text()
        assert producing.stop() == 0, producing.text
    for table in [*tables, "once"]:
        assert copy.table(table) == on_source(bench, table)
    assert copy.consistent()
    assert copy.query("SELECT * FROM thl.thl_excluded") == []
    ((events, last),) = copy.query("SELECT count(*), max(seqno) FROM thl.thl_applied")
    assert events == last + 1


@pytest.mark.long
def test_load_for_one_of_two_targets_mends_it_alone(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    name, tables = bench.service, ["t", "pair"]
    fill(bench, tables)
    shelf, lake = (Copy(bench, postgres_server, id=one, audit=True) for one in ("shelf", "lake"))
    with bench.start() as producing:
        producing.loaded()
        bench.sql(f"CREATE TABLE {name}.first_one (id INT PRIMARY KEY)")
        processes = [one.applier() for one in (shelf, lake)]
        try:
            for copy in (shelf, lake):
                until(lambda copy=copy: copy.has("thl_position", "thl") and copy.has("first_one"))
            for table in tables:
                lake.query(f'DELETE FROM "{name}".{table} WHERE n % 3 = 0')
            before = shelf.query(f'SELECT xmin::text, ctid::text, * FROM "{name}".t ORDER BY id')
            assert asked(bench, f"{name}.t", "--for-target", "no such/form") == 2
            assert asked(bench, f"{name}.*", "--for-target", "lake", "--wait") == 0
            assert asked(bench, "--status") == 0
            bench.sql(f"CREATE TABLE {name}.second_one (id INT PRIMARY KEY)")
            for copy in (shelf, lake):
                until(lambda copy=copy: copy.has("second_one"))
            assert shelf.query(f'SELECT xmin::text, ctid::text, * FROM "{name}".t ORDER BY id') == before
            with writing(bench, tables):
                assert asked(bench, f"{name}.t", "--for-target", "lake", "--wait") == 0
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            for copy in (shelf, lake):
                until(lambda copy=copy: copy.has("last_one"))
        finally:
            for process in processes:
                process.popen.terminate()
                process.wait()
        assert producing.stop() == 0, producing.text
    for copy in (shelf, lake):
        assert {table: copy.table(table) for table in tables} == {table: on_source(bench, table) for table in tables}
        assert copy.consistent()
        ((events, last),) = copy.query("SELECT count(*), max(seqno) FROM thl.thl_applied")
        assert events == last + 1


@pytest.mark.long
def test_tables_that_join_by_a_wider_filter_are_made_equal_under_load(
    mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SETTINGS))
    name, tables = bench.service, ["t", "pair", "keyless"]
    fill(bench, tables)
    copy = Copy(bench, postgres_server, audit=True)
    with bench.start(THL_SOURCE__FILTERS__DO=json.dumps([f"{name}.t", f"{name}.*_one"])) as producing:
        producing.loaded()
        assert producing.stop() == 0, producing.text
    process = copy.applier()
    try:
        before = {table: on_source(bench, table) for table in tables}
        with writing(bench, tables):
            # The source's log has some of the changes of the tables that join before their loads begin.
            until(lambda: all(on_source(bench, table) != rows for table, rows in before.items()))
            with bench.start() as producing:
                producing.loaded()
                bench.sql(f"CREATE TABLE {name}.second_one (id INT PRIMARY KEY)")
                until(lambda: copy.has("second_one") or process.popen.poll() is not None)
                assert process.popen.poll() is None, process.log.read_text()[-3000:]
        with bench.start() as producing:
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: copy.has("last_one"))
            assert producing.stop() == 0, producing.text
    finally:
        process.popen.terminate()
        process.wait()
    for table in tables:
        assert copy.table(table) == on_source(bench, table)
    assert copy.consistent()
    assert copy.query("SELECT * FROM thl.thl_excluded") == []
    ((events, last),) = copy.query("SELECT count(*), max(seqno) FROM thl.thl_applied")
    assert events == last + 1
