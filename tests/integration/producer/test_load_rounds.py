"""Rounds of several connections read every row of every kind of key once; each round has one view."""

from __future__ import annotations

import logging
import threading
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.errors import PreflightError, SandboxError
from connector.log.compact.row_keys import keys as keys_of
from connector.log.ids import Action
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import connect, query
from connector.mysql.server.snapshot_point import check_one_server
from connector.mysql.snapshot.estimate import estimate_load
from connector.mysql.snapshot.key_ranges import Bound
from connector.mysql.snapshot.load_round import LoadRound, RoundTable
from connector.mysql.snapshot.loadable import Purpose
from connector.mysql.snapshot.snapshot import read_snapshot
from connector.mysql.snapshot.table_rows import table_rows
from connector.mysql.transforms.filters import Filter
from connector.repair.repairs import text_of
from connector.verify.source import SourceReader
from tests.support.grants import granted
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
    "clusters": ("k INT PRIMARY KEY, v INT", "n DIV 256 * 100000000 + n MOD 256 - 200000000, n", True),
    "highest": ("k BIGINT UNSIGNED PRIMARY KEY, v INT", "18446744073709551615 - n * 3, n", True),
    "padded": ("k INT(10) UNSIGNED ZEROFILL PRIMARY KEY, v INT", "n * 9, n", True),
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


@dataclass
class Read:
    """What rounds have read.

    Args:
        connections: of the last round.
        rounds: their number.
        rows: the rows of each table.
    """

    connections: int = 0
    rounds: int = 0
    rows: dict[str, list[list[Any]]] = field(default_factory=dict)

    @property
    def counted(self) -> dict[str, Counter[str]]:
        return {table: Counter(map(repr, rows)) for table, rows in self.rows.items()}


def read_round(source: Source, after: dict[TableName, Bound | None], read: Read) -> dict[TableName, Bound | None]:
    """Reads one round; returns the tables that have more rows, as `TableLoads` wants them in the next round."""
    wanted = [RoundTable(*one) for one in after.items()]
    opened = LoadRound(source, Filter(source.filters), wanted, SystemClock(), lock=True)
    try:
        opened.open(None)
        read.rounds += 1
        read.connections = len(opened._sessions)
        for name, rows in opened.rows(after):
            assert rows.action is Action.READ
            read.rows.setdefault(name.table, []).extend(values(rows))
        progress = {name: opened.progress(name) for name in after}
    finally:
        opened.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("load-")]
    return {name: key for name, (key, ended) in progress.items() if not ended}


def load(source: Source, *names: TableName) -> Read:
    """Reads tables in as many rounds as it takes."""
    read = Read()
    after: dict[TableName, Bound | None] = dict.fromkeys(names)
    while after:
        after = read_round(source, after, read)
    return read


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

    monkeypatch.setattr("connector.mysql.snapshot.load_round.table_rows", counted)
    with a_database(each_server, "keys") as (source, name):
        fill(source, name, *KEYS)
        names = [TableName(name, table) for table in KEYS]
        parallel = load(by(source, round_seconds=60), *names)
        divided = dict(chunks)
        chunks.clear()
        serial = load(by(source, connections=1, round_seconds=60, chunk_rows=100_000), *names)
        whole = dict(chunks)
        rounds = {table: load(by(source, round_seconds=1e-6), one) for table, one in zip(KEYS, names, strict=True)}
    assert (parallel.connections, parallel.rounds, serial.connections, serial.rounds) == (3, 1, 1, 1)
    assert parallel.counted == serial.counted
    assert {rows.total() for rows in serial.counted.values()} == {1024}
    assert set(whole.values()) <= {1, 2}  # 2: an end that was reckoned is not known to be the table's
    for table, read in rounds.items():
        assert read.counted[table] == serial.counted[table], table
        assert (read.rounds > 4) == KEYS[table][2], (table, read.rounds)
    for table, (_, _, is_divided) in KEYS.items():
        assert (divided[table] > 4) == is_divided, (table, divided)
        assert divided[table] < 40


def keys_as_compared(source: Source, name: TableName) -> tuple[tuple[str, ...], ...]:
    """The keys of a table's rows as `thl verify --repair` asks for them."""
    with closing(SourceReader(source)) as reader:
        reader.view()
        (compared,) = (one for one in reader.tables(Filter(source.filters)) if one.name == name)
        columns = [(index, compared.columns[index]) for index in compared.key]
        return tuple(tuple(text_of(one, row[index]) for index, one in columns) for row in reader.rows(compared))


@pytest.mark.parametrize("server", ["mysql_server", "mariadb_server"])
def test_rows_of_every_kind_of_key_are_found_by_their_keys(server: str, request: pytest.FixtureRequest) -> None:
    """Each row is read once, and deletes, which come first, are of keys that the table has not: none of the others."""
    by_keys = [table for table in KEYS if KEYS[table][2] and table != "mixed"]
    with a_database(request.getfixturevalue(server), "bykeys") as (source, name):
        fill(source, name, *by_keys)
        names = {TableName(name, table) for table in by_keys}
        keys = {one: keys_as_compared(source, one) for one in names}
        asked = {one: found[::2] for one, found in keys.items()}
        run(source, name, *(f"DELETE FROM {table} WHERE v % 3 = 0" for table in by_keys))
        opened = LoadRound(
            source,
            Filter(source.filters),
            [RoundTable(one, None, asked[one]) for one in names],
            SystemClock(),
            lock=True,
        )
        read: dict[TableName, dict[Action, list[bytes]]] = {one: {} for one in names}
        try:
            opened.open(None)
            for one, rows in opened.rows(names):
                read[one].setdefault(rows.action, []).extend(map(key_of, [rows] * rows.count, range(rows.count)))
            assert [opened.failed(one) for one in names] == [None] * len(names)
        finally:
            opened.close()
        there = {one: set(keys_as_compared(source, one)) for one in names}
    for one in names:
        left = sum(key in there[one] for key in asked[one])
        found, gone = read[one][Action.READ], read[one][Action.DELETE]
        assert (len(found), len(gone)) == (left, len(asked[one]) - left), one
        assert not set(found) & set(gone)
        # First: 'A' that is deleted after 'a' takes it along on a target with the source's collation.
        assert next(iter(read[one])) is Action.DELETE
        assert len({*found, *gone}) == len(asked[one])


def key_of(rows: Rows, index: int) -> bytes:
    start = rows.ends[index - 1] if index else 0
    row = Rows(rows.layout, rows.action, rows.data[start : rows.ends[index]], array("Q", [rows.ends[index] - start]),
               rows.before, rows.after)  # fmt: skip
    (key,) = keys_of(row)
    return key


def test_all_connections_have_one_view_under_load(database: tuple[Source, str]) -> None:
    """Each transaction moves one from a row to another: any single view has the same sum."""
    source, name = database
    fill(source, name, "dense", "composite")
    names = TableName(name, "dense"), TableName(name, "composite")
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
            read = Read()
            assert not read_round(by(source, round_seconds=60), dict.fromkeys(names), read)
            assert read.connections == 3
            assert sum(row[-1] for rows in read.rows.values() for row in rows) == 2 * (1023 * 1024 // 2)
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_tables_named_first_are_loaded_first(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, *(f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in ("a", "b", "c1", "c2")))
    source = by(source, first=(f"{name}.c*", f"{name}.b"))
    snapshot = read_snapshot(source, Filter(source.filters), SystemClock())
    assert [one.table for one in snapshot.tables] == ["c1", "c2", "b", "a"]


def test_chunk_is_no_larger_than_the_rows_a_second(database: tuple[Source, str]) -> None:
    source, name = database
    fill(source, name)
    limited = by(source, max_rows_per_second=50, chunk_rows=1000, round_seconds=1e-6)
    read = Read()
    after = read_round(limited, {TableName(name, "numbers"): None}, read)
    assert read.rows["numbers"] == [[number] for number in range(50)]
    assert after == {TableName(name, "numbers"): ("49",)}


def test_round_reads_about_as_many_rows_as_may_be_read_in_a_second(database: tuple[Source, str]) -> None:
    source, name = database
    fill(source, name)
    limited = by(source, max_rows_per_second=250, chunk_rows=100, round_seconds=60)
    read = Read()
    read_round(limited, {TableName(name, "numbers"): None}, read)
    assert sorted(read.rows["numbers"]) == [[number] for number in range(300)]


def test_refused_connections_leave_fewer_readers_and_a_warning(
    mysql_server: SqlServer, database: tuple[Source, str], caplog: pytest.LogCaptureFixture
) -> None:
    source, name = database
    fill(source, name, "dense")
    grants = granted("mysql-source.sql", "log", "tables", "loads", schema=name)
    with a_user(mysql_server, *grants, do=(name,)) as limited:
        mysql_server.run_sql(f"ALTER USER {limited.user} WITH MAX_USER_CONNECTIONS 2")
        with caplog.at_level(logging.WARNING):
            read = load(by(limited), TableName(name, "dense"))
    assert read.connections == 2
    assert read.counted["dense"].total() == 1024
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


def test_dry_run_shows_tables_rows_and_chunks_without_kafka(
    database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, name = database
    fill(source, name, "composite", "keyless")
    for setting, value in {"HOST": source.host, "PORT": source.port, "USER": source.user, "SERVER_ID": 4711}.items():
        monkeypatch.setenv(f"THL_SOURCE__{setting}", str(value))
    monkeypatch.setenv("THL_SOURCE__PASSWORD", source.password.get_secret_value())
    monkeypatch.setenv("THL_SOURCE__FILTERS__DO", f'["{name}"]')
    monkeypatch.setenv("THL_SOURCE__SNAPSHOT__CHUNK_ROWS", "100")
    monkeypatch.setenv("THL_KAFKA__BOOTSTRAP", "127.0.0.1:1")  # nothing listens there
    assert thl(["produce", "--dry-run", "--set", "source.snapshot.max_rows_per_second=2"]) == 0
    total, limited, others, purge, composite, keyless, numbers = sorted(capsys.readouterr().out.splitlines())
    assert composite.startswith(f"{name}.composite: about 1024 rows, ")
    assert composite.endswith(" MB, in about 512 chunks by a, b")
    assert keyless.endswith(" in which transactions wait, because it has no primary key")
    assert numbers.endswith(" MB, in about 512 chunks by n")
    assert "3 tables, about 3072 rows, " in total
    assert limited == "Expected: about 1536 s, by source.snapshot.max_rows_per_second (2)"
    assert "Kafka" in others
    assert "binary log" in purge


def test_dry_run_names_every_table_that_the_load_refuses(mariadb_server: SqlServer) -> None:
    with a_database(mariadb_server, "refused") as (server, name):
        for statement in (
            "CREATE TABLE good (k INT PRIMARY KEY)",
            "CREATE SEQUENCE numbers",
            "CREATE TABLE versioned (k INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            "CREATE TABLE isam (k INT PRIMARY KEY) ENGINE = MyISAM",
            "CREATE TABLE one (k INT)",
            "CREATE TABLE other (k INT PRIMARY KEY)",
        ):
            run(server, name, statement)
        rules = [{"match": [f"{name}.{table}"], "publish_as": f"{name}.joined"} for table in ("one", "other")]
        filters = server.filters.model_validate({"do": [name], "tables": rules})
        source = server.model_copy(update={"filters": filters})
        filter = Filter.of(source)
        told = estimate_load(source, filter, SystemClock(), Purpose.INITIAL)
        assert [each.name.table for each in told.tables] == ["good"]
        refused = {table.partition(".")[2]: why for table, why in told.refused.items()}
        assert set(refused) == {"numbers", "versioned", "isam", "one", "other"}
        assert "without a primary key" in refused["other"]
        drops = ("SEQUENCE numbers", "TABLE versioned", "TABLE isam", "TABLE one")
        reasons = ("numbers", "versioned", "isam", "other")
        for drop, table in zip(drops, reasons, strict=True):
            with pytest.raises(PreflightError) as error:
                read_snapshot(source, filter, SystemClock())
            assert error.value.message in refused[table]
            run(server, name, f"DROP {drop}")
        read_snapshot(source, filter, SystemClock())


@pytest.mark.faults
def test_load_goes_on_after_the_brokers_were_lost(
    mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.make_table()
    bench.insert_many(30_000)
    bench.settings["THL_KAFKA__PROPERTIES"] = '{"message.timeout.ms": "1500"}'
    bench.settings["THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND"] = "5000"
    small = {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "1000", "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.000001"}
    with bench.start(**small) as running:
        running.online()
        until(lambda: "published a round of loads" in running.text)
        bench.kafka.kill()
        until(lambda: "producer failed service=" in running.text)  # what was sent was not delivered in time
        assert "loaded a table" not in running.text
        bench.sql(f"DELETE FROM {bench.service}.t WHERE id % 3 = 1")
        bench.kafka.start()
        running.loaded()
        assert "the load of a table goes on" in running.text
        before = last_seqno(bench)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) > before)
        assert running.stop() == 0
    events = check(bench)
    assert [event[0]["metadata"].get("snapshot") for event in events].count("begin") == 1
    keys = Counter(
        row["after"][0]
        for event in events
        if event[0]["metadata"].get("load_part") == "rows"
        for part in event
        for change in part["changes"]
        for row in change["rows"]
    )
    assert len(keys) > 20_000
    assert sum(count - 1 for count in keys.values()) <= 4 * 1000  # the chunks of one round
