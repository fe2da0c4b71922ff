"""Several connections load every row of every kind of key once, in one view; the load outlives the brokers."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli import run as thl
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.errors import PreflightError, SandboxError, SourceChanged
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import connect, query
from connector.mysql.server.snapshot_point import check_one_server
from connector.mysql.snapshot.readers import Readers
from connector.mysql.snapshot.snapshot import Snapshot
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes
from tests.support.clock import PATIENCE, Slept
from tests.support.loading import a_database, a_user, as_source, run, values
from tests.support.producing import SMALL, Bench, check, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.servers.mysql56 import MySql56Server, mysql56_folder

NUMBERS = "CREATE TABLE numbers (n INT PRIMARY KEY)"
DOUBLED = "INSERT INTO numbers SELECT n + (SELECT COUNT(*) FROM numbers) FROM numbers"
# Table → its columns, the expressions of its 1,024 rows, and whether it is divided.
KEYS = {
    "dense": ("k INT PRIMARY KEY, v INT", "n, n", True),
    "skewed": (
        "k BIGINT UNSIGNED PRIMARY KEY, v INT",
        "IF(n < 1000, n + 7, CAST(n AS UNSIGNED) * 17000000000000000), n",
        True,
    ),
    "negative": ("k BIGINT PRIMARY KEY, v INT", "(n - 512) * 9007199254740993, n", True),
    "composite": ("a INT, b SMALLINT, v INT, PRIMARY KEY (a, b)", "n DIV 100, n MOD 100, n", True),
    "text": (
        "k VARCHAR(40) CHARACTER SET utf8 COLLATE utf8_general_ci PRIMARY KEY, v INT",
        "CONCAT(ELT(1 + n MOD 5, 'ä', 'A', 'z', '''', 'Ω\\\\'), n), n",
        True,
    ),
    "latin": ("k CHAR(9) CHARACTER SET latin1 COLLATE latin1_german1_ci PRIMARY KEY, v INT", "CONCAT('é', n), n", True),
    "wide": ("k VARCHAR(9) CHARACTER SET ucs2 PRIMARY KEY, v INT", "CONCAT('é', n), n", True),
    "bytes": ("k VARBINARY(9) PRIMARY KEY, v INT", "UNHEX(CONCAT('00ff', LPAD(HEX(n), 4, '0'))), n", True),
    "money": ("k DECIMAL(20, 4) PRIMARY KEY, v INT", "n * 0.0003 - 0.1, n", True),
    "days": ("k DATE PRIMARY KEY, v INT", "IF(n = 5, '0000-00-00', DATE_ADD('1999-12-30', INTERVAL n DAY)), n", True),
    "times": (
        "k DATETIME(6), t TIMESTAMP DEFAULT 0, v INT, PRIMARY KEY (k, t)",
        "DATE_ADD('1999-12-31 23:59:59', INTERVAL n MICROSECOND), '2010-01-01', n",
        True,
    ),
    "mixed": ("a VARBINARY(3), b DOUBLE, v INT, PRIMARY KEY (a, b)", "n DIV 300, n / 7, n", True),
    "doubles": ("k DOUBLE PRIMARY KEY, v INT", "n / 7, n", False),
    "labels": ("k ENUM('b', 'a', 'c'), n INT, PRIMARY KEY (k, n)", "1 + n MOD 3, n", False),
    "prefixed": ("k VARCHAR(90), v INT, PRIMARY KEY (k(20))", "n, n", False),
    "keyless": ("k INT, v INT", "n MOD 3, n", False),
}


@pytest.fixture
def database(mysql_server: SqlServer) -> Iterator[tuple[Source, str]]:
    with a_database(mysql_server, "parallel") as made:
        yield made


@pytest.fixture(scope="module")
def mysql56(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    try:
        mysql56_folder()
    except SandboxError as error:
        pytest.skip(f"MySQL 5.6 cannot be had: {error.message}")
    with MySql56Server(tmp_path_factory.mktemp("mysql56"), die_with_parent=True) as found:
        yield found


@pytest.fixture(params=["mysql_server", "mariadb_server", "mysql56"])
def each_server(request: pytest.FixtureRequest) -> SqlServer:
    server: SqlServer = request.getfixturevalue(request.param)
    return server


def by(source: Source, **settings: Any) -> Source:
    """The source with settings of `source.snapshot`, and batches so small that chunks wait for each other."""
    settings = {"connections": 3, "chunk_rows": 100, **settings}
    return source.model_copy(update={"snapshot": InitialLoad(**settings), "batch_bytes": 2000})


def load(source: Source, clock: Slept | None = None) -> tuple[int, list[TransactionBatch]]:
    """A whole load: the number of its connections, and its batches."""
    snapshot = Snapshot(source, Filter(source.filters), clock=clock)
    snapshot.open()
    try:
        connections = 1 + len(snapshot._others)
        return connections, list(snapshot.batches())
    finally:
        snapshot.close()


def rows_of(batches: list[TransactionBatch]) -> dict[str, Counter[str]]:
    """The rows of each table."""
    found: dict[str, Counter[str]] = {}
    for change in changes(batches):
        if isinstance(change, Rows):
            found.setdefault(change.layout.name.table, Counter()).update(map(repr, values(change)))
    return found


def fill(source: Source, name: str, *tables: str) -> None:
    """Creates tables of `KEYS` with 1,024 rows each."""
    made = [f"CREATE TABLE {table} ({KEYS[table][0]})" for table in tables]
    filled = [f"INSERT INTO {table} SELECT {KEYS[table][1]} FROM numbers" for table in tables]
    run(source, name, "SET NAMES utf8", NUMBERS, "INSERT INTO numbers VALUES (0)", *[DOUBLED] * 10, *made, *filled)
    run(source, name, "ANALYZE TABLE " + ", ".join(["numbers", *tables]))


def test_every_row_of_every_kind_of_key_is_loaded_once(each_server: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = Counter[str]()

    def counted(connection: Any, table: Any, within: Any, *more: Any) -> Any:
        chunks[table.layout.name.table] += 1
        return table_rows(connection, table, within, *more)

    monkeypatch.setattr("connector.mysql.snapshot.readers.table_rows", counted)
    with a_database(each_server, "keys") as (source, name):
        fill(source, name, *KEYS)
        connections, parallel = load(by(source))
        divided = dict(chunks)
        chunks.clear()
        _, serial = load(by(source, connections=1))
    assert connections == 3
    assert rows_of(parallel) == rows_of(serial)
    assert {rows.total() for rows in rows_of(parallel).values()} == {1024}
    assert set(chunks.values()) == {1}
    for table, (_, _, is_divided) in KEYS.items():
        assert (divided[table] > 4) == is_divided, (table, divided)
        assert divided[table] < 40


def test_all_connections_have_one_view_under_load(database: tuple[Source, str]) -> None:
    """Each transaction moves one from a row to another: any single view has the same sum."""
    source, name = database
    fill(source, name, "dense", "composite")
    stop = threading.Event()

    def write(first: int) -> None:
        connection = connect(source)
        query(connection, f"USE {name}")
        connection.autocommit(False)
        number = first
        while not stop.is_set():
            number += 13
            query(connection, f"UPDATE dense SET v = v + 1 WHERE k = {number % 1024}")
            query(connection, f"UPDATE composite SET v = v - 1 WHERE a = {number % 10} AND b = {number % 100}")
            connection.commit()
        connection.close()

    writers = [threading.Thread(target=write, args=(first,)) for first in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(5):
            _, batches = load(by(source))
            sums = Counter[str]()
            for change in changes(batches):
                if isinstance(change, Rows):
                    sums[change.layout.name.table] += sum(row[-1] for row in values(change))
            assert sums["dense"] + sums["composite"] == 2 * (1023 * 1024 // 2)
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_ddl_waits_for_the_last_chunk_and_a_reader_that_waits_behind_it_helps_elsewhere(
    database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = database
    fill(source, name, "dense", "skewed")
    monkeypatch.setattr("connector.mysql.server.snapshot_point.LOCK_WAIT_SECONDS", 1)
    join, read_chunks, gave_up = Readers._join, Readers._read_chunks, threading.Event()
    thread = threading.Thread(target=lambda: run(source, name, "ALTER TABLE dense ADD COLUMN more INT"))

    def hold_until_another_gave_up(readers: Readers, connection: Any, shared: Any, first: Any) -> None:
        if shared.table.layout.name.table == "dense":
            thread.start()
            assert gave_up.wait(PATIENCE)
        read_chunks(readers, connection, shared, first)

    def join_once_ddl_waits(readers: Readers, connection: Any, shared: Any) -> Any:
        if shared.table.layout.name.table == "dense":
            until(lambda: waiting_for_metadata(source))
        chunk = join(readers, connection, shared)
        if chunk is None:
            gave_up.set()
        return chunk

    monkeypatch.setattr(Readers, "_read_chunks", hold_until_another_gave_up)
    monkeypatch.setattr(Readers, "_join", join_once_ddl_waits)
    _, batches = load(by(source))
    thread.join()
    assert {table: rows.total() for table, rows in rows_of(batches).items()} == {
        "dense": 1024, "numbers": 1024, "skewed": 1024,
    }  # fmt: skip


def waiting_for_metadata(source: Source) -> bool:
    connection = connect(source)
    try:
        waits = "SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'"
        return bool(query(connection, waits))
    finally:
        connection.close()


def test_tables_named_first_are_loaded_first(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, *(f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in ("a", "b", "c1", "c2")))
    _, batches = load(by(source, first=(f"{name}.c*", f"{name}.b"), connections=1))
    created = [c.sql.split("`")[1] for c in changes(batches) if isinstance(c, Statement) and "CREATE TABLE" in c.sql]
    assert created == ["c1", "c2", "b", "a"]


def test_rows_a_second_are_limited(database: tuple[Source, str]) -> None:
    source, name = database
    fill(source, name)
    clock = Slept()
    _, batches = load(by(source, max_rows_per_second=100), clock)
    assert clock.seconds == pytest.approx(10.24)
    assert all(change.count <= 100 for change in changes(batches) if isinstance(change, Rows))


def test_refused_connections_leave_fewer_readers_and_a_warning(
    mysql_server: SqlServer, database: tuple[Source, str], caplog: pytest.LogCaptureFixture
) -> None:
    source, name = database
    fill(source, name, "dense")
    grants = "SELECT, FLUSH_TABLES, RELOAD, REPLICATION CLIENT ON *.*"
    with a_user(mysql_server, grants, do=(name,)) as limited:
        mysql_server.run_sql(f"ALTER USER {limited.user} WITH MAX_USER_CONNECTIONS 2")
        with caplog.at_level(logging.WARNING):
            connections, batches = load(by(limited))
    assert connections == 2
    assert rows_of(batches)["dense"].total() == 1024
    assert "reads with fewer" in caplog.text


def test_connections_to_different_servers_are_refused(mysql_server: SqlServer, mariadb_server: SqlServer) -> None:
    one, other = connect(as_source(mariadb_server)), connect(as_source(mysql_server))
    try:
        check_one_server(one, [one])
        with pytest.raises(PreflightError) as refused:
            check_one_server(one, [other])
        assert "source.snapshot.connections" in refused.value.hint
    finally:
        one.close()
        other.close()


def test_ddl_found_by_one_reader_ends_all_of_them(database: tuple[Source, str]) -> None:
    source, name = database
    fill(source, name, "dense", "skewed")
    snapshot = Snapshot(by(source), Filter(source.filters))
    snapshot.open()
    run(source, name, "ALTER TABLE skewed ADD COLUMN more INT")
    try:
        with pytest.raises(SourceChanged) as changed:
            list(snapshot.batches())
        assert changed.value.where["table"] == TableName(name, "skewed")
    finally:
        snapshot.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("load-")]


def test_dry_run_shows_tables_rows_and_chunks_without_kafka(
    database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, name = database
    fill(source, name, "composite", "keyless")
    for field, value in {"HOST": source.host, "PORT": source.port, "USER": source.user, "SERVER_ID": 4711}.items():
        monkeypatch.setenv(f"THL_SOURCE__{field}", str(value))
    monkeypatch.setenv("THL_SOURCE__PASSWORD", source.password.get_secret_value())
    monkeypatch.setenv("THL_SOURCE__FILTERS__DO", f'["{name}"]')
    monkeypatch.setenv("THL_SOURCE__SNAPSHOT__CHUNK_ROWS", "100")
    monkeypatch.setenv("THL_KAFKA__BOOTSTRAP", "127.0.0.1:1")  # nothing listens there
    assert thl(["produce", "--dry-run", "--set", "source.snapshot.max_rows_per_second=2"]) == 0
    total, purge, composite, keyless, numbers, limited = sorted(capsys.readouterr().out.splitlines())
    assert composite.startswith(f"{name}.composite: about 1024 rows, ")
    assert composite.endswith(" MB, in about 10 chunks by a, b")
    assert keyless.endswith(" MB, as a whole")
    assert numbers.endswith(" MB, in about 10 chunks by n")
    assert "3 tables, about 3072 rows, " in total
    assert "at least 1536 s" in limited
    assert "binary log" in purge


@pytest.mark.faults
def test_load_goes_on_after_the_brokers_were_lost(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.make_table()
    bench.insert_many(30_000)
    bench.settings["THL_KAFKA__PROPERTIES"] = '{"message.timeout.ms": "1500"}'
    slow = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "1000", "THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND": "10000"}
    with bench.start(**slow) as running:
        running.online()
        until(lambda: last_seqno(bench) >= 3)
        bench.kafka.kill()
        until(lambda: "producer failed service=" in running.text)  # what was sent was not delivered in time
        bench.sql(f"DELETE FROM {bench.service}.t WHERE id % 3 = 1")  # the view of the load does not see it
        bench.kafka.start()
        running.loaded()
        assert "the initial load goes on" in running.text
        before = last_seqno(bench)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) > before)
        assert running.stop() == 0
    events = check(bench)
    assert [event[0]["metadata"].get("snapshot") for event in events].count("begin") == 1
