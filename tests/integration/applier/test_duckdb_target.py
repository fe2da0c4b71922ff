"""From MySQL to a DuckDB file: every type equal, and a file that others read while the applier runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.targets.duckdb.file import opened_to_read
from connector.targets.open import check_target, open_target, read_position
from connector.verify import verify
from tests.support.apply_process import THL, Process, target_file
from tests.support.loading import EVERYTHING, a_database, load_into, run
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import TABLES, fill, writing

SETTINGS = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "300", "THL_SOURCE__DUMP_HEARTBEAT": "0.5"}


def test_values_of_every_type_are_equal_on_the_target(mysql_server: SqlServer, tmp_path: Path) -> None:
    with a_database(mysql_server, "duck") as (source, name):
        # DuckDB has no dates with zeros in them.
        run(source, name, "SET NAMES utf8mb4", *(sql for sql in EVERYTHING if "zeros" not in sql))
        target = Target(url=SecretStr(f"duckdb:///{tmp_path / 'target.duckdb'}"))
        config = Config(service=name, source=source, target=target)
        assert "does not exist yet" in check_target(target)
        opened = open_target(target, SystemClock())
        load_into(opened, source, config.service)
        opened.close()
        assert check_target(target).startswith("DuckDB 2.")
        report = verify(config, patience=0.5)
        assert report.equal, [str(d) for table in report.tables for d in table.differences]
        assert report.exact
        with opened_to_read(tmp_path / "target.duckdb", SystemClock()) as session:
            assert session.run(f"SELECT count(*) FROM target.{name}.everything") == [(4,)]


def test_difference_is_found(mysql_server: SqlServer, tmp_path: Path) -> None:
    with a_database(mysql_server, "duck") as (source, name):
        run(
            source, name, "CREATE TABLE t (id INT PRIMARY KEY, d DATETIME(3))", "INSERT INTO t VALUES (1, '2024-01-01')"
        )
        target = Target(url=SecretStr(f"duckdb:///{tmp_path / 'target.duckdb'}"))
        config = Config(service=name, source=source, target=target)
        opened = open_target(target, SystemClock())
        load_into(opened, source, config.service)
        opened.close()
        run(source, name, "UPDATE t SET d = '2024-01-01 00:00:00.001'")
        report = verify(config, patience=0.5)
        assert not report.equal


@pytest.mark.long
def test_tables_under_load_with_ddl_become_equal(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    name, tables = bench.service, list(TABLES)
    fill(bench, tables)
    url = f"duckdb:///{tmp_path / 'target.duckdb'}"
    file = target_file(tmp_path, name, kafka_broker, url=url, audit=True)

    def applied(table: str) -> bool:
        """Beside the applier, which lends the file."""
        row = read_position(url, name)
        if row is None:
            return False
        with opened_to_read(tmp_path / "target.duckdb", SystemClock()) as session:
            where = f"schema_name = '{name}' AND table_name = '{table}'"
            return bool(session.run(f"SELECT 1 FROM duckdb_tables() WHERE {where}"))

    with bench.start() as producing:
        producing.loaded()
        process = Process([THL, "apply", "--config", str(file)], tmp_path)
        try:
            with writing(bench, tables):
                for sql in (
                    "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(20) UNIQUE)",
                    "INSERT INTO items (v) VALUES ('a'), ('b'), ('c')",
                    "UPDATE items SET v = CASE v WHEN 'a' THEN 'x' WHEN 'b' THEN 'a' ELSE v END ORDER BY v",
                    "RENAME TABLE items TO tmp",
                    "RENAME TABLE tmp TO items",
                    "ALTER TABLE items ADD n INT NOT NULL DEFAULT 5, ADD KEY (n)",
                    "INSERT INTO items (v) VALUES ('d')",
                    "CREATE TABLE gone LIKE items",
                    "INSERT INTO gone (v) VALUES ('1')",
                    "TRUNCATE gone",
                    "INSERT INTO gone (v) VALUES ('2')",
                ):
                    bench.sql(f"USE {name}; {sql}")
                until(lambda: applied("gone") or process.popen.poll() is not None)
                process.popen.kill()  # in the middle of it
                process.end()
                process = Process([THL, "apply", "--config", str(file)], tmp_path)
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: applied("last_one") or process.popen.poll() is not None)
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
            process.end()
        assert producing.stop() == 0, producing.text
    with opened_to_read(tmp_path / "target.duckdb", SystemClock()) as session:
        found = session.run("SELECT seqno FROM target.thl.thl_applied WHERE service = ? ORDER BY 1", (name,))
    seqnos = [int(str(seqno)) for (seqno,) in found]
    assert seqnos == list(range(seqnos[0], seqnos[-1] + 1))
    source = bench.config.source
    report = verify(Config(service=name, source=source, target=Target(url=SecretStr(url))), patience=0.5)
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
