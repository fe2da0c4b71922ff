"""The stream of a real server: its start, its transactions, and its end."""

from __future__ import annotations

import time
from typing import Any

import pymysql
import pytest

from connector.config.filters import Filters
from connector.errors import PreflightError, SourceUnavailable, Unsupported
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.log.transaction.definition import Item
from connector.log.transaction.position import AfterGtids, SourcePosition
from connector.mysql.binlog.events.stream_messages import FATAL_READING
from connector.mysql.server.dump import open_stream
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import ALL, changes, images, read_from, reader_of_stream, row_changes, source_of
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_stream"


class Shop:
    """A connection to the server, in a schema of its own, and the place where its changes begin."""

    def __init__(self, server: SqlServer) -> None:
        self.server = server
        self.connection = connect(server)
        self.run(f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}", f"USE {SCHEMA}")
        self.run("CREATE TABLE t (id bigint PRIMARY KEY, v longtext, b longblob)")
        self.gtids = self.ask("SELECT @@GLOBAL.gtid_executed")
        self.place = self.here()

    def run(self, *statements: str, args: Any = None) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement, args)

    def ask(self, sql: str, column: int = 0) -> Any:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            row = cursor.fetchone()
            assert row is not None
            return row[column]

    def here(self) -> SourcePosition:
        try:
            status = "SHOW BINARY LOG STATUS"
            return SourcePosition(self.ask(status), self.ask(status, 1))
        except pymysql.err.ProgrammingError:
            status = "SHOW MASTER STATUS"
            return SourcePosition(self.ask(status), self.ask(status, 1))

    def read(self, **options: Any) -> list[Item]:
        """Everything up to here, by GTID."""
        self.run("FLUSH BINARY LOGS")
        end = self.here()
        return read_from(self.server, AfterGtids(self.gtids), lambda found: _at(found) >= end, **options)


def _at(found: list[Item]) -> SourcePosition:
    for item in reversed(found):
        if isinstance(item, PositionAdvance):
            return item.end
        if item.ending:
            return item.ending.end
    return SourcePosition("", 0)


@pytest.fixture
def shop(mysql_server: SqlServer) -> Any:
    shop = Shop(mysql_server)
    yield shop
    shop.connection.close()


def pieces(found: list[Item]) -> list[TransactionBatch]:
    return [item for item in found if isinstance(item, TransactionBatch)]


def test_transaction_is_one_batch_with_gtid_clock_and_positions(shop: Shop) -> None:
    shop.run("BEGIN", "INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', x'00')")
    shop.run("UPDATE t SET v = 'c' WHERE id = 1", "DELETE FROM t WHERE id = 2", "COMMIT")
    after = shop.here()

    (piece,) = pieces(shop.read())

    assert piece.begin is not None
    assert piece.ending is not None
    assert [change.action for change in changes([piece]) if isinstance(change, Rows)] == [
        Action.INSERT,
        Action.UPDATE,
        Action.DELETE,
    ]
    assert row_changes([piece], "t") == [
        ("INSERT", None, [1, "a", None]),
        ("INSERT", None, [2, "b", b"\0"]),
        ("UPDATE", [1, "a", None], [1, "c", None]),
        ("DELETE", [2, "b", b"\0"], None),
    ]
    assert piece.begin.kind is Kind.TRANSACTION
    assert piece.begin.start == shop.place
    assert piece.ending.end == after
    assert piece.ending.outcome is Outcome.COMMIT
    assert piece.begin.gtid is not None
    assert piece.begin.gtid in GtidSet.parse(shop.ask("SELECT @@GLOBAL.gtid_executed")) - GtidSet.parse(shop.gtids)
    assert piece.begin.thread_id == shop.ask("SELECT CONNECTION_ID()")
    assert piece.begin.server_id == shop.ask("SELECT @@GLOBAL.server_id")
    assert piece.begin.sequence_number > piece.begin.last_committed >= 0
    assert abs(piece.ending.commit_time / 1e6 - time.time()) < 60


def test_the_same_table_keeps_the_same_layout_object(shop: Shop) -> None:
    for key in range(3):
        shop.run(f"INSERT INTO t VALUES ({key}, '', NULL)")
    shop.run("ALTER TABLE t ADD COLUMN more int", "INSERT INTO t VALUES (9, '', NULL, 1)")

    layouts = [change.layout for change in changes(shop.read()) if isinstance(change, Rows)]

    assert layouts[0] is layouts[1] is layouts[2]
    assert [column.name for column in layouts[3].columns] == ["id", "v", "b", "more"]


def test_large_transaction_comes_in_bounded_batches(shop: Shop) -> None:
    shop.run("SET cte_max_recursion_depth = 100000")
    shop.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "SELECT i, REPEAT('x', 100), NULL FROM n"
    )

    found = pieces(shop.read(batch_bytes=100_000))

    assert len(found) > 15
    assert [piece.begin is not None for piece in found] == [True] + [False] * (len(found) - 1)
    assert [piece.ending is not None for piece in found] == [False] * (len(found) - 1) + [True]
    assert max(sum(len(change.data) for change in piece.changes) for piece in found) < 100_000 + 200  # type: ignore[union-attr]
    rows = row_changes(found, "t")
    assert [after[0] for _, _, after in rows if after] == list(range(1, 20001))


def test_rows_larger_than_a_packet_and_a_compressed_transaction_arrive_whole(shop: Shop) -> None:
    shop.run("INSERT INTO t VALUES (1, REPEAT('abc', 7000000), REPEAT(x'ff00', 20000000))")
    shop.run("SET SESSION binlog_transaction_compression = ON")
    shop.run("INSERT INTO t VALUES (2, REPEAT('abc', 7000000), NULL)", "INSERT INTO t VALUES (3, 'small', NULL)")

    rows = row_changes(shop.read(), "t")

    assert [after for _, _, after in rows] == [
        [1, "abc" * 7_000_000, b"\xff\0" * 20_000_000],
        [2, "abc" * 7_000_000, None],
        [3, "small", None],
    ]


def test_definitions_carry_their_session_and_savepoints_leave_no_trace(shop: Shop) -> None:
    shop.connection.set_character_set("latin1")
    shop.run("SET sql_mode = '', time_zone = '+02:00', timestamp = 1700000000.25")
    shop.run("ALTER TABLE t ADD COLUMN `h\u00e9` datetime(3) NOT NULL DEFAULT NOW(3)")
    shop.run("BEGIN", "INSERT INTO t (id, v) VALUES (1, 'kept')", "SAVEPOINT s", "INSERT INTO t (id) VALUES (2)")
    shop.run("ROLLBACK TO s", "INSERT INTO t (id, v) VALUES (3, 'kept')", "COMMIT")
    shop.run("CREATE TABLE copied SELECT * FROM t")

    definition, rows, copied = pieces(shop.read())
    at = "2023-11-15 00:13:20.250"

    assert definition.begin is not None
    assert definition.begin.kind is Kind.DDL
    (statement,) = definition.changes
    assert isinstance(statement, Statement)
    assert statement.schema == SCHEMA
    assert statement.sql == "ALTER TABLE t ADD COLUMN `h\u00e9` datetime(3) NOT NULL DEFAULT NOW(3)"
    assert statement.options["sql_mode"] == "0"
    assert statement.options["time_zone"] == "+02:00"
    assert statement.options["character_set_client"] == "latin1"
    assert statement.options["timestamp"] == "1700000000.250000"
    assert [after for _, _, after in row_changes([rows], "t")] == [[1, "kept", None, at], [3, "kept", None, at]]
    assert [type(change) for change in copied.changes] == [Statement, Rows]
    assert copied.begin is not None
    assert copied.begin.kind is Kind.DDL


def test_filtered_transactions_move_the_position(shop: Shop) -> None:
    shop.run("CREATE TABLE other (id int primary key, e enum('x') character set gbk)")
    shop.run("INSERT INTO other VALUES (1, 'x')", "BEGIN", "INSERT INTO t VALUES (1, 'a', NULL)")
    shop.run("INSERT INTO other VALUES (2, 'x')", "COMMIT")

    found = shop.read(filters=Filter(Filters(ignore=(f"{SCHEMA}.other",))))

    gtids = [item.gtid if isinstance(item, PositionAdvance) else item.begin and item.begin.gtid for item in found]
    assert [type(item) for item in found if isinstance(item, TransactionBatch) or item.gtid] == [
        PositionAdvance,
        PositionAdvance,
        TransactionBatch,
    ]
    assert len(set(filter(None, gtids))) == 3
    assert [change.layout.name.table for change in changes(found) if isinstance(change, Rows)] == ["t"]


def test_stream_resumes_from_a_position_after_a_rotation(shop: Shop) -> None:
    shop.run("INSERT INTO t VALUES (1, 'before', NULL)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'x', NULL)")
    place = shop.here()
    shop.run("INSERT INTO t VALUES (3, 'y', NULL)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4, 'z', NULL)")

    found = read_from(shop.server, place, lambda found: len(row_changes(found, "t")) == 2)

    assert [after for _, _, after in row_changes(found, "t")] == [[3, "y", None], [4, "z", None]]
    first, passed, *_ = found
    assert isinstance(first, TransactionBatch)
    assert first.begin is not None
    assert first.begin.start == place
    assert isinstance(passed, PositionAdvance)
    assert passed.end.offset == 4
    assert passed.end.file > place.file


def test_known_gtids_are_not_sent_again(shop: Shop) -> None:
    shop.run("INSERT INTO t VALUES (1, 'had', NULL)")
    had = shop.ask("SELECT @@GLOBAL.gtid_executed")
    shop.run("SET gtid_next = 'AUTOMATIC:a_tag'", "INSERT INTO t VALUES (2, 'had too', NULL)")
    tagged = shop.ask("SELECT @@GLOBAL.gtid_executed")
    shop.run("INSERT INTO t VALUES (3, 'new', NULL)", "SET gtid_next = 'AUTOMATIC'")
    shop.run("INSERT INTO t VALUES (4, 'new', NULL)")

    both = read_from(shop.server, AfterGtids(had), lambda found: len(row_changes(found, "t")) == 3)
    one = read_from(shop.server, AfterGtids(tagged), lambda found: len(row_changes(found, "t")) == 2)

    assert [after[0] for _, _, after in row_changes(both, "t") if after] == [2, 3, 4]
    assert [after[0] for _, _, after in row_changes(one, "t") if after] == [3, 4]
    first = next(item for item in both if isinstance(item, TransactionBatch))
    assert first.begin is not None
    assert first.begin.gtid is not None
    assert first.begin.gtid.split(":")[1] == "a_tag"


def test_logs_without_checksums_and_without_gtids_are_read(shop: Shop) -> None:
    steps = ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]
    try:
        shop.run("SET GLOBAL binlog_checksum = NONE", "SET GLOBAL gtid_mode = ON_PERMISSIVE")
        shop.run("SET GLOBAL gtid_mode = OFF_PERMISSIVE", "SET GLOBAL gtid_mode = OFF", "FLUSH BINARY LOGS")
        place = shop.here()
        shop.run("INSERT INTO t VALUES (1, 'anonymous', NULL)", "SET GLOBAL binlog_checksum = CRC32")
        shop.run("INSERT INTO t VALUES (2, 'checked', NULL)")
        found = read_from(shop.server, place, lambda found: len(row_changes(found, "t")) == 2)
    finally:
        shop.run("SET GLOBAL binlog_checksum = CRC32", *(f"SET GLOBAL gtid_mode = {step}" for step in steps))

    assert [after[0] for _, _, after in row_changes(found, "t") if after] == [1, 2]
    first = next(item for item in found if isinstance(item, TransactionBatch))
    assert first.begin is not None
    assert first.begin.gtid is None
    assert first.begin.start == place


def test_rows_over_tls_are_equal(shop: Shop) -> None:
    shop.run("INSERT INTO t VALUES (1, REPEAT('tls', 1000000), NULL)")

    rows = row_changes(shop.read(tls=True, tls_verify="none"), "t")

    assert rows == [("INSERT", None, [1, "tls" * 1_000_000, None])]


def test_unsupported_event_is_refused_with_its_position(shop: Shop) -> None:
    shop.run(
        "INSERT INTO t VALUES (1, '', NULL)",
        "SET SESSION binlog_format = STATEMENT",
        "UPDATE t SET v = 'x' WHERE id = 1",
    )

    with pytest.raises(Unsupported) as caught:
        shop.read()

    assert "binlog_format" in caught.value.hint
    assert caught.value.where["file"]
    assert caught.value.where["pos"] > 4
    assert "(" in caught.value.where["event"]


def test_missing_column_names_are_refused_with_the_fix(shop: Shop) -> None:
    shop.run("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        shop.run("INSERT INTO t VALUES (1, '', NULL)")
    finally:
        shop.run("SET GLOBAL binlog_row_metadata = FULL")

    with pytest.raises(Unsupported) as caught:
        shop.read()

    assert "SET GLOBAL binlog_row_metadata = FULL" in caught.value.hint


def test_missing_position_is_a_preflight_error(shop: Shop) -> None:
    with pytest.raises(PreflightError) as refused:
        read_from(shop.server, SourcePosition("nothing.000001", 4), lambda _: False)
    assert refused.value.where["code"] == FATAL_READING


def test_read_returns_when_idle_and_raises_when_the_source_is_gone(shop: Shop) -> None:
    place = shop.here()
    stream = open_stream(source_of(shop.server), place)
    reader = reader_of_stream(stream, ALL)
    try:
        began = time.monotonic()
        while time.monotonic() < began + 2.5:  # heartbeats in between
            called = time.monotonic()
            assert reader.read(0.1) == [] or reader.position == place
            assert time.monotonic() - called < 1
        thread = shop.ask("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        shop.run(f"KILL {thread}")
        with pytest.raises(SourceUnavailable):
            while time.monotonic() < began + 30:
                reader.read(0.1)
    finally:
        reader.close()


def test_images_of_a_table_with_generated_and_invisible_columns_are_whole(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE g (id int PRIMARY KEY, v int AS (id + 1) VIRTUAL, s int AS (id + 2) STORED, "
        "h int INVISIBLE DEFAULT 7, j json, KEY ((id * 2)), KEY ((CAST(j->'$' AS UNSIGNED ARRAY))))",
        "INSERT INTO g (id, j) VALUES (1, '[1, 2]')",
        "CREATE TABLE p (a varchar(50), b text, PRIMARY KEY (b(5), a))",
        "INSERT INTO p VALUES ('x', 'y')",
    )

    found = [change for change in changes(shop.read()) if isinstance(change, Rows)]

    assert [column.name for column in found[0].layout.columns] == ["id", "v", "s", "h", "j"]
    assert images(found[0]) == [(None, [1, 2, 3, 7, "[1, 2]"])]
    assert found[1].layout.key == (1, 0)
