"""`thl binlog --format sql`: a second MySQL that executes it through its client has the same tables.

`thl binlog --events` of the same log equals what mysqlbinlog and mysql-replication say of it.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    BeginLoadQueryEvent,
    GtidEvent,
    HeartbeatLogEvent,
    IntvarEvent,
    QueryEvent,
    RandEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import TableMapEvent, WriteRowsEvent

from connector.fetching.mariadb_programs import mariadb_folder
from connector.mysql.values.session_names import sql_mode_names
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import Mysqld
from tests.integration.binlog.test_statements import SCHEMA, SCRIPT, SETTINGS, TABLES, run
from tests.support.event_oracles import check_events
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer
from tests.support.servers.mariadb_client import mariadb_binlog

pytestmark = pytest.mark.servers

STATEMENTS = 300  # random ones
SEED = 1
WORDS = ("café €", "plain", "O'Neil \\ back", "line\nbreak", "日本", "", "x" * 300, "tab\there")
RANDOM_TABLES = """
CREATE TABLE r (id INT AUTO_INCREMENT PRIMARY KEY, a INT, s VARCHAR(400), d DOUBLE, l VARCHAR(400) CHARACTER SET latin1)
ALTER TABLE r ADD b BLOB, ADD at TIMESTAMP(6) NULL, ADD f FLOAT, ADD j JSON, ADD bt BIT(9)
ALTER TABLE r ADD g INT AS (a * 2) STORED, ADD v INT AS (a + 1) VIRTUAL
CREATE TABLE part (id INT, p INT, s VARCHAR(400), PRIMARY KEY (id, p)) PARTITION BY HASH (p) PARTITIONS 4
CREATE TABLE audit (what VARCHAR(60))
CREATE TABLE parent (id INT PRIMARY KEY)
CREATE TABLE kid (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)
CREATE TABLE keyless (a INT, s VARCHAR(400))
CREATE TRIGGER audited AFTER INSERT ON r FOR EACH ROW BEGIN INSERT INTO audit VALUES (LEFT(NEW.s, 9)); /* ; */ END
CREATE PROCEDURE twice(n INT) /* é */ BEGIN DECLARE m INT DEFAULT n + n; INSERT INTO r (a, s) VALUES (m, '/*!*/;'); END
CREATE VIEW seen AS SELECT a, s FROM r WHERE a > 5
CREATE FUNCTION plus(n INT) RETURNS INT DETERMINISTIC RETURN n + 1
"""
LATIN = (
    "INSERT INTO said.r (s, l, b) VALUES "
    "('caf\u00e9', 'caf\u00e9', _binary'\u00e9'), (_latin1'\u00e9', '\u20ac', '\u00e9')"
)
MODES = ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", "STRICT_TRANS_TABLES,NO_ZERO_DATE")


class Workload:
    """Random changes of one session after the other, in all binary log formats.

    Args:
        server: the source.
        seed: of the choices.
        compression: the variable that compresses transactions.
        creates: also CREATE TABLE … SELECT.
    """

    def __init__(
        self,
        server: Mysqld,
        seed: int,
        compression: str = "binlog_transaction_compression",
        *,
        creates: bool = True,
    ) -> None:
        self._draw = random.Random(seed)
        self._compression = compression
        self._creates = creates
        self._sessions = [connect(server), connect(server), connect(server)]
        for session in self._sessions:
            with session.cursor() as cursor:
                cursor.execute(f"USE {SCHEMA}")
        self._xa = 0

    def close(self) -> None:
        for session in self._sessions:
            session.close()

    def run(self, count: int) -> None:
        for _ in range(count):
            with self._draw.choice(self._sessions).cursor() as cursor:
                format = self._draw.choice(("STATEMENT", "MIXED", "ROW"))
                cursor.execute(f"SET binlog_format = {format}")
                cursor.execute("SET sql_mode = ''")
                self._step(cursor, "UUID()" if format != "STATEMENT" else "'no UUID'")

    def _step(self, cursor: Any, unsafe: str) -> None:
        """One transaction; `unsafe` is an expression that only row events can repeat."""
        draw = self._draw
        number, word = draw.randrange(40), draw.choice(WORDS)
        value = (number, word)
        kinds = (
            ("INSERT INTO r (a, s, d) VALUES (%s, %s, RAND())", value),
            (
                "INSERT INTO r (a, s, l, b, f, j, bt) "
                "VALUES (%s, %s, 'é', X'00ff5c27', 1.1, '{\"k\": [1, 2.5]}', b'101')",
                value,
            ),
            ("UPDATE r SET s = CONCAT(s, %s), at = NOW(6) WHERE a = %s", (word[:9], number)),
            ("UPDATE r SET j = JSON_SET(COALESCE(j, '{}'), '$.n', a) WHERE a < %s", (number,)),
            ("DELETE FROM r WHERE a = %s ORDER BY id LIMIT 2", (number,)),
            ("REPLACE INTO part VALUES (%s, %s, %s)", (number, number % 5, word)),
            ("INSERT IGNORE INTO parent VALUES (%s)", (number,)),
            ("INSERT IGNORE INTO kid VALUES (%s, %s)", (number, number)),
            ("DELETE FROM parent WHERE id = %s", (number,)),
            ("INSERT INTO keyless VALUES (%s, %s), (%s, %s)", value + value),
            ("DELETE FROM keyless WHERE a = %s", (number,)),
            ("CALL twice(%s)", (number,)),
            (f"INSERT INTO r (a, s) SELECT plus(id), {unsafe} FROM parent ORDER BY id", ()),
        )
        match draw.randrange(20):
            case 0:
                cursor.execute("BEGIN")
                for _ in range(draw.randrange(1, 4)):
                    cursor.execute(*draw.choice(kinds))
                cursor.execute("SAVEPOINT a")
                cursor.execute(*draw.choice(kinds))
                cursor.execute("ROLLBACK TO a")
                cursor.execute(*draw.choice(kinds))
                cursor.execute(draw.choice(("COMMIT", "COMMIT", "ROLLBACK")))
            case 1:
                self._xa += 1
                xid = f"'x{self._xa}','y',7"
                decided = draw.choice(("COMMIT", "ROLLBACK"))
                cursor.execute(f"XA START {xid}")
                cursor.execute("INSERT INTO r (a, s) VALUES (%s, 'xa')", (number,))
                for verb in ("END", "PREPARE", decided):
                    cursor.execute(f"XA {verb} {xid}")
            case 2:
                cursor.execute("SET @v = %s, @n = %s", (word, number))
                cursor.execute("INSERT INTO r (a, s) VALUES (@n, @v), (@n + 1, CHARSET(@v))")
            case 3:
                cursor.execute("SET timestamp = %s", (1_600_000_000.5 + number,))
                cursor.execute("SET time_zone = %s", (draw.choice(("+05:30", "-03:00")),))
                cursor.execute("INSERT INTO r (a, s, at) VALUES (%s, NOW(6), FROM_UNIXTIME(86400))", (number,))
                cursor.execute("SET timestamp = DEFAULT, time_zone = 'SYSTEM'")
            case 4:
                cursor.execute("SET sql_mode = %s", (draw.choice(MODES),))
                cursor.execute("INSERT INTO r (a, s) VALUES (%d, 'it''s \\\\ here')" % number)  # noqa: UP031
            case 5 if self._creates:
                name = f"made{draw.randrange(5)}"
                cursor.execute(f"DROP TABLE IF EXISTS {name}")
                cursor.execute(f"CREATE TABLE {name} (PRIMARY KEY (id)) AS SELECT id, a, s FROM r WHERE a < {number}")
            case 6 if self._creates:
                cursor.execute("DROP DATABASE IF EXISTS other")
                cursor.execute("CREATE DATABASE other CHARACTER SET latin1")
                cursor.execute("CREATE TABLE other.t (a INT, s VARCHAR(90)) AS SELECT a, LEFT(s, 9) AS s FROM r")
            case 7:
                cursor.execute(f"SET {self._compression} = ON")
                cursor.execute(*draw.choice(kinds))
                cursor.execute(f"SET {self._compression} = OFF")
            case _:
                cursor.execute(*draw.choice(kinds))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MySqlServer, MySqlServer]]:
    """A source, and a fresh server."""
    with (
        MySqlServer(tmp_path_factory.mktemp("source"), settings=SETTINGS, die_with_parent=True) as source,
        MySqlServer(tmp_path_factory.mktemp("copy"), settings=SETTINGS, die_with_parent=True) as copy,
    ):
        yield source, copy


def logs(server: Mysqld) -> list[Path]:
    """The closed files of the log."""
    with connect(server).cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        return [server.data / row[0] for row in cursor.fetchall()[:-1]]


def replay(files: list[Path], copy: Mysqld, *arguments: object) -> bytes:
    """Execute the source's log on the copy with its own client."""
    command = [sys.executable, "-m", "connector", "binlog", *map(str, files), "--format", "sql"]
    told = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=False)
    assert (told.returncode, told.stderr.decode()) == (0, "")
    program = (
        copy.client("mysql") if isinstance(copy, MySqlServer) else copy.connecting([f"{mariadb_folder()}/bin/mariadb"])
    )
    client = [*program, "--binary-mode", "--comments", "--local-infile=1"]
    done = subprocess.run(client, input=told.stdout, capture_output=True, check=False)
    if done.returncode or done.stderr:
        line = int(re.findall(rb"at line (\d+)", done.stderr + b"at line 1")[0])
        around = b"\n".join(told.stdout.split(b"\n")[max(line - 12, 0) : line + 3]).decode(errors="replace")
        pytest.fail(f"{done.stderr.decode(errors='replace')[-2000:]}\n{around}")
    return told.stdout


def state(server: Mysqld) -> dict[str, Any]:
    """Definitions and rows of all schemas, and routines, triggers and views."""
    found: dict[str, Any] = {}
    with connect(server).cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables "
            "WHERE table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')"
        )
        for schema, table, kind in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE `{schema}`.`{table}`")
            # The counter of AUTO_INCREMENT also counts what was rolled back, which no log has.
            definition = re.sub(r" AUTO_INCREMENT=\d+", "", cursor.fetchone()[1])
            cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
            rows = cursor.fetchall()
            found[f"{schema}.{table}"] = definition, sorted(rows, key=repr) if kind == "BASE TABLE" else len(rows)
        for query in (
            "SELECT schema_name, default_collation_name FROM information_schema.schemata ORDER BY 1",
            "SELECT routine_schema, routine_name, routine_definition, sql_mode, character_set_client, definer, "
            "collation_connection FROM information_schema.routines WHERE routine_schema <> 'sys' ORDER BY 1, 2",
            "SELECT trigger_schema, trigger_name, action_statement, sql_mode, character_set_client, definer FROM "
            "information_schema.triggers WHERE trigger_schema <> 'sys' ORDER BY 1, 2",
        ):
            cursor.execute(query)
            found[query] = cursor.fetchall()
    return found


@pytest.fixture(scope="module")
def worked(servers: tuple[MySqlServer, MySqlServer]) -> list[Path]:
    """The source's log of a random workload in all formats."""
    source, _ = servers
    (source.files / "file.txt").write_text("".join(f"{number}\t{'é' * (number % 40)}\n" for number in range(900)))
    (source.files / "empty.txt").write_text("")
    with connect(source).cursor() as cursor:
        run(cursor, f"CREATE DATABASE {SCHEMA}\nUSE {SCHEMA}\nSET binlog_format = STATEMENT")
        run(cursor, TABLES + RANDOM_TABLES + SCRIPT)
    with connect(source).cursor() as cursor:
        run(cursor, f"FLUSH BINARY LOGS\nUSE {SCHEMA}")
        for format in ("STATEMENT", "MIXED"):
            cursor.execute(f"SET binlog_format = {format}")
            for file in ("file", "empty"):
                cursor.execute(
                    f"LOAD DATA INFILE '{source.files}/{file}.txt' REPLACE INTO TABLE loaded CHARACTER SET utf8mb4 "
                    "(a, @b) SET b = CONCAT(@b, 'ß')"
                )
    for charset in ("latin1", "sjis", "gbk"):
        session = connect(source, charset=charset)
        with session.cursor() as cursor:
            run(cursor, f"USE {SCHEMA}\nSET binlog_format = STATEMENT")
            if charset == "latin1":
                cursor.execute(LATIN)
            else:  # the first character's second byte is a backslash in sjis
                cursor.execute("INSERT INTO r (s) VALUES ('\u8868\u793a'), (_utf8mb4 X'e8a1a8')")
        session.close()
    workload = Workload(source, SEED)
    workload.run(STATEMENTS)
    workload.close()
    return logs(source)


def events(*arguments: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "connector", "binlog", *map(str, arguments), "--events", "--format", "json"]
    told = subprocess.run(command, capture_output=True, check=False)
    assert (told.returncode, told.stderr.decode()) == (0, "")
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_events_equal_those_of_the_reference_library(
    servers: tuple[MySqlServer, MySqlServer], worked: list[Path]
) -> None:
    """Not the QUERY events: the library does not know the status variables of MySQL 9.7."""
    known = [XidEvent, TableMapEvent, IntvarEvent, RandEvent, BeginLoadQueryEvent, GtidEvent, WriteRowsEvent]
    check_library(servers[0], worked, only_events=known)


def test_events_of_mariadb_equal_those_of_its_tool(mariadb_server: SqlServer, tmp_path: Path) -> None:
    with connect(mariadb_server).cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS listed")
        cursor.execute("FLUSH BINARY LOGS")
        run(cursor, "CREATE DATABASE listed\nUSE listed\nCREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s TEXT)")
        run(cursor, "INSERT INTO t (s) VALUES ('a'), ('é')\nUPDATE t SET s = 'b'\nDELETE FROM t LIMIT 1")
        run(cursor, "SET binlog_format = STATEMENT, @v = 'x'\nINSERT INTO t (s) VALUES (@v), (RAND())")
        run(
            cursor, "SET binlog_format = ROW\nXA START 'x'\nINSERT INTO t (s) VALUES ('xa')\nXA END 'x'\nXA PREPARE 'x'"
        )
        run(cursor, "XA COMMIT 'x'\nSET GLOBAL log_bin_compress = ON")
        try:
            cursor.execute("INSERT INTO t (s) VALUES (REPEAT('compressed', 100))")
        finally:
            cursor.execute("SET GLOBAL log_bin_compress = OFF")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        name = cursor.fetchall()[-2][0]
        cursor.execute("SELECT @@datadir")
        file = Path(cursor.fetchone()[0], name)
    _, refused = check_events(events(file), mariadb_binlog(), file, tmp_path)
    assert not refused


def check_library(server: MySqlServer, files: list[Path], **options: Any) -> None:
    """Every event that mysql-replication decodes has the same header and fields."""
    settings = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    compared = set()
    for file in files:
        found = {one["next_position"]: one for one in events(file) if "offset_in_payload" not in one}
        stream = BinLogStreamReader(
            connection_settings=settings, server_id=4242, log_file=file.name, log_pos=4, resume_stream=True, **options
        )
        try:
            for event in stream:
                if stream.log_file != file.name:
                    break
                packet = event.packet
                if packet.log_pos == 0 or isinstance(event, (HeartbeatLogEvent, RotateEvent)):
                    continue
                ours = found[packet.log_pos]
                header = (ours["code"], ours["timestamp"], ours["server_id"], ours["size"])
                assert header == (packet.event_type, packet.timestamp, packet.server_id, packet.event_size)
                fields = ours["fields"]
                for name, attribute in (
                    ("xid", "xid"), ("gtid", "gtid"), ("last_committed", "last_committed"),
                    ("sequence_number", "sequence_number"), ("table_id", "table_id"), ("schema", "schema"),
                    ("table", "table"), ("rand_seed1", "seed1"), ("rand_seed2", "seed2"), ("file_id", "file_id"),
                ):  # fmt: skip
                    value = getattr(event, attribute, None)
                    if name in fields and value is not None and not (name == "gtid" and ours["code"] == 34):
                        value = value.decode() if isinstance(value, bytes) else value
                        assert fields[name] == value, (name, ours)
                if isinstance(event, QueryEvent):
                    assert fields["sql"] == event.query
                compared.add(ours["type"])
        finally:
            stream.close()
    assert len(compared) >= 6


def test_sql_of_a_random_workload_leaves_equal_tables(
    servers: tuple[MySqlServer, MySqlServer], worked: list[Path], tmp_path: Path
) -> None:
    source, copy = servers
    (tmp_path / "files").mkdir()

    printed = replay(worked, copy, "--load-folder", tmp_path / "files")

    for text in (b"\nBINLOG '", b"START TRANSACTION", b"XA PREPARE", b"LOCAL INFILE", b"/*!\\C sjis */", b"SET @`v`"):
        assert text in printed, text
    expected, found = state(source), state(copy)
    assert found.keys() == expected.keys()
    for name, what in expected.items():
        assert found[name] == what, name
    assert len(expected["said.r"][1]) > STATEMENTS // 3
    assert len(expected["said.loaded"][1]) == 900


def test_modes_have_the_names_that_the_server_gives_them(
    servers: tuple[MySqlServer, MySqlServer], mariadb_server: SqlServer
) -> None:
    for server, mariadb in ((servers[1], False), (mariadb_server, True)):
        compared = 0
        with connect(server).cursor() as cursor:
            for bit in range(36):
                try:
                    cursor.execute(f"SET sql_mode = {1 << bit}")
                except pymysql.err.OperationalError:  # the server has no such mode
                    continue
                cursor.execute("SELECT @@sql_mode")
                (names,) = cursor.fetchone()
                if names == "NOT_USED":
                    continue
                assert sql_mode_names(1 << bit, mariadb=mariadb) in names.split(",")  # some imply others
                compared += 1
        assert compared > 15
