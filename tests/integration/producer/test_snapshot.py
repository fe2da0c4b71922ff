"""The initial load is exact at one position, and ends when DDL changes its tables."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from connector.clock import Clock
from connector.config.source import Source
from connector.errors import PreflightError, SourceChanged, SourceUnavailable
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import AfterGtids
from connector.log.transaction.xa import Logged
from connector.mysql.server import snapshot_point as moment
from connector.mysql.server.connection import Connection, connect, query
from connector.mysql.server.snapshot_point import SnapshotPoint, await_decided, fix_snapshot_point
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.snapshot.snapshot import Snapshot
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, read_from
from tests.support.clock import Slept
from tests.support.loading import EVERYTHING, a_database, loaded, run, take, values
from tests.support.producing import until
from tests.support.servers.environment import SqlServer


@pytest.fixture
def database(mysql_server: SqlServer) -> Iterator[tuple[Source, str]]:
    with a_database(mysql_server, "snapshot") as made:
        yield made


def executed(source: Source) -> str:
    connection = connect(source)
    try:
        gtids = gtid_executed(connection)
    finally:
        connection.close()
    assert gtids is not None
    return gtids


def sleeping(source: Source) -> bool:
    """Whether a statement sleeps, with its tables open."""
    connection = connect(source)
    try:
        return bool(query(connection, "SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep'"))
    finally:
        connection.close()


def an_open(source: Source) -> Snapshot:
    snapshot = Snapshot(source, Filter(source.filters))
    snapshot.open()
    return snapshot


def test_a_load_and_the_log_give_the_same_layouts_and_rows(
    mysql_server: SqlServer, database: tuple[Source, str]
) -> None:
    source, name = database
    before = executed(source)
    run(source, name, "SET NAMES utf8mb4", *EVERYTHING)

    by_load: dict[TableLayout, Counter[str]] = {}
    for change in changes(take(source)):
        if isinstance(change, Rows):
            by_load.setdefault(change.layout, Counter()).update(map(repr, values(change)))
    wanted = sum(rows.total() for rows in by_load.values())
    assert len(by_load) == 6

    def rows_of(found: list[Logged]) -> list[Rows]:
        return [c for c in changes(found) if isinstance(c, Rows) and c.layout.name.schema == name]

    streamed = read_from(
        mysql_server, AfterGtids(before), lambda found: sum(rows.count for rows in rows_of(found)) >= wanted
    )
    by_log: dict[TableLayout, Counter[str]] = {}
    for change in rows_of(streamed):
        by_log.setdefault(change.layout, Counter()).update(map(repr, values(change)))
    for here, there in zip(sorted(by_load, key=str), sorted(by_log, key=str), strict=True):
        assert list(here.columns) == list(there.columns)
        assert here == there
        assert by_load[here] == by_log[there], here.name


def test_the_events_are_those_of_the_protocol(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT)", "INSERT INTO a VALUES (2), (1)")
    snapshot = an_open(source)
    position, gtid_set = snapshot.position
    pieces = list(snapshot.batches())
    snapshot.close()

    parts = [piece.begin.metadata["snapshot"] for piece in pieces if piece.begin]
    assert parts == ["begin", "table", "rows", "table", "end"]
    for piece in pieces:
        assert piece.begin is not None
        assert piece.ending is not None
        assert piece.begin.start == piece.ending.end == position
        assert piece.ending.outcome is Outcome.COMMIT
        assert abs(piece.ending.commit_time / 1e6 - time.time()) < 60
        assert (piece.begin.kind is Kind.DDL) == (piece.begin.metadata["snapshot"] == "table")
    table = [change for change in pieces[1].changes if isinstance(change, Statement)]
    assert [statement.schema for statement in table] == [name, name]
    assert table[0].sql.startswith(f"CREATE DATABASE IF NOT EXISTS `{name}` ")
    assert table[1].sql.startswith("CREATE TABLE `a` (")
    (rows,) = pieces[2].changes
    assert isinstance(rows, Rows)
    assert rows.action is Action.INSERT
    assert values(rows) == [[1], [2]]  # in the order of the key
    assert pieces[-1].begin is not None
    assert pieces[-1].begin.metadata == {
        "snapshot": "end",
        "file": position.file,
        "pos": str(position.offset),
        "gtid_set": gtid_set,
    }


def test_empty_schema_is_created(database: tuple[Source, str]) -> None:
    source, name = database
    statements = [change for change in changes(take(source)) if isinstance(change, Statement)]
    assert [statement.schema for statement in statements] == [name]


def test_rows_committed_later_are_not_loaded(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20)")
    snapshot = an_open(source)
    run(source, name, "UPDATE t SET n = 11", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 30)")
    rows = [row for c in changes(snapshot.batches()) if isinstance(c, Rows) for row in values(c)]
    snapshot.close()
    assert rows == [[1, 10], [2, 20]]


def test_snapshot_under_load_equals_its_gtids(database: tuple[Source, str]) -> None:
    """Every transaction inserts one row into each of two tables: a moment between two shows as many in both."""
    source, name = database
    run(source, name, "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE b (id INT)")
    base = executed(source)
    stop = threading.Event()

    def write() -> None:
        connection = connect(source)
        connection.autocommit(False)
        while not stop.is_set():
            query(connection, f"INSERT INTO {name}.a VALUES ()")
            query(connection, f"INSERT INTO {name}.b VALUES (1)")
            connection.commit()
        connection.close()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        until(lambda: snapshot_gtids(source, executed(source), base) > 0)
        for _ in range(5):
            snapshot = an_open(source)
            pieces = list(snapshot.batches())
            snapshot.close()
            counts = Counter(c.layout.name.table for c in changes(pieces) if isinstance(c, Rows) for _ in values(c))
            gtids = snapshot_gtids(source, snapshot_set(pieces), base)
            assert counts["a"] == counts["b"] == gtids
            assert gtids > 0
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def snapshot_set(pieces: list[TransactionBatch]) -> str:
    begin = pieces[-1].begin
    assert begin is not None
    return begin.metadata["gtid_set"]


def snapshot_gtids(source: Source, gtid_set: str, base: str) -> int:
    from connector.log.gtid.mysql import GtidSet

    def count(text: str) -> int:
        return sum(
            int(last or first) - int(first) + 1
            for part in str(GtidSet.parse(text)).split(",")
            for span in part.split(":")[1:]
            for first, _, last in [span.partition("-")]
        )

    return count(gtid_set) - count(base)


def test_writers_are_blocked_only_while_the_position_is_read(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)")
    snapshot = an_open(source)
    try:
        run(source, name, "SET SESSION lock_wait_timeout = 1", "INSERT INTO t VALUES (1)", "CREATE TABLE more (id INT)")
    finally:
        snapshot.close()


def test_blocked_lock_is_reported_as_unavailable(database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    monkeypatch.setattr(moment, "LOCK_WAIT_SECONDS", 1)
    slow = connect(source)
    thread = threading.Thread(target=lambda: query(slow, f"SELECT SLEEP(4) FROM {name}.t"))
    thread.start()
    until(lambda: sleeping(source))
    snapshot = Snapshot(source, Filter(source.filters))
    try:
        with pytest.raises(SourceUnavailable) as blocked:
            snapshot.open()
        assert blocked.value.where == {"waited_seconds": 1}
    finally:
        snapshot.close()
        thread.join()
        slow.close()
    assert list(loaded(source).values()) == [[[1]]]


@dataclass
class Deciding(Slept):
    """A clock during whose naps something is done."""

    left: list[Callable[[], None]] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.left:
            self.left.pop()()


def prepared(source: Source, name: str, xid: str, row: int) -> None:
    """An XA transaction that is prepared, and whose session is gone."""
    run(source, name, f"XA START '{xid}'", f"INSERT INTO t VALUES ({row})", f"XA END '{xid}'", f"XA PREPARE '{xid}'")


def test_an_xa_transaction_that_is_decided_soon_is_waited_for(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)")
    prepared(source, name, "soon", 1)
    clock = Deciding(left=[lambda: run(source, name, "XA COMMIT 'soon'")])
    snapshot = Snapshot(source, Filter(source.filters), clock=clock)
    snapshot.open()
    try:
        assert [values(change) for change in changes(snapshot.batches()) if isinstance(change, Rows)] == [[[1]]]
    finally:
        snapshot.close()
    assert not clock.left


def test_xa_transaction_prepared_at_the_snapshot_point_is_retried(
    database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)")
    attempts = list[int]()

    def then_prepare(connection: Connection, clock: Clock) -> None:
        await_decided(connection, clock)
        attempts.append(len(attempts))
        prepared(source, name, f"at{len(attempts)}", len(attempts))

    def each_is_decided(connection: Connection, *, load: bool, others: Sequence[Connection]) -> SnapshotPoint:
        found = fix_snapshot_point(connection, load=load, others=others)
        run(source, name, f"XA COMMIT 'at{len(attempts)}'")
        if len(attempts) == 2:
            monkeypatch.setattr("connector.mysql.snapshot.snapshot.await_decided", await_decided)
            monkeypatch.setattr("connector.mysql.snapshot.snapshot.fix_snapshot_point", fix_snapshot_point)
        return found

    monkeypatch.setattr("connector.mysql.snapshot.snapshot.await_decided", then_prepare)
    monkeypatch.setattr("connector.mysql.snapshot.snapshot.fix_snapshot_point", each_is_decided)
    assert loaded(source) == {TableName(name, "t"): [[1], [2]]}
    assert len(attempts) == 2


def test_an_xa_transaction_that_stays_prepared_is_named(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)")
    prepared(source, name, "stays", 1)
    snapshot = Snapshot(source, Filter(source.filters), clock=Slept())
    try:
        with pytest.raises(PreflightError) as raised:
            snapshot.open()
        assert (raised.value.where["prepared"], raised.value.where["waited_seconds"]) == (1, "5")
        assert raised.value.where["xids"] == f"X'{b'stays'.hex()}',X'',1"
    finally:
        snapshot.close()
        run(source, name, "XA ROLLBACK 'stays'")


@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE t ADD COLUMN more INT NOT NULL DEFAULT 7, ALGORITHM = INSTANT",
        "ALTER TABLE t MODIFY n BIGINT",
        "ALTER TABLE t RENAME COLUMN n TO m",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "RENAME TABLE t TO u",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)",
    ],
)
def test_ddl_before_a_table_is_read_ends_the_load(database: tuple[Source, str], ddl: str) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)")
    snapshot = an_open(source)
    run(source, name, ddl)
    try:
        with pytest.raises(SourceChanged) as changed:
            list(snapshot.batches())
        assert changed.value.where["table"] == TableName(name, "t")
    finally:
        snapshot.close()


def test_ddl_on_a_loaded_table_does_not_end_the_load(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)", "INSERT INTO a VALUES (1)")
    snapshot = an_open(source)
    try:
        for piece in snapshot.batches():
            if isinstance(piece.changes[-1] if piece.changes else None, Statement):
                statement = piece.changes[-1]
                assert isinstance(statement, Statement)
                if "`b`" in statement.sql:
                    run(source, name, "SET SESSION lock_wait_timeout = 2", "ALTER TABLE a ADD COLUMN more INT")
    finally:
        snapshot.close()


def test_tables_without_transactions_are_refused(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT) ENGINE = MyISAM")
    snapshot = Snapshot(source, Filter(source.filters))
    try:
        with pytest.raises(PreflightError) as raised:
            snapshot.open()
        assert raised.value.where == {"tables": f"{name}.t"}
        assert raised.value.hint.startswith(f"ALTER TABLE `{name}`.`t` ENGINE = InnoDB;")
    finally:
        snapshot.close()


def test_events_are_bounded_and_progress_is_logged(database: tuple[Source, str]) -> None:
    source, name = database
    run(
        source,
        name,
        "SET SESSION cte_max_recursion_depth = 100000",
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
        " SELECT i, REPEAT('x', i % 100) FROM n",
    )
    source = source.model_copy(update={"batch_bytes": 200_000})
    told: list[tuple[TableName, int, int]] = []
    snapshot = Snapshot(source, Filter(source.filters), lambda table, done, of: told.append((table, done, of)))
    snapshot.open()
    found: list[Any] = []
    for change in changes(snapshot.batches()):
        if isinstance(change, Rows):
            assert len(change.data) < 100_000 + 200
            found += values(change)
    snapshot.close()
    assert [row[0] for row in found] == list(range(1, 60_001))
    assert all(row[1] == "x" * (row[0] % 100) for row in found)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1] == 60_000
    assert all(done <= of for _, done, of in told)


@pytest.mark.parametrize("size", [(1 << 18) - 5, 1 << 20, (1 << 24) - 6, (1 << 24) - 5, (1 << 24) - 4, 20 << 20])
def test_row_of_any_size_is_loaded(database: tuple[Source, str], size: int) -> None:
    """Around the protocol's largest packet: 2^24 - 1 bytes, of which the lengths of two values take five."""
    source, name = database
    run(source, name, "CREATE TABLE t (b LONGBLOB)", f"INSERT INTO t VALUES ('a'), (REPEAT('b', {size})), ('c')")
    (rows,) = loaded(source).values()
    assert [row[0] for row in rows] == [b"a", b"b" * size, b"c"]


def test_generated_invisible_key_is_loaded(database: tuple[Source, str]) -> None:
    source, name = database
    run(
        source,
        name,
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE t (v INT)",
        "INSERT INTO t VALUES (5), (6)",
    )
    admin = connect(source)
    query(admin, "SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF")
    try:
        assert list(loaded(source).values()) == [[[1, 5], [2, 6]]]
    finally:
        query(admin, "SET GLOBAL show_gipk_in_create_table_and_information_schema = ON")
        admin.close()
