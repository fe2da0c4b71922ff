"""Targets that are sources: MySQL to MySQL to PostgreSQL, and a ring of two servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from connector.config.apply import Target
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.verify import verify
from tests.support.mysql_copies import applying, checksums, has_table, query, url_of
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.written_tables import TABLES, UNIQUE, fill, fill_unique, writing

pytestmark = pytest.mark.long

SETTINGS = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "1000", "THL_SOURCE__DUMP_HEARTBEAT": "0.5"}
ROWS = 300


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[MySqlServer, MySqlServer]]:
    """Two MySQL servers with nothing in them."""
    with (
        MySqlServer(tmp_path / "first", settings={**MYSQL_FAST, "server_id": "1"}, die_with_parent=True) as first,
        MySqlServer(tmp_path / "second", settings={**MYSQL_FAST, "server_id": "3"}, die_with_parent=True) as second,
    ):
        yield first, second


def test_chain_of_mysql_mysql_and_postgresql_ends_equal(
    pair: tuple[MySqlServer, MySqlServer], postgres_server: DatabaseServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    first, second = pair
    bench = Bench(first, kafka_broker, tmp_path, settings=dict(SETTINGS))
    name, tables = bench.service, [*TABLES, UNIQUE]
    fill(bench, list(TABLES))
    fill_unique(bench)
    further = Bench(second, kafka_broker, tmp_path, settings={**SETTINGS, "THL_SOURCE__FILTERS__DO": f'["{name}"]'})
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = postgres_server.dsn.rpartition("/")[0] + f"/{name}"
    bootstrap = kafka_broker.bootstrap
    with bench.start() as one, applying(tmp_path / "a", name, bootstrap, url_of(second)) as copying:
        one.loaded()
        copying.until(lambda: is_consistent(second, name))
        with further.start() as other, applying(tmp_path / "b", further.service, bootstrap, url) as applier:
            other.loaded()
            with writing(bench, tables):
                for sql in (
                    "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(20) UNIQUE, KEY (v))",
                    "INSERT INTO items (v) VALUES ('a'), ('b'), ('c')",
                    "RENAME TABLE t TO tmp, pair TO t, tmp TO pair",
                    "RENAME TABLE t TO tmp, pair TO t, tmp TO pair",
                    "ALTER TABLE items ADD n INT NOT NULL DEFAULT 5",
                    "UPDATE items SET n = id",
                ):
                    bench.sql(f"USE {name}; {sql}")
                copying.until(lambda: has_table(second, name, "items"))
            bench.sql(f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
            copying.until(lambda: has_table(second, name, "last_one"))
            applier.until(lambda: is_on_postgres(url, f"{name}.last_one"))
            config = further.config.model_copy(update={"target": Target(url=SecretStr(url))})
            report = verify(config, patience=30)
            assert other.stop() == 0, other.text
        assert one.stop() == 0, one.text
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    assert len(report.tables) == len(tables) + 2
    assert checksums(second, name) == checksums(first, name)


def test_ring_of_two_servers_ends_equal_without_a_loop(
    pair: tuple[MySqlServer, MySqlServer], kafka_broker: Broker, tmp_path: Path
) -> None:
    """The second server is MySQL's own replica of the first one, and the first one a target of the second one."""
    first, second = pair
    bench = Bench(second, kafka_broker, tmp_path, settings={**SETTINGS, "THL_SOURCE__IGNORE_SERVER_IDS": "1"})
    name = bench.service
    second.run_sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{first.host}', SOURCE_PORT={first.port}, "
        f"SOURCE_USER='{first.user}', SOURCE_PASSWORD='{first.password}', SOURCE_AUTO_POSITION=1, "
        "GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
    )
    bench.sql(f"CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY, v VARCHAR(200), n INT DEFAULT 0)")
    with (
        bench.start() as producing,
        applying(tmp_path, name, kafka_broker.bootstrap, url_of(first), binary_log=False) as applier,
    ):
        producing.loaded()
        applier.until(lambda: is_consistent(first, name))
        for key in range(ROWS):
            for server, number in ((first, 2 * key), (second, 2 * key + 1)):
                query(server, f"INSERT INTO {name}.t (id, v) VALUES ({number}, 'new')")
                query(server, f"UPDATE {name}.t SET n = n + 1 WHERE id = {number}")
        applier.until(lambda: rows(first, name) == rows(second, name) == 2 * ROWS)
        query(second, f"CREATE TABLE {name}.last_one (id INT PRIMARY KEY)")
        applier.until(lambda: has_table(first, name, "last_one"))
        wait_for_replica(first, second)
        assert producing.stop() == 0, producing.text
    assert checksums(first, name) == checksums(second, name)
    assert query(first, f"SELECT DISTINCT n FROM {name}.t") == [(1,)]
    applied = query(first, f"SELECT sum(`rows`) FROM thl.thl_applied WHERE service = '{name}'")
    assert applied == [(2 * ROWS,)]  # nothing that came from the first one
    status = second.run_sql("SHOW REPLICA STATUS\\G")
    assert "Replica_SQL_Running: Yes" in status


def is_consistent(server: SqlServer, service: str) -> bool:
    if not has_table(server, "thl", "thl_position"):
        return False
    where = f"service = '{service}' AND seqno >= 0 AND consistent"
    return bool(query(server, f"SELECT 1 FROM thl.thl_position WHERE {where}"))


def is_on_postgres(url: str, table: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def rows(server: SqlServer, database: str) -> int:
    return int(query(server, f"SELECT count(*) FROM {database}.t WHERE n = 1")[0][0])


def wait_for_replica(source: SqlServer, replica: SqlServer) -> None:
    executed = query(source, "SELECT @@GLOBAL.gtid_executed")[0][0]

    def has_all() -> bool:
        return bool(query(replica, f"SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)")[0][0])

    waited: Callable[[], bool] = has_all
    until(waited)
