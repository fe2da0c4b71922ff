"""From MySQL to another MySQL: the target's tables are the source's, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.targets.open import check_target, open_target
from connector.verify import verify
from tests.support.apply_process import THL, Process, target_file
from tests.support.loading import EVERYTHING, a_database, load_into, run
from tests.support.mysql import connect
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import TABLES, fill, writing

SETTINGS = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "300", "THL_SOURCE__DUMP_HEARTBEAT": "0.5"}


def url_of(server: SqlServer) -> str:
    return f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"


def query(server: SqlServer, sql: str) -> list[tuple[Any, ...]]:
    connection = connect(server)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
    finally:
        connection.close()


def has_table(server: SqlServer, database: str, table: str) -> bool:
    where = f"table_schema = '{database}' AND table_name = '{table}'"
    return bool(query(server, f"SELECT 1 FROM information_schema.tables WHERE {where}"))


def checksums(server: SqlServer, database: str) -> dict[str, object]:
    """MySQL's own checksum of each table, which does not depend on the order of rows."""
    tables = [name for (name,) in query(server, f"SHOW TABLES FROM {database}")]
    return {name: query(server, f"CHECKSUM TABLE {database}.{name}")[0][1] for name in tables}


def definitions(server: SqlServer, database: str) -> dict[str, str]:
    tables = [name for (name,) in query(server, f"SHOW TABLES FROM {database}")]
    return {name: str(query(server, f"SHOW CREATE TABLE {database}.{name}")[0][1]) for name in tables}


@pytest.mark.parametrize("kept", ["source", "plain"])
def test_values_of_every_type_are_equal_on_the_target(mysql_server: SqlServer, second: SqlServer, kept: Any) -> None:
    with a_database(mysql_server, "native") as (source, name):
        run(source, name, "SET NAMES utf8mb4", *EVERYTHING)
        target = Target(url=SecretStr(url_of(second)), definitions=kept)
        config = Config(service=name, source=source, target=target)
        assert check_target(target).startswith("MySQL ")
        opened = open_target(target, SystemClock())
        load_into(opened, source, config.service)
        opened.close()
        report = verify(config, patience=0.5)
        assert report.equal, [str(d) for table in report.tables for d in table.differences]
        if kept == "source":
            assert checksums(second, name) == checksums(mysql_server, name)
            assert definitions(second, name) == definitions(mysql_server, name)


def test_tables_under_load_with_ddl_become_equal(
    mysql_server: SqlServer, second: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    name, tables = bench.service, list(TABLES)
    fill(bench, tables)
    file = target_file(tmp_path, name, kafka_broker, url=url_of(second), audit=True)

    with bench.start() as producing:
        producing.loaded()
        process = Process([THL, "apply", "--config", str(file)], tmp_path)
        try:
            with writing(bench, tables, pause=0.02):
                for sql in (
                    "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(20) UNIQUE, w INT AS (length(v)))",
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
                until(lambda: has_table(second, name, "gone") or process.popen.poll() is not None)
                process.popen.kill()  # in the middle of it
                process.end()
                process = Process([THL, "apply", "--config", str(file)], tmp_path)
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            until(lambda: has_table(second, name, "last_one") or process.popen.poll() is not None)
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
            process.end()
        assert producing.stop() == 0, producing.text
    assert checksums(second, name) == checksums(mysql_server, name)
    made, wanted = definitions(second, name), definitions(mysql_server, name)
    assert made.keys() == wanted.keys()
    assert made["items"].partition(" AUTO_INCREMENT=")[0] == wanted["items"].partition(" AUTO_INCREMENT=")[0]
    found = query(second, f"SELECT seqno FROM thl.thl_applied WHERE service = '{name}' ORDER BY 1")
    seqnos = [seqno for (seqno,) in found]
    assert seqnos == list(range(seqnos[0], seqnos[-1] + 1))
