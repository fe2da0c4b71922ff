"""Every server of the sandbox starts, answers, and has its data and port again after `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pymysql.constants import ER

from connector.errors import SandboxError
from connector.fetching.mysql_programs import tool
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import PASSWORD_FILE, Mysqld
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.process import Process
from connector.sandbox.settings import MYSQL_FAST
from tests.support.clock import PATIENCE
from tests.support.mysql import connect
from tests.support.servers.mysql56 import MySql56Server, mysql56_folder

pytestmark = pytest.mark.servers


def rows(server: Mysqld, sql: str) -> list[tuple[object, ...]]:
    with connect(server) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        connection.commit()
        return list(cursor.fetchall())


def killed_and_started_again(server: MySqlServer | MariaDbServer | PostgresServer | KafkaBroker) -> None:
    before, port = server.program.process, server.port
    os.kill(before.pid, signal.SIGKILL)
    server.program.kill()
    assert not before.running
    server.start()
    assert server.port == port
    assert server.pid != before.pid


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    folder = tmp_path_factory.mktemp("mysql")
    with MySqlServer(folder, settings=MYSQL_FAST, die_with_parent=True) as server:
        yield server


def test_mysql_keeps_committed_rows_after_a_kill(mysql: MySqlServer) -> None:
    mysql.run_sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT)")
    mysql.run_sql("INSERT INTO item VALUES (1, 'čaj')", database="shop")
    killed_and_started_again(mysql)
    assert rows(mysql, "SELECT * FROM shop.item") == [(1, "čaj")]


def test_mysql_is_set_up_as_a_source(mysql: MySqlServer) -> None:
    facts = "@@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata, @@gtid_mode, @@sync_binlog"
    assert rows(mysql, f"SELECT {facts}") == [(1, "ROW", "FULL", "FULL", "ON", 0)]


def test_mysql_creates_users(mysql: MySqlServer) -> None:
    mysql.create_user("reader", "it's\\secret", ["SELECT", "REPLICATION SLAVE"])
    with pymysql.connect(host=mysql.host, port=mysql.port, user="reader", password="it's\\secret") as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW GRANTS")
        assert [text for (text,) in cursor.fetchall()] == ["GRANT SELECT, REPLICATION SLAVE ON *.* TO `reader`@`%`"]


def test_mysql_has_its_tools(mysql: MySqlServer) -> None:
    mysql.run_sql("CREATE DATABASE seen_in_the_log; FLUSH BINARY LOGS")
    logs = sorted(mysql.data.glob("mysql-bin.0*"))[:-1]
    told = subprocess.run([*tool("mysqlbinlog"), "--no-defaults", *logs], capture_output=True, text=True, check=True)
    assert "CREATE DATABASE seen_in_the_log" in told.stdout


def test_refused_sql_raises_with_mysqls_message(mysql: MySqlServer) -> None:
    with pytest.raises(SandboxError, match="nowhere"):
        mysql.run_sql("SELECT * FROM nowhere.nothing")


def test_failed_start_raises_with_the_servers_log(tmp_path: Path) -> None:
    server = MySqlServer(tmp_path / "mysql", settings={"binlog_format": "PROSE"}, die_with_parent=True)
    with pytest.raises(SandboxError, match="PROSE"):
        server.start()
    assert not server.program.running


def test_mariadb_keeps_committed_rows_after_a_kill(tmp_path: Path) -> None:
    with MariaDbServer(tmp_path / "mariadb", die_with_parent=True) as server:
        server.run_sql("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY)")
        server.run_sql("INSERT INTO shop.item VALUES (1)")
        killed_and_started_again(server)
        assert rows(server, "SELECT id, @@binlog_row_metadata FROM shop.item") == [(1, "FULL")]

        asks_for_its_own_password(server)


def test_mysql56_requires_its_own_password(tmp_path: Path) -> None:
    try:
        mysql56_folder()
    except SandboxError as error:
        pytest.skip(f"MySQL 5.6 cannot be had: {error.message}")
    with MySql56Server(tmp_path / "mysql56", die_with_parent=True) as server:
        asks_for_its_own_password(server)


def test_mysql_requires_its_own_password(mysql: MySqlServer, tmp_path: Path) -> None:
    asks_for_its_own_password(mysql)
    assert MySqlServer(tmp_path / "other").password != mysql.password
    told = subprocess.run(
        [*mysql.client("mysqlbinlog"), "--read-from-remote-server", "mysql-bin.000001"], capture_output=True, check=True
    )
    assert told.stdout
    assert b"IDENTIFIED" not in told.stdout, "a replica keeps its own"


def asks_for_its_own_password(server: Mysqld) -> None:
    """No login works without it; it is random, in owner-only files, and kept across restarts."""
    for user in (server.user, ""):
        for password in ("", "root"):
            with pytest.raises(pymysql.OperationalError) as denied:
                pymysql.connect(host=server.host, port=server.port, user=user, password=password)
            assert denied.value.args[0] == ER.ACCESS_DENIED_ERROR
    before = server.password
    assert len(before) == 32
    assert server.run_sql("SELECT count(*) FROM mysql.user WHERE user = ''").split()[1] == "0"
    for name in ("password", "client.cnf"):
        assert (server.folder / name).stat().st_mode & 0o777 == 0o600
    said = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert before not in said
    assert not list((server.folder / "tmp").glob("*.sql"))
    server.stop()
    server.start()
    assert server.password == before
    assert rows(server, "SELECT 1") == [(1,)]


def test_a_data_folder_without_its_password_is_refused(tmp_path: Path) -> None:
    """As versions made them that gave none."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / MySqlServer.made).touch()
    server = MySqlServer(tmp_path)
    with pytest.raises(SandboxError) as refused:
        server.start()
    assert refused.value.where["file"] == tmp_path / PASSWORD_FILE
    assert "sandbox down --delete" in refused.value.hint
    assert not server.program.running


def test_postgres_keeps_committed_rows_after_a_kill(tmp_path: Path) -> None:
    with PostgresServer(tmp_path / "postgres", die_with_parent=True) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE item (id int)")
            connection.execute("INSERT INTO item VALUES (1)")
        killed_and_started_again(server)
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SELECT * FROM item").fetchall() == [(1,)]
            assert connection.execute("SHOW fsync").fetchall() == [("on",)]


def test_postgres_starts_again_while_a_backend_was_busy(tmp_path: Path) -> None:
    with PostgresServer(tmp_path / "postgres", die_with_parent=True) as server:
        busy = psycopg.connect(server.dsn)
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000)")
        time.sleep(0.3)
        killed_and_started_again(server)
        busy.close()


def test_kafka_keeps_acknowledged_messages_after_a_kill(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "kafka", die_with_parent=True) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("events", 1, 1)])["events"].result(30)
        in_a_transaction(broker, b"first")
        killed_and_started_again(broker)
        in_a_transaction(broker, b"second")
        assert committed(broker, 2) == [b"first", b"second"]


def test_kafka_takes_an_identity_that_begins_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=0xF8 << 120 | 1))
    with KafkaBroker(tmp_path / "kafka", die_with_parent=True) as broker:
        assert "cluster.id=-AAA" in (broker.data / "meta.properties").read_text()


def test_kafka_takes_the_largest_row(tmp_path: Path) -> None:
    row = os.urandom(64 << 20)
    limits = {"message.max.bytes": 100 << 20, "queue.buffering.max.kbytes": 256 << 10}
    with KafkaBroker(tmp_path / "kafka", die_with_parent=True) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("events", 1, 1)])["events"].result(30)
        in_a_transaction(broker, row, limits)
        assert committed(broker, 1, {"fetch.message.max.bytes": 100 << 20, "receive.message.max.bytes": 200 << 20}) == [
            row
        ]


def in_a_transaction(broker: KafkaBroker, value: bytes, settings: Mapping[str, int] = MappingProxyType({})) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "writer", **settings})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("events", value)
    producer.commit_transaction(60)


def committed(
    broker: KafkaBroker, count: int, settings: Mapping[str, int] = MappingProxyType({})
) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.assign([TopicPartition("events", 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, timeout=PATIENCE)]
    finally:
        consumer.close()


STARTS_AND_WAITS = """
import sys, time
from pathlib import Path
from connector.sandbox.{module} import {name}
server = {name}(Path(sys.argv[1]), die_with_parent=True)
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("module", "name"), [("mysql", "MySqlServer"), ("postgres", "PostgresServer")])
def test_server_dies_with_its_parent_on_request(tmp_path: Path, module: str, name: str) -> None:
    """PostgreSQL too when it runs as another user: changing the user makes the kernel forget the wish."""
    script = STARTS_AND_WAITS.format(module=module, name=name)
    parent = subprocess.Popen([sys.executable, "-c", script, tmp_path / "data"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    server = Process.of(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    assert eventually(lambda: not server.running)


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_mysql_reads_and_writes_files_of_one_folder_alone(mysql: MySqlServer, tmp_path: Path) -> None:
    for folder in (tmp_path, mysql.files):
        (folder / "file.txt").write_text("content of it")
    assert "content of it" in mysql.run_sql(f"SELECT LOAD_FILE('{mysql.files / 'file.txt'}')")
    assert "content of it" not in mysql.run_sql(f"SELECT LOAD_FILE('{tmp_path / 'file.txt'}')")
    with pytest.raises(SandboxError, match="secure-file-priv"):
        mysql.run_sql(f"SELECT 1 INTO OUTFILE '{tmp_path / 'out.txt'}'")
