"""Changes that a MySQL logged as statements, from its binary log to a MySQL that executes them.

From the server's own log through our reader, encoder and apply core. One server is the source, and then, without the
database, the target.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
import pytest
from pydantic import SecretStr

from connector import failpoints
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.stop_condition import ToSeqno
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.source import Source as SourceSection
from connector.errors import PreflightError, TargetDiffers, Unsupported
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import AfterGtids
from connector.mysql.server.connection import session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.transforms.filters import Filter
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.mysql.server.connection import Loaded, ServerSession
from connector.targets.open import check_target, open_target
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import Excluded
from tests.integration.applier.test_row_images import ended, messages
from tests.support.binlog import read_from
from tests.support.fragments import batch
from tests.support.grants import statements
from tests.support.loading import a_database, a_user
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer
from tests.support.statement_workload import Workload, tables
from tests.unit.applier.test_core import TOPIC, LargeMessages, Ranges, history

SERVICE = "statements"
SETTINGS = {
    **MYSQL_FAST,
    "performance_schema": "ON",
    "local_infile": "ON",
    "log_bin_trust_function_creators": "ON",
}
TABLE = "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(99))"
LOAD = "LOAD DATA LOCAL INFILE '{file}' {how} INTO TABLE a {charset} (id, v)"


@pytest.fixture(scope="module")
def server(servers_folder: Path) -> Iterator[SqlServer]:
    with MySqlServer(servers_folder / "statements", settings=SETTINGS, die_with_parent=True) as running:
        yield running


class Crash(BaseException):
    """The end of a process, at a point within it."""


class Log:
    """A database whose log is read, and then applied to the same server without it.

    Args:
        server: the source, later the target.
        source: captures the database.
        name: the database.
    """

    def __init__(self, server: SqlServer, source: SourceSection, name: str) -> None:
        self.server = server
        self.name = name
        self._source = source.model_copy(update={"statements": "keep"})
        self.connection = connect(server, local_infile=True, database=name)
        with session(self._source) as beside:
            self._start = gtid_executed(beside) or ""
            self._facts = read_facts(beside)
        self.options = Target(url=SecretStr(url_of(server, server.user, server.password)), statements="execute")

    def run(self, *statements: str) -> None:
        for statement in statements:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)

    def said(self, *statements: str) -> None:
        """Run statements that are logged as such."""
        self.run("SET binlog_format = 'STATEMENT'", *statements, "SET binlog_format = 'ROW'")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def read(self) -> list[TransactionBatch]:
        """The log since the start; then the source forgets the database."""
        self.run("CREATE TABLE the_end (a INT)")
        filters = Filter.of(self._source, 0, {}, self._facts.system_time_zone)
        found = read_from(self.server, AfterGtids(self._start), ended, filters=filters, batch_bytes=20_000)
        self.run("SET sql_log_bin = 0", f"DROP DATABASE {self.name}", "DROP DATABASE IF EXISTS thl")
        return [piece for piece in found if isinstance(piece, TransactionBatch)]

    def target(self) -> TargetDatabase:
        return open_target(self.options, SystemClock())

    def apply(
        self,
        pieces: list[TransactionBatch],
        *,
        until: Seqno | None = None,
        draw: random.Random | None = None,
        excluded: TableName | None = None,
    ) -> None:
        """Apply the log from the target's position on, up to an event."""
        values, last = messages(pieces)
        target = self.target()
        try:
            position = target.claim(SERVICE)
            if excluded is not None:
                target.exclude({excluded: Excluded(since=position.seqno, at=0, by="us", reason="test")})
            known = history([0], last)
            core = ApplyCore(
                target,
                position,
                EventSequencer[Message, Messages](topic=TOPIC, partitions=1, position=position, history=known),
                PartitionBuffers(TOPIC, LargeMessages(()), Ranges(), executes_statements=True),
                log_id=known.log_id,
                gtid_set=known.epochs[0].gtid_set,
                topic=TOPIC,
                clock=SystemClock(),
                until=None if until is None else ToSeqno(until),
            )
            at = 0 if position.seqno == NO_SEQNO else position.offsets[0]
            while at < len(values) and not core.done:
                size = 7 if draw is None else draw.choice([1, 3, 20, 100])
                core.accept([batch(values[at : at + size], offset=at)])
                at += size
            assert core.position.seqno == (last if until is None else until)
        finally:
            target.close()

    def stops(self, pieces: list[TransactionBatch], sql: str, *on_target: str, excluded: str = "") -> Unsupported:
        """The error of an applier that stops at a statement, whose event changes nothing.

        Args:
            pieces: the log.
            sql: the statement, or its beginning.
            on_target: run on the target before the statement's event.
            excluded: a table that the target goes on without, from that event on.
        """
        begun = [piece for piece in pieces if piece.begin is not None]
        seqno = next(
            number
            for number, piece in enumerate(begun)
            if any(isinstance(one, Statement) and one.sql.startswith(sql) for one in piece.changes)
        )
        self.apply(pieces, until=Seqno(seqno - 1))
        self.run(f"USE {self.name}", *on_target)
        before = tables(self.server, self.name)
        with pytest.raises(Unsupported) as caught:
            self.apply(pieces, excluded=TableName(self.name, excluded) if excluded else None)
        assert caught.value.where["seqno"] == seqno
        assert tables(self.server, self.name) == before
        return caught.value


def url_of(server: SqlServer, user: str, password: str) -> str:
    return f"mysql://{user}:{quote(password)}@{server.host}:{server.port}"


@pytest.fixture
def log(server: SqlServer) -> Iterator[Log]:
    with a_database(server, "said") as (source, name):
        made = Log(server, source, name)
        yield made
        made.connection.close()
        server.run_sql("SET sql_log_bin = 0; DROP DATABASE IF EXISTS thl")


def compare(log: Log, expected: dict[str, tuple[str, list[Any]]]) -> None:
    found = tables(log.server, log.name)
    assert found.pop("the_end")[1] == []
    assert {name: definition for name, (definition, _) in found.items()} == {
        name: definition for name, (definition, _) in expected.items()
    }
    for name, (_, rows) in expected.items():
        assert found[name][1] == rows, name


@pytest.mark.parametrize("crashes", [False, True])
def test_random_statements_leave_equal_tables(
    log: Log, tmp_path: Path, crashes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the applier ends again and again, between any two steps of a commit."""
    draw = random.Random(f"statements {crashes}")
    workload = Workload(log.server, log.name, draw, tmp_path)
    workload.write(200)
    workload.close()
    expected = tables(log.server, log.name)
    pieces = log.read()
    statements = [change for piece in pieces for change in piece.changes if isinstance(change, Statement)]
    names = {name for change in statements for name in change.options}
    assert {"insert_id", "rand_seed1", "last_insert_id", "time_zone", "load_data_block", "@s"} <= names
    assert any(not isinstance(change, Statement) for piece in pieces for change in piece.changes)
    assert sum(len(rows) for _, rows in expected.values()) > 500
    ends: set[str] = set()

    def point(name: str) -> None:
        if crashes and len(ends) < 100 and draw.random() < 0.02:
            ends.add(f"{name} {len(ends)}")
            raise Crash

    monkeypatch.setattr(failpoints, "point", point)
    while True:
        try:
            log.apply(pieces, draw=draw)
            break
        except Crash:
            continue
    compare(log, expected)
    if crashes:
        assert {"target.mid_stage", "target.before_commit"} <= {end.split()[0] for end in ends}


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("INSERT INTO a (v) SELECT f() FROM a", "calls"),
        ("INSERT INTO a (v) SELECT v FROM shown", "shown, which is no table that the applier has created"),
        ("INSERT INTO a (v) SELECT i FROM aside", "aside, which is no table that the applier has created"),
        ("UPDATE aside JOIN a SET i = 5", "aside, which is no table that the applier has created"),
        ("INSERT INTO temporary SELECT 1", "temporary table"),
        ("INSERT INTO a (v) SELECT i FROM temporary", "temporary table"),
        ("INSERT INTO a (v) VALUES (CONNECTION_ID())", "the number of its session"),
        ("INSERT INTO a (v) VALUES (UUID())", "UUID() has another value"),
        ("UPDATE a SET v = @@server_id", "@@server_id has another value"),
    ],
)
def test_statement_whose_effect_is_not_known_is_refused(log: Log, sql: str, reason: str) -> None:
    aside = ("SET sql_log_bin = 0", "CREATE TABLE aside (i INT)", "INSERT INTO aside VALUES (1)", "SET sql_log_bin = 1")
    objects = ("CREATE VIEW shown AS SELECT * FROM a", "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1")
    log.run(TABLE, "INSERT INTO a (v) VALUES ('1')", *objects, *aside)
    log.said("CREATE TEMPORARY TABLE temporary (i INT)", sql, "DROP TEMPORARY TABLE temporary")
    error = log.stops(log.read(), sql, *objects, *aside)
    assert reason in error.message
    assert error.where["sql"] == sql
    assert "--skip-seqno" in error.hint


def test_statement_with_the_name_of_a_database_that_the_target_lacks_is_refused(log: Log) -> None:
    gone = f"{log.name}_gone"
    log.run(TABLE, "SET sql_log_bin = 0", f"CREATE DATABASE {gone}", "SET sql_log_bin = 1")
    log.said(f"USE {gone}", f"INSERT INTO {log.name}.a (v) VALUES ('1')", f"UPDATE {log.name}.a SET v = DATABASE()")
    log.run(f"USE {log.name}")
    error = log.stops(log.read(), f"UPDATE {log.name}.a SET v = DATABASE()", f"DROP DATABASE {gone}")
    assert f"ran in the database {gone}" in error.message


def test_server_that_does_not_note_locks_any_more_stops(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.run(TABLE)
    log.said("INSERT INTO a (v) VALUES ('x')")
    pieces = log.read()
    switch = "UPDATE performance_schema.setup_instruments SET enabled = '{}' WHERE name = 'wait/lock/metadata/sql/mdl'"

    def point(name: str) -> None:
        if name == "target.after_claim":
            log.query(switch.format("NO"))

    monkeypatch.setattr(failpoints, "point", point)
    try:
        with pytest.raises(PreflightError, match="does not note the metadata locks"):
            log.apply(pieces)
    finally:
        log.query(switch.format("YES"))


def test_statement_about_an_excluded_table_is_refused(log: Log) -> None:
    log.run(TABLE, "CREATE TABLE b (i INT)", "INSERT INTO b VALUES (1)")
    log.said("INSERT INTO a (v) SELECT i FROM b")
    error = log.stops(log.read(), "INSERT", excluded="b")
    assert "which the target goes on without" in error.message
    assert f"thl load {log.name}.b" in error.hint


def test_rows_of_a_table_with_triggers_are_refused(log: Log) -> None:
    log.run(
        TABLE, "CREATE TABLE b (i INT)", "CREATE TRIGGER fires AFTER INSERT ON a FOR EACH ROW INSERT INTO b VALUES (1)"
    )
    log.said("INSERT INTO a (v) VALUES ('fires at both')")
    log.run("INSERT INTO a (v) VALUES ('1')")
    pieces = log.read()
    with pytest.raises(Unsupported, match="triggers would act on them again: fires") as caught:
        log.apply(pieces)
    assert "DROP TRIGGER" in caught.value.hint


def test_temporary_table_that_hides_a_table_is_refused(log: Log) -> None:
    log.run(TABLE)
    log.said("CREATE TEMPORARY TABLE a (i INT)", "DROP TEMPORARY TABLE a")
    error = log.stops(log.read(), "CREATE TEMPORARY TABLE a")
    assert f"has the name of the table {log.name}.a" in error.message
    assert "--done-seqno 1 " in error.hint


def test_triggers_follow_the_source(log: Log) -> None:
    log.run(TABLE, "CREATE TABLE b (i INT, s VARCHAR(99))")
    log.said(
        "CREATE TRIGGER one AFTER INSERT ON a FOR EACH ROW INSERT INTO b VALUES (NEW.id, 'one')",
        "INSERT INTO a (v) VALUES ('x')",
        "DROP TRIGGER one",
        "INSERT INTO a (v) VALUES ('y')",
        "CREATE TRIGGER one BEFORE UPDATE ON a FOR EACH ROW SET NEW.v = CONCAT(NEW.v, OLD.v)",
        "UPDATE a SET v = 'z'",
    )
    expected = tables(log.server, log.name)
    assert expected["b"][1] == [(b"1", b"one")]
    log.apply(log.read())
    compare(log, expected)


@pytest.mark.parametrize("how", ["", "IGNORE", "REPLACE"])
def test_file_of_load_data_is_loaded_as_it_was(log: Log, tmp_path: Path, how: str) -> None:
    """A file of several MB, an empty one, and one of a character set that the statement names."""
    large, empty, latin = (tmp_path / name for name in ("large", "empty", "latin"))
    large.write_text("".join(f"{n % 40_000}\t{'ä' * 40}{n}\n" for n in range(45_000)))
    empty.write_text("")
    latin.write_bytes(b"50001\tcaf\xe9\n")
    log.run(TABLE)
    log.said(
        LOAD.format(file=empty, how=how, charset=""),
        LOAD.format(file=large, how=how, charset="CHARACTER SET utf8mb4"),
        LOAD.format(file=latin, how=how, charset="CHARACTER SET latin1"),
    )
    expected = tables(log.server, log.name)
    assert len(expected["a"][1]) == 40_001
    assert (b"50001", "café".encode()) in expected["a"][1]
    log.apply(log.read())
    compare(log, expected)


def test_file_in_an_unnamed_character_set_is_refused_unless_it_is_ascii(log: Log, tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text("1\tone\n")
    other.write_text("2\tzwölf\n")
    log.run(TABLE)
    log.said(LOAD.format(file=plain, how="", charset=""), LOAD.format(file=other, how="IGNORE", charset=""))
    pieces = log.read()
    with pytest.raises(Unsupported, match="LOAD DATA without CHARACTER SET"):
        log.apply(pieces)
    log.apply(pieces, until=Seqno(1))
    assert log.query(f"SELECT * FROM {log.name}.a") == [(1, "one")]


def test_file_of_load_data_with_other_escapes_is_refused(log: Log, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1\tone\n")
    log.run(TABLE, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    log.said(LOAD.format(file=tmp_path / "file", how="", charset=""))
    assert "NO_BACKSLASH_ESCAPES" in log.stops(log.read(), "LOAD").message


def test_statement_that_finds_other_rows_stops(log: Log) -> None:
    log.run(TABLE)
    log.said("INSERT INTO a VALUES (1, 'x')")
    pieces = log.read()
    log.apply(pieces, until=Seqno(0))
    log.run(f"INSERT INTO {log.name}.a VALUES (1, 'by another')")
    with pytest.raises(TargetDiffers, match="Duplicate entry '1'") as caught:
        log.apply(pieces)
    assert (caught.value.where["seqno"], "--skip-seqno 1" in caught.value.hint) == (1, True)


def test_target_with_a_table_without_transactions_is_refused(log: Log) -> None:
    log.run("SET sql_log_bin = 0", "CREATE TABLE plain (i INT) ENGINE = MyISAM")
    target = log.target()
    with pytest.raises(Unsupported, match=f"cannot be rolled back: {log.name}.plain"):
        target.claim(SERVICE)
    target.close()


def test_user_who_may_not_ask_for_locks_is_refused(log: Log) -> None:
    everything = "CREATE, ALTER, DROP, INDEX, SELECT, INSERT, UPDATE, DELETE, CREATE TEMPORARY TABLES"
    with a_user(log.server, f"{everything} ON thl.*") as user:
        url = url_of(log.server, user.user, user.password.get_secret_value())
        target = open_target(log.options.model_copy(update={"url": SecretStr(url)}), SystemClock())
        with pytest.raises(PreflightError) as caught:
            target.claim(SERVICE)
        target.close()
    assert "GRANT SELECT ON performance_schema.*" in caught.value.hint


def test_rights_that_the_documents_name_are_enough(log: Log, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("7\tfrom a file\n")
    log.run("CREATE USER 'thl_other'@'%'", f"GRANT ALL ON {log.name}.* TO 'thl_other'@'%'", TABLE)
    log.said(
        "CREATE DEFINER = 'thl_other'@'%' TRIGGER one BEFORE INSERT ON a FOR EACH ROW SET NEW.v = CONCAT(NEW.v, '!')",
        "SET collation_connection = utf8mb4_bin, time_zone = '+05:30', lc_time_names = 'de_DE', @v = 'x'",
        "SET default_collation_for_utf8mb4 = utf8mb4_general_ci, auto_increment_increment = 5",
        "INSERT INTO a (v) VALUES (@v), (RAND())",
        LOAD.format(file=tmp_path / "file", how="", charset=""),
    )
    expected = tables(log.server, log.name)
    pieces = log.read()
    user = "'thl_least'@'%'"
    made = statements(
        "mysql-target.sql", "user", "tables", "ddl once", "session", "statements", user=user, schema=log.name
    )
    log.run(*made)
    try:
        log.options = log.options.model_copy(update={"url": SecretStr(url_of(log.server, "thl_least", "change me"))})
        log.apply(pieces)
    finally:
        log.run(f"DROP USER {user}, 'thl_other'@'%'")
    compare(log, expected)


def test_server_without_performance_schema_is_refused(mysql_server: SqlServer) -> None:
    url = SecretStr(url_of(mysql_server, mysql_server.user, mysql_server.password))
    options = Target(url=url, statements="execute")
    target = open_target(options, SystemClock())
    with pytest.raises(PreflightError, match="performance_schema is OFF"):
        target.claim(SERVICE)
    target.close()
    with pytest.raises(PreflightError, match="performance_schema is OFF"):
        check_target(options)


def test_server_gets_no_other_file_than_that_of_the_statement(log: Log, tmp_path: Path) -> None:
    """A server may ask for any file of this machine, at any statement."""
    (tmp_path / "secret").write_text("1\tsecret\n")
    log.run("SET sql_log_bin = 0", TABLE)
    asking = ServerSession(log.options.url.get_secret_value(), "test", files=True)
    try:
        sql = f"LOAD DATA LOCAL INFILE '{tmp_path / 'secret'}' INTO TABLE {log.name}.a"
        with pytest.raises(pymysql.err.OperationalError, match="secret"):
            asking.query(sql)
        with (tmp_path / "empty").open("wb+") as empty:
            assert asking.load(sql.encode(), empty) == Loaded(records=0)
    finally:
        asking.close()
    assert log.query("SELECT * FROM a") == []
