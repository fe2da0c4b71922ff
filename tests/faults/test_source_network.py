"""The network between source and producer fails, and another server takes the source's address."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.errors import HistoriesDiffer
from connector.kafka.log_reader import LogReader
from connector.mysql.server import connection
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import PASSWORD_FILE, write_private
from connector.sandbox.settings import MYSQL_FAST
from tests.support.producing import SMALL, Bench, check, fragments, last_seqno, until
from tests.support.proxy import Cut, Proxy, Way
from tests.support.servers.environment import Broker, SqlServer

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

ROWS = 8000
MIDDLE = 500_000  # bytes of a transaction of so many rows, which are more than 800,000


@pytest.fixture
def proxy(mysql_server: SqlServer) -> Iterator[Proxy]:
    with Proxy((mysql_server.host, mysql_server.port)) as made:
        yield made


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, proxy: Proxy, tmp_path: Path) -> Bench:
    made = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    made.settings |= {"THL_SOURCE__PORT": str(proxy.port), "THL_SOURCE__HEARTBEAT": "1"}
    made.settings |= {"THL_SOURCE__START": "earliest"}
    made.make_table()
    return made


@pytest.fixture
def second(tmp_path: Path, mysql_server: SqlServer) -> Iterator[MySqlServer]:
    """A server with the first one's password, as a restored copy has it."""
    write_private(tmp_path / "second" / PASSWORD_FILE, mysql_server.password)
    small = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "32M", "server_id": "2"}
    with MySqlServer(tmp_path / "second", settings=small, die_with_parent=True) as server:
        yield server


def test_interrupted_dump_reads_the_transaction_again(bench: Bench, proxy: Proxy) -> None:
    with bench.start() as running:
        until(lambda: last_seqno(bench) >= 2)
        for seqno, how in ((3, "reset"), (4, "silence")):
            proxy.arm(Cut(Way.DOWN, how, after=MIDDLE))  # type: ignore[arg-type]
            bench.insert_many(ROWS)
            until(lambda seqno=seqno: last_seqno(bench) >= seqno)  # type: ignore[misc]
            assert not proxy.armed
            assert running.text.count("went_back=True") >= proxy.cuts
        assert "the connection to the source is lost" in running.text
        assert "the source has been silent for" in running.text
        assert running.stop() == 0
    epochs = [event[0]["epoch"] for event in check(bench)]
    assert epochs[:3] == [1, 1, 1]
    for seqno in (3, 4):  # of both, something had been published before, which is void
        given_up = {one["epoch"] for one in fragments(bench.config) if one["seqno"] == seqno and one["kind"] != "epoch"}
        assert max(given_up) == epochs[seqno] > min(given_up) >= epochs[seqno - 1]


def test_server_that_reused_a_gtid_is_refused(bench: Bench, proxy: Proxy, second: MySqlServer) -> None:
    first = bench.mysql
    with bench.start() as running:
        until(lambda: last_seqno(bench) >= 2)
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (10, 'last')")
        until(lambda: last_seqno(bench) == 3)

        # A replica that has everything: the producer goes on with it.
        become_a_copy(second, first, bench.service)
        proxy.server = second.host, second.port
        proxy.reset()
        until(lambda: "the source is back" in running.text)
        bench.mysql = second
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (11, 'written to the second')")
        until(lambda: last_seqno(bench) == 4)
        assert [event[0]["epoch"] for event in check(bench)] == [1, 1, 1, 1, 2]

        # And back to one that lost that transaction, and gave its GTID to another.
        gtid = executed(second).rpartition(",")[2].strip()
        assert gtid.startswith(second.run_sql("SELECT @@server_uuid").split()[1])
        give(first, gtid, f"INSERT INTO {bench.service}.t VALUES (11, 'written to the first!')")
        before = records(bench)
        proxy.server = first.host, first.port
        proxy.reset()
        assert running.ended() == HistoriesDiffer.exit_code
    refused_by_digest(running.text, gtid)
    with bench.start() as again:
        assert again.ended() == HistoriesDiffer.exit_code
    refused_by_digest(again.text, gtid)
    assert records(bench) == before

    # With the transaction itself under its GTID the same server is as good as any other.
    proxy.server = second.host, second.port
    with bench.start() as last:
        last.online()
        bench.sql(f"INSERT INTO {bench.service}.t VALUES (12, 'third')")
        until(lambda: last_seqno(bench) == 5)
        assert last.stop() == 0
    check(bench)


def test_slow_answer_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 5)
    opened = connection.connect(bench.config.source)
    try:
        assert connection.query_one(opened, "SELECT SLEEP(6) AS slept") == {"slept": 0}
        wire = opened._sock  # type: ignore[attr-defined]
        told = {option: wire.getsockopt(socket.IPPROTO_TCP, option) for option in connection.KEEPALIVE}
        assert told == connection.KEEPALIVE
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    finally:
        opened.close()


def become_a_copy(server: MySqlServer, of: SqlServer, schema: str) -> None:
    """Copy the rows and execute the last transaction under its own GTID, like a replica restored from a backup."""
    *_, last = executed(of).rpartition(":")
    number = int(last.rpartition("-")[2])
    source = executed(of).partition(":")[0]
    server.run_sql(f"RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{source}:1-{number - 1}'")
    server.run_sql(
        f"SET sql_log_bin = 0; CREATE DATABASE {schema}; "
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200)); "
        f"INSERT INTO {schema}.t (v) VALUES ('first'), ('second')"
    )
    give(server, f"{source}:{number}", f"INSERT INTO {schema}.t VALUES (10, 'last')")
    assert executed(server) == executed(of)


def give(server: SqlServer, gtid: str, statement: str) -> None:
    server.run_sql(f"SET gtid_next = '{gtid}'; {statement}; SET gtid_next = AUTOMATIC")


def executed(server: SqlServer) -> str:
    """The executed GTIDs, with the server that began to write most recently at the end."""
    text = server.run_sql("SELECT @@GLOBAL.gtid_executed").split("\n", 1)[1].replace("\n", "").replace("\\n", "")
    own = server.run_sql("SELECT @@server_uuid").split()[1]
    return ",".join(sorted(text.split(","), key=lambda part: part.strip().startswith(own)))


def refused_by_digest(told: str, gtid: str) -> None:
    assert "another transaction" in told
    assert gtid in told
    assert "hint:" in told


def records(bench: Bench) -> tuple[object, ...]:
    """All records of the log."""
    with LogReader(bench.config) as reader:
        return reader.control(), reader.position(), fragments(bench.config)
