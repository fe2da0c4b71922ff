"""A source whose log does not name columns: published rows equal those with FULL metadata."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.kafka.log_reader import LogReader
from connector.kafka.records import definition_messages
from connector.log.ids import Seqno
from connector.log.transaction.definition import Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.spark.session import SparkRun
from tests.support.long import long
from tests.support.producing import Bench, finished, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.spark import session

SCRIPT = (
    "CREATE TABLE a (id INT UNSIGNED PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1, e ENUM('x','y'), s SET('p','q'))",
    "INSERT INTO a VALUES (4000000000, 'é', 'y', 'p,q')",
    "ALTER TABLE a ADD n INT AFTER id, ADD COLUMN m INT",
    "INSERT INTO a VALUES (1, 2, 'w', 'x', '', 3)",
    "ALTER TABLE a MODIFY m INT AFTER id",
    "UPDATE a SET v = 'u', m = 5 WHERE id = 1",
    "ALTER TABLE a RENAME COLUMN n TO m, RENAME COLUMN m TO n",
    "INSERT INTO a (id, n, m) VALUES (2, 7, 8)",
    "CREATE TABLE b LIKE a",
    "INSERT INTO b SELECT * FROM a",
    "RENAME TABLE a TO c, b TO a, c TO b",
    "DELETE FROM a WHERE id = 2",
    "CREATE TABLE `one, two` (`k y` BIGINT UNSIGNED, j JSON, t TIMESTAMP(3) NULL, d DECIMAL(9,4), PRIMARY KEY (`k y`))",
    "INSERT INTO `one, two` VALUES (18446744073709551615, '[1]', '2026-11-21 10:00:00.5', -1.5)",
    "ALTER TABLE `one, two` CHANGE `k y` k BIGINT UNSIGNED COMMENT ', DROP j'",
    "UPDATE `one, two` SET d = 2",
    "DROP TABLE b",
)


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    mysql_server.run_sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    result = Bench(mysql_server, kafka_broker, tmp_path)
    result.sql(
        f"CREATE DATABASE {result.service} CHARACTER SET latin1; USE {result.service}; "
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT); INSERT INTO t VALUES (0, 0, 0)"
    )
    yield result
    mysql_server.run_sql("SET GLOBAL binlog_row_metadata = FULL")


def use(bench: Bench, *statements: str) -> None:
    bench.sql(f"USE {bench.service}; " + "; ".join(statements))


def named_rows(bench: Bench) -> list[tuple[str, str, dict[str, Any]]]:
    """(action, table, after or before by name) of every row in the log, those of the initial load left out."""

    def named(change: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return dict(zip([c["name"] for c in change["columns"]], row["after"] or row["before"], strict=True))

    return [
        (change["action"], change["table"], named(change, row))
        for event in finished(fragments(bench.config))
        for fragment in event
        if not {"snapshot", "load_part"} & fragment["metadata"].keys()
        for change in fragment["changes"]
        if "rows" in change
        for row in change["rows"]
    ]


def settle(bench: Bench) -> int:
    """Wait until the log has what the source has."""
    use(bench, "CREATE TABLE fence (n INT PRIMARY KEY)", "INSERT INTO fence VALUES (1)")

    def there() -> bool:
        try:
            return named_rows(bench)[-1][1] == "fence"
        except (IndexError, AssertionError):
            return False

    until(there)
    return last_seqno(bench)


def target(bench: Bench, spark: SparkRun, folder: Path, seqno: int) -> dict[str, list[tuple[Any, ...]]]:
    """The log applied to SQLite: the columns and rows of each table, under the source's names."""
    path = folder / f"{bench.service}.db"
    config = bench.config.model_copy(
        update={
            "apply": Apply(checkpoint_dir=folder / "spark"),
            "target": Target(url=SecretStr(f"sqlite:///{path}")),
        }
    )
    assert Applier(config, spark, SystemClock(), Event(), until=Seqno(seqno)).run() is not None
    found = {}
    with sqlite3.connect(path) as db:
        for table, name in db.execute("SELECT table_name, target_name FROM thl_tables").fetchall():
            rows = db.execute(f'SELECT * FROM "{name}" ORDER BY 1')
            found[table] = [tuple(column[0] for column in rows.description), *rows.fetchall()]
    return found


def test_published_rows_equal_those_with_full_metadata(
    bench: Bench, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    full = Bench(bench.mysql, bench.kafka, bench.folder)
    full.sql(
        f"CREATE DATABASE {full.service} CHARACTER SET latin1; USE {full.service}; "
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT); INSERT INTO t VALUES (0, 0, 0)"
    )
    events, tables = {}, {}
    with session(tmp_path_factory.mktemp("spark")) as spark:
        for one, metadata in ((bench, "MINIMAL"), (full, "FULL")):
            one.sql(f"SET GLOBAL binlog_row_metadata = {metadata}")
            with one.start() as producing:
                producing.online()
                until(lambda: " loaded service=" in producing.text)
                use(one, "INSERT INTO t VALUES (1, 2, 3)", *SCRIPT)
                seqno = settle(one)
                assert producing.stop() == 0, producing.text
            events[metadata] = [
                {**change, "schema": ""}
                for event in finished(fragments(one.config))
                for fragment in event
                for change in fragment["changes"]
                if "rows" in change
            ]
            tables[metadata] = target(one, spark, tmp_path, seqno)

    assert len(events["FULL"]) == 11
    assert events["MINIMAL"] == events["FULL"]
    assert tables["MINIMAL"] == tables["FULL"]
    assert tables["FULL"]["a"][0] == ("id", "n", "m", "v", "e", "s")


@pytest.mark.parametrize("start", ["snapshot", *long("now")])
def test_columns_changed_under_load_are_followed(bench: Bench, start: str) -> None:
    """Two columns of one type change their places: their TABLE_MAPs are the same, their names are not."""
    stop = Event()

    def insert() -> None:
        number = 0
        while not stop.wait(0.02):  # else the log grows without end where the statements below are slow
            number += 1
            bench.sql(
                f"USE {bench.service}; "
                + "; ".join(f"INSERT INTO t (id, a, b) VALUES ({number * 100 + n}, {n}, {-n})" for n in range(1, 40))
            )

    with bench.start(THL_SOURCE__START=start) as producing:
        producing.online()
        load = Thread(target=insert)
        load.start()
        try:
            for _ in range(15):
                use(bench, "ALTER TABLE t MODIFY b INT AFTER id", "ALTER TABLE t MODIFY a INT AFTER id")
                use(bench, "ALTER TABLE t ADD c INT FIRST", "ALTER TABLE t RENAME COLUMN c TO d")
                use(bench, "ALTER TABLE t DROP COLUMN d")
        finally:
            stop.set()
            load.join()
        settle(bench)
        assert producing.stop() == 0, producing.text

    rows = [row for _, table, row in named_rows(bench) if table == "t"]
    assert len(rows) > 100
    assert len({tuple(row) for row in rows}) > 2
    assert all(row["a"] == row["id"] % 100 and row["b"] == -row["a"] for row in rows)


@pytest.mark.faults
@pytest.mark.parametrize("point", ["produce.before_commit", *long("produce.after_commit")])
def test_producer_killed_between_a_definition_and_its_rows_resumes(bench: Bench, point: str) -> None:
    """What the tables are is in Kafka, at the position's place: nothing local is needed, nothing is applied twice."""
    with bench.start() as first:
        until(lambda: " loaded service=" in first.text)
        use(bench, "INSERT INTO t VALUES (1, 2, 3)")
        until(lambda: bool(named_rows(bench)))
        assert first.stop() == 0
    use(bench, "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    with bench.start(THL_CRASH_POINT=f"{point}:1") as killed:
        assert killed.ended() == -signal.SIGKILL
    use(bench, "INSERT INTO t VALUES (4, 5, 6)")
    with bench.start() as second:
        until(lambda: len(named_rows(bench)) == 2)
        seqno = last_seqno(bench)
        use(bench, "ALTER TABLE t ADD c INT AFTER id")  # the last event is the definition: it is read again
        until(lambda: last_seqno(bench) > seqno)
        second.process.kill()
        second.ended()
    with bench.start() as third:
        third.online()
        use(bench, "INSERT INTO t VALUES (7, 8, 9, 10)")
        until(lambda: len(named_rows(bench)) == 3)
        assert third.stop() == 0
    assert [row for _, _, row in named_rows(bench)] == [
        {"id": 1, "a": 2, "b": 3},
        {"id": 4, "b": 5, "a": 6},
        {"id": 7, "c": 8, "b": 9, "a": 10},
    ]


def test_wrong_history_is_refused_with_the_difference(bench: Bench) -> None:
    with bench.start() as first:
        until(lambda: " loaded service=" in first.text)
        assert first.stop() == 0
    name = TableName(bench.service, "t")
    columns = (Column("id", "int", nullable=False), Column("a", "bigint"), Column("b", "int"))
    forged = TableDefinition(TableLayout(name, columns, (0,)), "latin1")
    producer = Producer({"bootstrap.servers": bench.kafka.bootstrap})
    for key, value in definition_messages(Redefined({name: forged}, {})):
        producer.produce(bench.config.control_topic, value, key)
    producer.flush()
    use(bench, "INSERT INTO t VALUES (1, 2, 3)")

    with bench.start() as second:
        assert second.ended() != 0

    assert "column 2, a, is int NULL, in the history bigint NULL" in second.text
    assert f"table={bench.service}.t" in second.text
    assert "file=mysql-bin" in second.text
    assert "SET GLOBAL binlog_row_metadata = FULL" in second.text


def test_a_table_that_is_dropped_is_a_tombstone(bench: Bench) -> None:
    with bench.start() as producing:
        until(lambda: " loaded service=" in producing.text)
        use(bench, "CREATE TABLE gone (id INT PRIMARY KEY)", "INSERT INTO gone VALUES (1)", "DROP TABLE gone")
        settle(bench)
        assert producing.stop() == 0
    with LogReader(bench.config) as reader:
        tables = reader.control().tables
    assert tables is not None
    assert {name.table for name in tables.tables} == {"t", "fence"}
    assert tables.schemas == {bench.service: "latin1"}


@pytest.mark.parametrize("start", ["earliest", "mysql-bin.000001:4"])
def test_start_before_later_definitions_is_refused(bench: Bench, start: str) -> None:
    with bench.start(THL_SOURCE__START=start) as producing:
        assert producing.ended() != 0
    assert "binlog_row_metadata is MINIMAL" in producing.text
    assert "start with a snapshot, or now" in producing.text


def test_full_metadata_needs_no_history_and_minimal_is_refused(bench: Bench) -> None:
    bench.sql("FLUSH BINARY LOGS; SET GLOBAL binlog_row_metadata = FULL")
    place = bench.sql("SHOW BINARY LOG STATUS").splitlines()[1].split("\t")
    with bench.start(THL_SOURCE__START=f"{place[0]}:{place[1]}") as producing:
        producing.online()
        use(bench, "INSERT INTO t VALUES (1, 2, 3)")
        until(lambda: len(named_rows(bench)) == 1)
        bench.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
        use(bench, "INSERT INTO t VALUES (2, 2, 3)")
        assert producing.ended() != 0
    assert f"table={bench.service}.t" in producing.text
    assert "SET GLOBAL binlog_row_metadata = FULL" in producing.text


def test_loaded_log_continues_without_column_names(bench: Bench) -> None:
    """FULL, MINIMAL and FULL again while it runs, and DDL in each."""
    bench.sql("SET GLOBAL binlog_row_metadata = FULL")
    with bench.start() as producing:
        until(lambda: " loaded service=" in producing.text)
        for number, metadata in enumerate(("FULL", "MINIMAL", "FULL", "MINIMAL")):
            bench.sql(f"SET GLOBAL binlog_row_metadata = {metadata}")
            use(bench, f"ALTER TABLE t ADD c{number} INT FIRST", f"INSERT INTO t (id) VALUES ({number + 1})")
        settle(bench)
        assert producing.stop() == 0
    names = [list(row) for _, table, row in named_rows(bench) if table == "t"]
    assert names == [[f"c{n}" for n in range(number, -1, -1)] + ["id", "a", "b"] for number in range(4)]


def test_rows_before_the_position_need_no_names_in_an_archive(bench: Bench, tmp_path: Path) -> None:
    """A file is read from its beginning, where the table was different: its names are unknown and not needed."""
    folder = tmp_path / "archive"
    bench.sql("FLUSH BINARY LOGS")
    with bench.start() as first:
        until(lambda: " loaded service=" in first.text)
        use(bench, "INSERT INTO t VALUES (1, 2, 3)", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
        use(bench, "INSERT INTO t VALUES (2, 3, 4)", "ALTER TABLE t ADD c VARCHAR(9) FIRST, DROP COLUMN b")
        use(bench, "INSERT INTO t VALUES ('x', 3, 5)")
        until(lambda: len(named_rows(bench)) == 3)
        assert first.stop() == 0
    use(bench, "INSERT INTO t VALUES ('y', 4, 6)", "ALTER TABLE t DROP COLUMN a", "INSERT INTO t VALUES ('z', 5)")
    bench.sql("FLUSH BINARY LOGS")
    archiving = [sys.executable, "-m", "connector", "archive", str(folder), "--to-now"]
    subprocess.run(archiving, env={**os.environ, **bench.environment}, check=True, capture_output=True)
    newest = bench.sql("SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
    bench.sql(f"PURGE BINARY LOGS TO '{newest}'")
    bench.settings["THL_SOURCE__ARCHIVE"] = str(folder)
    with bench.start() as second:
        second.online()
        assert "from the archive" in second.text
        use(bench, "INSERT INTO t VALUES ('live', 6)")
        until(lambda: len(named_rows(bench)) == 6)
        assert second.stop() == 0, second.text
    assert [row for _, _, row in named_rows(bench)] == [
        {"id": 1, "a": 2, "b": 3},
        {"id": 2, "b": 3, "a": 4},
        {"c": "x", "id": 3, "a": 5},
        {"c": "y", "id": 4, "a": 6},
        {"c": "z", "id": 5},
        {"c": "live", "id": 6},
    ]
