"""The definitions with which a load begins are those of one position; the rows of a round are those of its view."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from connector.clock import Clock, SystemClock
from connector.config.filters import Filters
from connector.config.source import Source
from connector.errors import PreflightError, SourceChanged, SourceUnavailable
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import AfterGtids, SourcePosition
from connector.log.transaction.xa import Logged
from connector.mysql.server import snapshot_point as moment
from connector.mysql.server.connection import Connection, connect, query
from connector.mysql.server.snapshot_point import SnapshotPoint, await_decided, fix_snapshot_point
from connector.mysql.server.source_state import gtid_executed, sessions
from connector.mysql.snapshot.load_round import LoadRound, RoundTable
from connector.mysql.snapshot.opened_table import lock_definitions
from connector.mysql.snapshot.snapshot import ATTEMPTS, Snapshot, read_snapshot
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import changes, read_from
from tests.support.clock import PATIENCE, Slept
from tests.support.loading import EVERYTHING, a_database, loaded, read_rows, run, take, values
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


def in_state(source: Source, *states: str) -> bool:
    """True while a statement on the source is in one of these states."""
    connection = connect(source)
    try:
        return any(row["State"] in states for row in sessions(connection))
    finally:
        connection.close()


def snapshot_of(source: Source, clock: Clock | None = None) -> Snapshot:
    return read_snapshot(source, Filter(source.filters), clock or SystemClock())


@contextmanager
def a_round(source: Source, *names: TableName) -> Iterator[LoadRound]:
    """An open round with a brief lock."""
    wanted = [RoundTable(name) for name in names]
    opened = LoadRound(source, Filter(source.filters), wanted, SystemClock(), lock=True)
    try:
        opened.open(None)
        yield opened
    finally:
        opened.close()


def rows_of(opened: LoadRound) -> dict[str, list[list[Any]]]:
    """The rows of a round, by table."""
    found: dict[str, list[list[Any]]] = {}
    for name, rows in opened.rows(opened.names):
        found.setdefault(name.table, []).extend(values(rows))
    return found


def test_a_load_and_the_log_give_the_same_layouts_and_rows(
    mysql_server: SqlServer, database: tuple[Source, str]
) -> None:
    source, name = database
    before = executed(source)
    run(source, name, "SET NAMES utf8mb4", *EVERYTHING)

    by_load: dict[TableLayout, Counter[str]] = {}
    for change in take(source):
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


def test_snapshot_has_the_definitions_at_a_position(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT)", "INSERT INTO a VALUES (2), (1)")
    snapshot = snapshot_of(source)
    assert not snapshot.schemas
    assert not snapshot.unloaded
    assert list(snapshot.tables) == [TableName(name, "a"), TableName(name, "b")]
    assert {one for one in snapshot.tables if one in snapshot.definitions.tables} == set(snapshot.tables)
    table = [change for change in snapshot.tables[TableName(name, "a")].definition if isinstance(change, Statement)]
    assert [statement.schema for statement in table] == [name, name]
    assert table[0].sql.startswith(f"CREATE DATABASE IF NOT EXISTS `{name}` ")
    assert table[1].sql.startswith("CREATE TABLE `a` (")
    assert snapshot.gtid_set == executed(source)
    with a_round(source, TableName(name, "a")) as opened:
        assert opened.position == snapshot.position
        assert opened.server_uuid == snapshot.server_uuid
        ((_, rows),) = opened.rows(opened.names)
    assert rows.action is Action.READ
    assert values(rows) == [[1], [2]]  # in the order of the key


def test_empty_schema_is_created(database: tuple[Source, str]) -> None:
    source, name = database
    statements = [change for change in take(source) if isinstance(change, Statement)]
    assert [statement.schema for statement in statements] == [name]


def test_rows_committed_after_a_round_was_opened_are_not_in_it(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20)")
    with a_round(source, TableName(name, "t")) as opened:
        run(source, name, "UPDATE t SET n = 11", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 30)")
        assert rows_of(opened) == {"t": [[1, 10], [2, 20]]}


def test_round_under_load_equals_the_log_before_its_place(
    mysql_server: SqlServer, database: tuple[Source, str]
) -> None:
    """Every transaction inserts one row into each of two tables: a moment between two shows as many in both."""
    source, name = database
    run(source, name, "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE b (id INT)")
    base = executed(source)
    names = TableName(name, "a"), TableName(name, "b")
    counted = list[tuple[SourcePosition, int]]()
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
        until(lambda: executed(source) != base)
        for _ in range(5):
            with a_round(source, *names) as opened:
                counts = {table: len(rows) for table, rows in rows_of(opened).items()}
                assert counts["a"] == counts["b"] > 0
                counted.append((opened.position, counts["a"]))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    everything = len(loaded(source)[names[0]])

    def commits(found: list[Logged]) -> list[SourcePosition]:
        return [one.ending.end for one in found if isinstance(one, TransactionBatch) and one.ending and one.changes]

    ends = commits(read_from(mysql_server, AfterGtids(base), lambda found: len(commits(found)) >= everything))
    for position, count in counted:
        assert sum(end <= position for end in ends) == count


def test_writers_are_blocked_only_while_the_position_is_read(
    database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)")
    with a_round(source, TableName(name, "t")):
        run(source, name, "SET SESSION lock_wait_timeout = 1", "INSERT INTO t VALUES (1)", "CREATE TABLE more (id INT)")
    read_again = list[bool]()

    def write(*found: Any) -> Any:
        run(source, name, "SET SESSION lock_wait_timeout = 1", f"INSERT INTO t VALUES ({2 + len(read_again)})")
        read_again.append(True)
        return lock_definitions(*found)

    monkeypatch.setattr("connector.mysql.snapshot.snapshot.lock_definitions", write)
    snapshot_of(source)
    assert read_again == [True]


def test_blocked_lock_is_reported_as_unavailable(database: tuple[Source, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    monkeypatch.setattr(moment, "LOCK_PATIENCE", 0.0)
    slow = connect(source)
    thread = threading.Thread(target=lambda: query(slow, f"SELECT SLEEP(4), '🦉' FROM {name}.t"))
    thread.start()
    until(lambda: in_state(source, "User sleep"))
    try:
        with pytest.raises(SourceUnavailable) as blocked:
            snapshot_of(source)
        assert blocked.value.where == {"seconds": 1}
    finally:
        thread.join()
        slow.close()
    assert list(loaded(source).values()) == [[[1]]]


def test_lock_that_waits_for_who_waits_for_it_is_given_up_and_had_later(database: tuple[Source, str]) -> None:
    """A statement waits for a row; the row's transaction waits for the lock, which waits for the statement."""
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0), (2, 0)")
    holder, waiter = connect(source), connect(source)
    query(holder, "BEGIN")
    query(holder, f"UPDATE {name}.t SET v = 1 WHERE id = 1")
    waiting = threading.Thread(target=lambda: query(waiter, f"UPDATE {name}.t SET v = 2 WHERE id = 1"))
    waiting.start()
    with ThreadPoolExecutor(1) as pool:
        snapshot = pool.submit(snapshot_of, source)
        until(lambda: snapshot.done() or in_state(source, "Waiting for global read lock", "Waiting for table flush"))
        query(holder, f"UPDATE {name}.t SET v = 3 WHERE id = 2")
        query(holder, "COMMIT")
        assert list(snapshot.result(PATIENCE).tables) == [TableName(name, "t")]
    waiting.join()
    for session in (holder, waiter):
        session.close()


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
    snapshot = snapshot_of(source, clock)
    assert [values(rows) for _, rows in read_rows(source, Filter(source.filters), snapshot.tables)] == [[[1]]]
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

    def each_is_decided(connection: Connection, clock: Clock, *, load: bool) -> SnapshotPoint:
        found = fix_snapshot_point(connection, clock, load=load)
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
    try:
        with pytest.raises(PreflightError) as raised:
            snapshot_of(source, Slept())
        assert (raised.value.where["prepared"], raised.value.where["waited_seconds"]) == (1, "5")
        assert raised.value.where["xids"] == f"X'{b'stays'.hex()}',X'',1"
    finally:
        run(source, name, "XA ROLLBACK 'stays'")


@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE t ADD COLUMN more INT NOT NULL DEFAULT 7, ALGORITHM = INSTANT",
        "ALTER TABLE t MODIFY n BIGINT",
        "ALTER TABLE t RENAME COLUMN n TO m",
        "DROP TABLE t",
        "RENAME TABLE t TO u",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)",
    ],
)
@pytest.mark.parametrize("times", [1, ATTEMPTS])
def test_ddl_between_position_and_definitions_makes_another_attempt(
    database: tuple[Source, str], ddl: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = database
    create = "CREATE TABLE t (id INT PRIMARY KEY, n INT)"
    run(source, name, create)
    positions = list[SnapshotPoint]()

    def then_change(connection: Connection, clock: Clock, *, load: bool) -> SnapshotPoint:
        found = fix_snapshot_point(connection, clock, load=load)
        positions.append(found)
        if len(positions) <= times:
            run(source, name, ddl)
        return found

    def prepare(connection: Connection, clock: Clock) -> None:
        if times > 1:
            run(source, name, "DROP TABLE IF EXISTS t, u", create)

    monkeypatch.setattr("connector.mysql.snapshot.snapshot.fix_snapshot_point", then_change)
    monkeypatch.setattr("connector.mysql.snapshot.snapshot.await_decided", prepare)
    if times == 1:
        snapshot = snapshot_of(source)
        assert len(positions) == 2
        assert snapshot.position == positions[1].position
        found = loaded_definitions(source)
        assert {one.table: str(opened.definition) for one, opened in snapshot.tables.items()} == found
        return
    with pytest.raises(SourceChanged) as changed:
        snapshot_of(source)
    assert len(positions) == ATTEMPTS
    assert f"in {ATTEMPTS} attempts" in changed.value.message
    assert "DDL" in changed.value.message


def loaded_definitions(source: Source) -> dict[str, str]:
    """The definitions without any disturbance."""
    return {name.table: str(opened.definition) for name, opened in snapshot_of(source).tables.items()}


def test_tables_without_transactions_are_refused(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT) ENGINE = MyISAM")
    with pytest.raises(PreflightError) as raised:
        snapshot_of(source)
    assert raised.value.where == {"tables": f"{name}.t"}
    assert raised.value.hint.startswith(f"ALTER TABLE `{name}`.`t` ENGINE = InnoDB;")


def test_tables_of_one_name_are_refused_if_one_has_no_key(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT)")
    rules = [{"match": [f"{name}.{table}"], "publish_as": f"{name}.both"} for table in "ab"]
    filters = Filters.model_validate({**source.filters.model_dump(), "tables": rules})
    with pytest.raises(PreflightError, match="without a primary key") as raised:
        snapshot_of(source.model_copy(update={"filters": filters}))
    assert raised.value.where == {"tables": f"{name}.b"}


def test_events_of_a_round_are_bounded(database: tuple[Source, str]) -> None:
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
    found: list[Any] = []
    for _, rows in read_rows(source, Filter(source.filters), [TableName(name, "t")]):
        assert len(rows.data) < 100_000 + 200
        found += values(rows)
    found.sort()
    assert [row[0] for row in found] == list(range(1, 60_001))
    assert all(row[1] == "x" * (row[0] % 100) for row in found)


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


def test_limit_for_all_sessions_leaves_no_row_out(database: tuple[Source, str]) -> None:
    source, name = database
    run(source, name, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    run(source, name, "SET GLOBAL sql_select_limit = 2")
    try:
        assert list(loaded(source).values()) == [[[1], [2], [3], [4], [5]]]
    finally:
        run(source, name, "SET GLOBAL sql_select_limit = DEFAULT")
