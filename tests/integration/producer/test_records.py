"""A record store completes partial row images: the logs of three servers with images of their own are equal.

Sessions on the source choose their images, MINIMAL mostly. A replica that logs with FULL has whole images of the same
transactions, and so the expected log; another one logs with NOBLOB.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.errors import RecordsDamaged
from connector.log.ids import LogId
from connector.log.transaction.batch import Rows
from connector.log.transaction.position import AfterGtids
from connector.mysql.transforms.filters import Filter
from connector.producer.records.report import rebuild_store, report, verify_store
from connector.records.database import Database
from connector.records.versions import Versions
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.applier.test_row_images import STATEMENTS, SWAP, TABLES
from tests.support.binlog import changes, images, read_from, row_changes
from tests.support.mysql import connect
from tests.support.producing import SMALL, Bench, finished, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer

LITTLE = {
    **MYSQL_FAST,
    "innodb_buffer_pool_size": "32M",
    "innodb_redo_log_capacity": "32M",
    "log_replica_updates": "ON",
}
DDL = [
    "ALTER TABLE k ADD COLUMN late VARCHAR(9) NOT NULL DEFAULT 'late' AFTER a",
    "ALTER TABLE k RENAME COLUMN v TO w; UPDATE k SET a = a + 1; ALTER TABLE k RENAME COLUMN w TO v",
    "ALTER TABLE c MODIFY price DECIMAL(12,4)",
    "ALTER TABLE c RENAME TO c2; UPDATE c2 SET note = 'renamed'; RENAME TABLE c2 TO c",
    "UPDATE k SET late = 'x' WHERE id < 9; ALTER TABLE k DROP COLUMN late",
    "ALTER TABLE k DROP COLUMN f, ADD COLUMN f DOUBLE DEFAULT 0.75",  # the columns look the same
    "TRUNCATE TABLE large",
    "CREATE TABLE copied (PRIMARY KEY (id)) SELECT id, a, v FROM k",
    "UPDATE copied SET v = 'changed' WHERE id < 30",
    "DROP TABLE copied",
]


class Trio:
    """A source with MINIMAL, and two replicas that log with images of their own."""

    def __init__(self, folder: Path) -> None:
        self.first = MySqlServer(folder / "1", settings={**LITTLE, "binlog_row_image": "MINIMAL"}, die_with_parent=True)
        self.full = MySqlServer(folder / "2", settings={**LITTLE, "server_id": "2"}, die_with_parent=True)
        self.noblob = MySqlServer(
            folder / "3", settings={**LITTLE, "server_id": "3", "binlog_row_image": "NOBLOB"}, die_with_parent=True
        )

    def follow(self) -> None:
        """Let the replicas follow."""
        first = self.first
        for replica in (self.full, self.noblob):
            replica.run_sql(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{first.host}', SOURCE_PORT = {first.port}, SOURCE_USER = "
                f"'{first.user}', SOURCE_PASSWORD = '{first.password}', SOURCE_AUTO_POSITION = 1, "
                "GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
            )

    def wait(self) -> None:
        """Wait until the replicas have everything."""
        executed = self.first.run_sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].replace("\\n", "")
        for replica in (self.full, self.noblob):
            assert "0" in replica.run_sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)").splitlines()[1]


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    made = Trio(tmp_path_factory.mktemp("trio"))
    with made.first, made.full, made.noblob:
        made.follow()
        yield made


def benches(trio: Trio, kafka: Broker, folder: Path) -> list[Bench]:
    """A producer for each: of whole images, and two with a record store, of MINIMAL and of NOBLOB."""
    database = Bench(trio.first, kafka, folder).service
    trio.first.run_sql(f"CREATE DATABASE {database}")
    trio.wait()
    settings = {**SMALL, "THL_SOURCE__FILTERS__DO": f'["{database}"]'}
    made = [Bench(trio.full, kafka, folder, settings=settings)]
    for server in (trio.first, trio.noblob):
        one = Bench(server, kafka, folder)
        records = {"THL_SOURCE__RECORDS__DIR": str(folder / f"records-{one.service}")}
        made.append(replace(one, settings={**settings, **records}))
    return [replace(one, settings={**one.settings, "DATABASE": database}) for one in made]


def database_of(bench: Bench) -> str:
    return bench.settings["DATABASE"]


def churn(cursor: Any, draw: random.Random, steps: int) -> None:
    """Random statements, some in transactions of several, under images that change."""
    for step in range(steps):
        if step % 8 == 0:
            cursor.execute("COMMIT")
            image = draw.choice(["MINIMAL", "MINIMAL", "MINIMAL", "NOBLOB", "FULL"])
            options = draw.choice(["", "PARTIAL_JSON"])
            cursor.execute(f"SET SESSION binlog_row_image = {image}, SESSION binlog_row_value_options = '{options}'")
            cursor.execute("BEGIN" if step % 16 else "COMMIT")
        one, other = draw.randrange(1, 60), draw.randrange(1, 60)
        cursor.execute(draw.choice(STATEMENTS).format(one, other))
        if draw.random() < 0.1 and one != other:
            cursor.execute(f"SELECT COUNT(*) FROM k WHERE id IN ({one}, {other})")
            if cursor.fetchone()[0] == 2:
                for sql in SWAP:
                    cursor.execute(sql.format(one, other))
    cursor.execute("COMMIT")


def two_phases(server: MySqlServer, cursor: Any, database: str) -> None:
    """An XA transaction, and a change of the same row by another one, before the first is prepared."""
    cursor.execute("REPLACE INTO k (id, a, t) VALUES (500, 1, 'before'), (501, 1, 'other')")
    with connect(server) as other, other.cursor() as beside:
        beside.execute(f"USE {database}")
        cursor.execute("UPDATE k SET t = 'first' WHERE id = 500")
        for sql in ("XA START 'one'", "UPDATE k SET a = a + 1 WHERE id = 500", "DELETE FROM k WHERE id = 501"):
            beside.execute(sql)
        beside.execute("XA END 'one'")
        beside.execute("XA PREPARE 'one'")
        cursor.execute("UPDATE k SET a = 7 WHERE id < 20")
        beside.execute("XA COMMIT 'one'")
        for sql in ("XA START 'two'", "UPDATE k SET a = a + 1 WHERE id = 500", "XA END 'two'", "XA PREPARE 'two'"):
            beside.execute(sql)
        beside.execute("XA ROLLBACK 'two'")
        cursor.execute("UPDATE k SET v = 'last' WHERE id = 500")


def events_of(bench: Bench) -> list[dict[str, Any]]:
    """The events of the stream, each with its changes as they are to consumers."""
    found = []
    for event in finished(fragments(bench.config)):
        head, last = event[0], event[-1]
        if head["kind"] == "load" or "snapshot" in head["metadata"]:
            continue
        found.append(
            {
                "kind": head["kind"],
                "gtid": head["gtid"],
                "shard": head["shard"],
                "outcome": last["outcome"],
                "rows": last["rows"],
                "changes": flat([change for fragment in event for change in fragment["changes"]]),
            }
        )
    return found


def flat(changes: Sequence[dict[str, Any]]) -> list[Any]:
    """Statements, and rows one by one with all that is said of them."""
    found: list[Any] = []
    for change in changes:
        if "rows" not in change:
            assert "sql" in change, "a row of this test is not in parts"
            found.append((change["schema"], change["sql"]))
            continue
        facts = tuple(change[name] for name in ("schema", "table", "action", "before_present", "after_present"))
        layout = repr((change["columns"], change["key_columns"]))
        names = [column["name"] for column in change["columns"]]
        rows = [
            (*facts, layout, *(stored(row[image], names) for image in ("before", "after"))) for row in change["rows"]
        ]
        # A replica changes the rows of a table without a key in the order in which it finds them.
        found += rows if change["key_columns"] else sorted(rows, key=repr)
    return found


def stored(image: list[Any] | None, names: Sequence[str]) -> list[Any] | None:
    """An image without the value of the VIRTUAL column: a replica of a source with MINIMAL logs it as NULL."""
    if image is None or "gv" not in names or len(image) != len(names):
        return image
    return [None if name == "gv" else value for name, value in zip(names, image, strict=True)]


def wrong_virtual_values(bench: Bench) -> list[list[Any]]:
    """The images in which the VIRTUAL column is not what it is computed from."""
    wrong = []
    for fragment in fragments(bench.config):
        for change in fragment["changes"]:
            names = [column["name"] for column in change.get("columns", ())]
            images = [image for row in change.get("rows", ()) for image in row.values() if image and "gv" in names]
            for image in images:
                row = dict(zip(names, image, strict=True))
                if row["gv"] != (None if row["a"] is None else row["a"] + 1):
                    wrong.append(image)
    return wrong


def partial_rows(events: Sequence[dict[str, Any]]) -> int:
    """Rows whose images lack columns."""
    return sum(bool(one[3] or one[4]) for event in events for one in event["changes"] if len(one) > 2)


def compare(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare two logs event by event, value by value."""
    assert [event["gtid"] for event in found] == [event["gtid"] for event in expected]
    for one, other in zip(found, expected, strict=True):
        assert len(one["changes"]) == len(other["changes"]), (one, other)
        for mine, whole in zip(one["changes"], other["changes"], strict=True):
            assert mine == whole, one["gtid"]
        assert one == other


def rows_of(server: MySqlServer) -> list[Rows]:
    """The changed rows in a server's own log, as the producer reads them for a record store."""
    captured = Filter(Filters(), records=True)
    found = read_from(server, AfterGtids(""), lambda found: bool(row_changes(found, "the_end")), filters=captured)
    return [change for change in changes(found) if isinstance(change, Rows)]


def partial_in(logged: list[Rows]) -> int:
    """Rows whose images lack columns."""
    return sum(change.count for change in logged if change.before or change.after)


def differences_in(logged: list[Rows]) -> int:
    """Documents that are differences from documents which the before images lack."""
    found = 0
    for change in logged:
        documents = [at for at, column in enumerate(change.layout.columns) if column.type == "json"]
        for _, image in images(change) if documents and change.after else ():
            there = [at for at in range(len(change.layout.columns)) if change.after[at >> 3] >> (at & 7) & 1]
            found += sum(at in documents and isinstance(value, bytes) for at, value in zip(there, image, strict=True))
    return found


def test_logs_of_partial_images_equal_that_of_whole_images(trio: Trio, kafka_broker: Broker, tmp_path: Path) -> None:
    full, minimal, noblob = benches(trio, kafka_broker, tmp_path)
    with full.start() as a, minimal.start() as b, noblob.start() as c:
        for one in (a, b, c):
            one.loaded()
        draw = random.Random(7)
        with connect(trio.first) as connection, connection.cursor() as cursor:
            cursor.execute(f"USE {database_of(full)}")
            for sql in TABLES:
                cursor.execute(sql)
            churn(cursor, draw, 500)
            for group in DDL:
                for sql in group.split("; "):
                    cursor.execute(sql)
                churn(cursor, draw, 40)
            two_phases(trio.first, cursor, database_of(full))
            cursor.execute("CREATE TABLE the_end (a INT) SELECT 1 AS a")
        trio.wait()
        for bench, process in ((full, a), (minimal, b), (noblob, c)):
            until(lambda bench=bench, process=process: process.process.poll() is not None or _ended(bench))
            assert process.process.poll() is None, process.text
    expected = events_of(full)
    assert len(expected) > 300
    assert partial_rows(expected) == 0
    logged = rows_of(trio.first)
    assert min(partial_in(logged), partial_in(rows_of(trio.noblob))) > 500
    assert differences_in(logged) > 30
    for bench in (minimal, noblob):
        found = events_of(bench)
        assert partial_rows(found) == 0
        compare(found, expected)
    assert wrong_virtual_values(minimal) == []


KILLS = 8


@pytest.mark.long
@pytest.mark.faults
def test_a_store_that_is_killed_old_foreign_damaged_or_gone_gives_the_same_log(
    trio: Trio, kafka_broker: Broker, tmp_path: Path
) -> None:
    full, minimal, _ = benches(trio, kafka_broker, tmp_path)
    store = Path(minimal.settings["THL_SOURCE__RECORDS__DIR"])
    draw = random.Random(11)
    with (
        full.start() as whole,
        connect(trio.first) as connection,
        connection.cursor() as cursor,
    ):
        whole.loaded()
        with minimal.start() as first:
            first.loaded()
            cursor.execute(f"USE {database_of(full)}")
            for sql in TABLES:
                cursor.execute(sql)
            churn(cursor, draw, 50)
            trio.wait()
            assert first.stop() == 0
        shutil.copytree(store, tmp_path / "older")
        for _ in range(KILLS):
            with minimal.start() as killed:
                killed.online()
                churn(cursor, draw, 30)
                time.sleep(draw.uniform(0, 1.5))
                killed.process.kill()
        said = [follow(trio, full, minimal, cursor, draw)]
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "older", store)
        said.append(follow(trio, full, minimal, cursor, draw))
        assert "the record store has read events of the log" in said[-1]
        shutil.rmtree(store)
        said.append(follow(trio, full, minimal, cursor, draw))
        assert "the record store has read events of the log" in said[-1]
        shutil.rmtree(store)
        Versions(Database(store, cache_bytes=1 << 20), LogId("f" * 32), horizon=100_000, cache_bytes=1).close()
        said.append(follow(trio, full, minimal, cursor, draw))
        assert "the record store is of another log" in said[-1]
        flip(store)
        with pytest.raises(RecordsDamaged):
            verify_store(minimal.config)
        said.append(follow(trio, full, minimal, cursor, draw))
        assert "the record store begins again" in said[-1]
        assert verify_store(minimal.config)[0] > 0
        flip(store)
        rebuild_store(minimal.config)
        told = {str(one.entry.table.name.table): one.rows for one in report(minimal.config).tables}
        cursor.execute("SELECT COUNT(*) FROM k")
        assert told["k"] == cursor.fetchone()[0]
        said.append(follow(trio, full, minimal, cursor, draw))
        assert "the record store begins again" not in said[-1]
        until(lambda: len(events_of(full)) == len(events_of(minimal)))
    found = events_of(minimal)
    assert partial_rows(found) == 0
    compare(found, events_of(full))


def follow(trio: Trio, full: Bench, minimal: Bench, cursor: Any, draw: random.Random) -> str:
    """Let the producer of the replica publish further changes; return what it said."""
    churn(cursor, draw, 40)
    trio.wait()
    with minimal.start() as process:
        process.online()
        until(lambda: process.process.poll() is not None or len(events_of(minimal)) >= len(events_of(full)))
        assert process.process.poll() is None, process.text
        assert process.stop() == 0
        return process.text


def flip(store: Path) -> None:
    """Flip a bit of the first block of the largest file."""
    largest = max(store.glob("*.sst"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    damaged[40] ^= 0x04
    largest.write_bytes(damaged)


def _ended(bench: Bench) -> bool:
    if last_seqno(bench) < 0:
        return False
    newest = finished(fragments(bench.config))[-1]
    return any("the_end" in change.get("sql", "") for change in newest[-1]["changes"])


def test_rows_of_a_load_complete_later_images(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.settings["THL_SOURCE__RECORDS__DIR"] = str(tmp_path / "records")
    bench.make_table()
    bench.insert_many(5000)
    table = f"{bench.service}.t"
    mysql_server.run_sql("SET GLOBAL binlog_row_image = 'MINIMAL'")
    try:
        with bench.start() as process:
            process.online()
            for number in range(30):  # some of them before their chunk is read
                bench.sql(f"UPDATE {table} SET v = CONCAT(v, '+') WHERE id % 100 = {number}")
            process.loaded()
            until(lambda: " loaded a table " in process.text)
            bench.sql(f"CREATE TABLE {bench.service}.the_end (id INT PRIMARY KEY)")  # of the load, and of those updates
            until(lambda: _ended(bench) or process.process.poll() is not None)
            after = last_seqno(bench)
            bench.sql(f"UPDATE {table} SET v = 'late' WHERE id % 500 = 3; DELETE FROM {table} WHERE id % 500 = 4")
            bench.sql(f"ALTER TABLE {table} ADD COLUMN w INT NOT NULL DEFAULT 4; UPDATE {table} SET w = 5 WHERE id < 9")
            until(lambda: last_seqno(bench) >= after + 4 or process.process.poll() is not None)
            assert process.stop() == 0, process.text
    finally:
        mysql_server.run_sql("SET GLOBAL binlog_row_image = 'FULL'")
    events = [event for event in finished(fragments(bench.config)) if event[0]["seqno"] > after]
    found = flat([change for event in events for fragment in event for change in fragment["changes"]])
    rows = [change for change in found if len(change) > 2]
    assert len(rows) > 20
    assert all(not (one[3] or one[4]) for one in rows)
    assert {one[-1][1] for one in rows if one[2] == "update" and len(one[-1]) == 2} == {"late"}
    assert {(one[-2][2], one[-1][2]) for one in rows if one[2] == "update" and len(one[-1]) == 3} == {(4, 5)}
    stored = {str(one.entry.table.name.table): one for one in report(bench.config).tables}
    count = int(bench.sql(f"SELECT COUNT(*) FROM {table}").splitlines()[1])
    assert (stored["t"].rows, stored["t"].missing) == (count, "")
