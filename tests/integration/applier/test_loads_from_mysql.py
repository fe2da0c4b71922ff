"""From MySQL to PostgreSQL: `thl load` makes tables equal that a target has left out, or that were changed there."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import psycopg
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

    def __init__(self, bench: Bench, postgres: DatabaseServer) -> None:
        self.bench = bench
        database = f"l{uuid.uuid4().hex[:10]}"
        with psycopg.connect(postgres.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {database}".encode())
        self.url = f"postgresql://{postgres.user}:{postgres.password}@{postgres.host}:{postgres.port}/{database}"
        self.file = bench.folder / "thl.yaml"
        document = {
            "service": bench.service,
            "kafka": {"bootstrap": bench.kafka.bootstrap},
            "apply": {
                "checkpoint_dir": str(bench.folder / "spark"),
                "heap": "512m",
                "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
            },
            "target": {"url": self.url},
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

    def has(self, table: str) -> bool:
        return self.query(f'SELECT to_regclass(\'"{self.bench.service}"."{table}"\')') != [(None,)]


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
                until(lambda: producing.text.count("loaded a table") == len(tables))
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
