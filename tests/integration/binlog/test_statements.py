"""Statement and mixed format: the printed log of a real server, replayed elsewhere, leaves equal tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.log.transaction.statement_options import SYSTEM_ZONE
from connector.mysql.binlog.events.query import VARIABLES
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.support.mysql import connect
from tests.support.producing import Bench, finished, fragments, until
from tests.support.replay import Replay
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.servers
SCHEMA, COPY = "said", "replayed"
# Without GTIDs a server takes what they forbid: both kinds of tables, and temporary ones, in one transaction.
SETTINGS = {
    **MYSQL_FAST,
    "gtid_mode": "OFF",
    "enforce_gtid_consistency": "OFF",
    "local_infile": "ON",
    "lock_wait_timeout": "30",
}
TABLES = """
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, x DOUBLE, s VARCHAR(999), at DATETIME(3), z VARCHAR(30))
CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, n INT)
CREATE TABLE plain (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(99)) ENGINE = MyISAM
CREATE TABLE loaded (a INT PRIMARY KEY, b VARCHAR(400))
CREATE TABLE random (id INT AUTO_INCREMENT PRIMARY KEY, u CHAR(36))
"""
SCRIPT = """
INSERT INTO t (s) VALUES ('one'), ('two')
INSERT INTO child (parent) VALUES (LAST_INSERT_ID()), (LAST_INSERT_ID())
INSERT INTO t (x, s) SELECT RAND(), CONCAT(RAND(), s) FROM t
SET time_zone = '+05:30', timestamp = 1700000000.123456
INSERT INTO t (at, s, z) VALUES (NOW(3), FROM_UNIXTIME(0), @@time_zone)
SET timestamp = DEFAULT, time_zone = 'SYSTEM'
SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'
INSERT INTO "t" ("s") VALUES ('a' || 'b')
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'
INSERT INTO child (id, parent) VALUES (0, 0)
SET sql_mode = DEFAULT, auto_increment_increment = 7, auto_increment_offset = 3
INSERT INTO child (parent, n) VALUES (1, 1), (2, 2)
SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT
SET lc_time_names = 'de_DE'
INSERT INTO t (s) VALUES (DATE_FORMAT('2026-03-01', '%M'))
SET @s = _latin1 X'636166e9' COLLATE latin1_german1_ci, @e = '', @b = X'00ff', @k = CONVERT('日本' USING sjis)
SET @r = 1e0 / 3, @w = 5e0, @i = -5, @u = CAST(5 AS UNSIGNED), @h = 18446744073709551615, @n = NULL
SET @d = CAST(-12.50 AS DECIMAL(10, 2)), @d0 = CAST(7 AS DECIMAL(5)), @f = CAST(0.000000001234 AS DECIMAL(30, 20))
SET @`a``b c` = 'odd'
SET @D9 = CAST(-99999999999999999999999999999999999.123456789012345678901234567890 AS DECIMAL(65, 30))
INSERT INTO t (s, x) VALUES (CONCAT_WS('|', HEX(@s), COLLATION(@s), HEX(@k), CHARSET(@k), @d, @d0, @f, @D9, @n), @r)
INSERT INTO t (s) VALUES (CONCAT_WS('|', @e, COLLATION(@e), HEX(@b), @i, @u, @h, @`a``b c`, @w))
CREATE TABLE typed AS SELECT @s AS s, @e AS e, @b AS b, @k AS k, @r AS r, @w AS w, @i AS i
CREATE TABLE numbers AS SELECT @u AS u, @h AS h, @n AS n, @d AS d, @d0 AS d0, @f AS f, @D9 AS d9
CREATE TEMPORARY TABLE tmp (a INT) SELECT 41 AS a
INSERT INTO child (n) SELECT a FROM tmp
BEGIN
INSERT INTO t (s) VALUES ('in')
CREATE TEMPORARY TABLE within (a INT)
INSERT INTO within VALUES (5), (6)
INSERT INTO child (n) SELECT a FROM within
DROP TEMPORARY TABLE within
COMMIT
BEGIN
INSERT INTO t (s) VALUES ('before the savepoint')
SAVEPOINT `a point`
INSERT INTO t (s) VALUES ('taken back')
INSERT INTO plain (s) VALUES ('stays')
ROLLBACK TO SAVEPOINT `a point`
INSERT INTO t (s) VALUES ('after')
COMMIT
BEGIN
INSERT INTO t (s) VALUES ('rolled back')
INSERT INTO plain (s) VALUES ('stays too')
ROLLBACK
UPDATE t SET x = RAND(5) WHERE id < 3
DELETE FROM child WHERE n = 2
REPLACE INTO random (id, u) VALUES (1, 'fixed')
TRUNCATE plain
INSERT INTO plain (s) VALUES (USER() = ''), (CONNECTION_ID() > 0)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    with MySqlServer(tmp_path_factory.mktemp("statements"), settings=SETTINGS, die_with_parent=True) as running:
        yield running


def run(cursor: Any, text: str) -> None:
    for line in filter(None, text.splitlines()):
        cursor.execute(line)


def printed(server: MySqlServer, cursor: Any, *arguments: str) -> bytes:
    """What the newest file of the log holds; the next one is begun."""
    cursor.execute("SHOW BINARY LOGS")
    file = server.data / cursor.fetchall()[-1][0]
    cursor.execute("FLUSH BINARY LOGS")
    command = [sys.executable, "-m", "connector", "binlog", str(file), *arguments]
    told = subprocess.run(command, capture_output=True, check=False)
    assert (told.returncode, told.stderr.decode()) == (0, "")
    return told.stdout


def tables(cursor: Any, schema: str) -> dict[str, tuple[str, list[Any]]]:
    """Every table: its definition and its rows."""
    cursor.execute(f"USE {schema}")
    cursor.execute("SHOW TABLES")
    found = {}
    for (name,) in cursor.fetchall():
        cursor.execute(f"SHOW CREATE TABLE {name}")
        definition = cursor.fetchone()[1]
        cursor.execute(f"SELECT * FROM {name} ORDER BY 1")
        found[name] = definition, list(cursor.fetchall())
    return found


@pytest.mark.parametrize("format", ["STATEMENT", "MIXED"])
def test_replayed_output_leaves_equal_tables(server: MySqlServer, tmp_path: Path, format: str) -> None:
    lines = "".join(f"{number}\t{'é' if number % 3 else 'x' * 300}\n" for number in range(3000))
    (server.files / "file.txt").write_text(lines)
    writer, other = connect(server), connect(server)
    with writer.cursor() as cursor, other.cursor() as second:
        for schema in (SCHEMA, COPY):
            run(cursor, f"DROP DATABASE IF EXISTS {schema}\nCREATE DATABASE {schema}")
        cursor.execute("FLUSH BINARY LOGS")
        for session in (cursor, second):
            run(session, f"USE {SCHEMA}\nSET binlog_format = {format}")
        run(cursor, TABLES + SCRIPT)
        # The same name in two sessions is two temporary tables.
        run(second, "CREATE TEMPORARY TABLE tmp (a INT)\nINSERT INTO tmp VALUES (1), (2)")
        run(second, "INSERT INTO child (n) SELECT a + 100 FROM tmp")
        run(cursor, "INSERT INTO child (n) SELECT a + 200 FROM tmp")
        load = (
            f"LOAD DATA INFILE '{server.files}/file.txt' %s INTO TABLE loaded CHARACTER SET utf8mb4 (a, @b) SET b = @b"
        )
        run(cursor, f"{load % ''}\n{load % 'REPLACE'}\n/* ä */ {load % 'IGNORE'}")
        if format == "MIXED":
            run(cursor, "INSERT INTO random (u) VALUES (UUID()), (UUID())")
        latin = connect(server, charset="latin1")
        with latin.cursor() as third:
            run(third, f"USE {SCHEMA}\nSET binlog_format = {format}\nINSERT INTO t (s) VALUES ('caf\u00e9 \u20ac')")
        latin.close()
        for session in (cursor, second):
            session.execute("DROP TEMPORARY TABLE tmp")
        found = [json.loads(line) for line in printed(server, cursor, "--do", SCHEMA).splitlines()]

    changes = [change for transaction in found for change in transaction["changes"]]
    assert any("rows" in change for change in changes) == (format == "MIXED")
    if format == "STATEMENT":
        names = {re.sub("@.*", "@", name) for change in changes for name in change["options"]}
        assert names >= {
            "@", "insert_id", "last_insert_id", "rand_seed1", "rand_seed2", "pseudo_thread_id", "timestamp",
            "time_zone", "sql_mode", "load_data_block", "load_data_from", "auto_increment_increment",
        }  # fmt: skip
        assert [t["outcome"] for t in found if "outcome" in t] == ["rollback"]
        assert sum(change["sql"].startswith("ROLLBACK TO") for change in changes) == 1
    copier = connect(server, local_infile=True)
    with copier.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        (tmp_path / "files").mkdir()
        Replay(copier, COPY, tmp_path / "files").transactions(found)
    with connect(server).cursor() as cursor:
        said, replayed = tables(cursor, SCHEMA), tables(cursor, COPY)
    assert sum(len(rows) for _, rows in said.values()) > 3000
    assert replayed == said
    for session in (writer, other, copier):
        session.close()


def test_tungstens_layout_shows_options_and_statements(server: MySqlServer) -> None:
    with connect(server).cursor() as cursor:
        run(cursor, "DROP DATABASE IF EXISTS shown\nCREATE DATABASE shown\nUSE shown")
        run(cursor, "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b DOUBLE)\nFLUSH BINARY LOGS")
        run(
            cursor,
            "SET binlog_format = STATEMENT, @v = 'x', timestamp = 1700000000\nINSERT INTO t (b) VALUES (@v = 'x')",
        )
        lines = printed(server, cursor, "--format", "tungsten").decode().splitlines()
    (options,) = [line for line in lines if line.startswith("- OPTIONS")]
    assert "timestamp = 1700000000.000000" in options
    assert options.startswith("- OPTIONS = [##charset = UTF-8, ")
    assert "character_set_client = 255, collation_connection = 255, " in options
    assert not re.search("insert_id|@v", options)
    assert lines[-5:] == [
        "- SQL(0) = SET INSERT_ID = 1",
        "- SQL(1) = SET @`v` := _utf8mb4 0x78 COLLATE utf8mb4_0900_ai_ci",
        options,
        "- SCHEMA = shown",
        "- SQL(2) = INSERT INTO t (b) VALUES (@v = 'x')",
    ]


def test_every_status_variable_is_read() -> None:
    """Those of MySQL 5.0 to 9.7; 14 and 15 were never written."""
    assert set(VARIABLES) >= set(range(22)) - {14, 15}


def told(changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Statements with their options in order; of each row its table and first column."""
    found: list[tuple[Any, ...]] = []
    for change in changes:
        if "sql" in change:
            found.append((change["schema"], change["sql"], list(change["options"].items())))
        for row in change.get("rows", ()):
            image = row.get("after") or row["before"]
            found.append((change["table"], image[0] if isinstance(image, list) else next(iter(image.values()))))
    return found


def in_time_zone(change: dict[str, Any], system: str) -> dict[str, Any]:
    """A change without the source's time zone, which no binary log has: it is there if the session's is SYSTEM."""
    options = dict(change.get("options", ()))
    assert options.pop(SYSTEM_ZONE, None) == (system if options.get("time_zone") == "SYSTEM" else None)
    return {**change, "options": options} if "sql" in change else change


def test_kept_statements_equal_those_of_the_binary_log(
    server: MySqlServer, kafka_broker: Broker, tmp_path: Path
) -> None:
    """Through a producer and Kafka, transaction by transaction: texts, options in their order, blocks of files."""
    bench = Bench(server, kafka_broker, tmp_path)
    bench.settings |= {"THL_SOURCE__STATEMENTS": "keep", "THL_SOURCE__START": "now"}
    bench.settings["THL_PUBLISH__FRAGMENT_BYTES"] = "900"
    (server.files / "file.txt").write_text("".join(f"{number}\t{'x' * 300}\n" for number in range(300)))
    with connect(server).cursor() as cursor, bench.start() as producing:
        cursor.execute(f"CREATE DATABASE {bench.service}")
        cursor.execute("FLUSH BINARY LOGS")
        producing.online()
        for format in ("STATEMENT", "MIXED"):
            run(cursor, f"USE {bench.service}\nSET binlog_format = {format}")
            run(cursor, TABLES + SCRIPT)
            run(
                cursor,
                f"LOAD DATA INFILE '{server.files / 'file.txt'}' INTO TABLE loaded (a, @b) SET b = CONCAT(@b, a)",
            )
            run(cursor, "INSERT INTO random (u) VALUES (UUID())" if format == "MIXED" else "")
            if format == "STATEMENT":
                run(cursor, "DROP TABLE t, child, plain, loaded, random, typed, numbers\nDROP TEMPORARY TABLE tmp")
        cursor.execute("CREATE TABLE fence (a INT)")

        def there() -> bool:
            events = finished(fragments(bench.config))
            return bool(events) and "fence" in str(events[-1])

        until(there)
        assert producing.stop() == 0, producing.text
        expected = [json.loads(line) for line in printed(server, cursor, "--do", bench.service).splitlines()]
        cursor.execute("SELECT @@system_time_zone")
        ((zone,),) = cursor.fetchall()
    events = finished(fragments(bench.config))
    assert [event[-1]["event_id"] for event in events] == [transaction["event_id"] for transaction in expected]
    for event, transaction in zip(events, expected, strict=True):
        found = [in_time_zone(change, zone) for fragment in event for change in fragment["changes"]]
        assert told(found) == told(transaction["changes"])
        assert event[-1]["outcome"] == transaction.get("outcome", "commit")
    changes = [change for transaction in expected for change in transaction["changes"]]
    options = {name for change in changes for name in change.get("options", ())}
    assert {"load_data_block", "rand_seed1", "insert_id", "time_zone"} <= options
    assert any(len(event) > 3 for event in events)
    assert any("rows" in change for event in events for fragment in event for change in fragment["changes"])
