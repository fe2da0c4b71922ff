"""Random changes that a source logs as statements, in sessions with random options."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pymysql

from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

TABLES = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, x DOUBLE, s VARCHAR(300), "
    "l VARCHAR(99) CHARACTER SET latin1, at DATETIME(6), ts TIMESTAMP(6) NULL, d DATE, n DECIMAL(30,10), "
    "g INT AS (k * 2) STORED)",
    "CREATE TABLE noted (t INT, at DATETIME(6), s VARCHAR(300), PRIMARY KEY (t))",
    "CREATE TRIGGER t_noted AFTER INSERT ON t FOR EACH ROW REPLACE INTO noted VALUES (NEW.id, NOW(6), NEW.s)",
    "CREATE TABLE parent (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(300))",
    "CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, n INT, FOREIGN KEY (parent) REFERENCES parent "
    "(id) ON DELETE CASCADE)",
    "CREATE TABLE loaded (a INT PRIMARY KEY, b VARCHAR(300), c DATETIME(6))",
    "CREATE TABLE plain (id INT AUTO_INCREMENT PRIMARY KEY, u CHAR(36), n INT)",
    "CREATE TABLE keyless (a INT, b VARCHAR(99))",
)
CHANGES = (
    "INSERT INTO t (s, x) VALUES ('one', RAND()), ('two', RAND({0}))",
    "INSERT IGNORE INTO t (k, s, at, ts) VALUES ({0}, CONCAT('é', {1}), NOW(6), NOW(6))",
    "INSERT INTO t (s, at, ts, d) VALUES (DATE_FORMAT('2026-03-01', '%W'), FROM_UNIXTIME({0}), NOW(), CURDATE())",
    "INSERT INTO t (s, n) VALUES (CONCAT_WS('|', @s, HEX(@b), @r, @i, @u, @n IS NULL), @d)",
    "INSERT INTO t (s, n) VALUES (CONCAT_WS('|', IF(@s IS NULL, 0, COLLATION(@s)), HEX(@s)), @d)",
    "INSERT INTO t (s, l) VALUES (@l, @l)",
    "INSERT INTO t (s) VALUES ('a' || 'b'), ('c\\\\d')",
    "INSERT INTO t (s, l) VALUES ('Zoë \u00fc', '\u00e9\u00df')",
    "INSERT INTO t (s, x) SELECT CONCAT(s, '+'), RAND() FROM t WHERE id % 17 = {0} ORDER BY id",
    "INSERT INTO t (k, s) VALUES ({0}, 'new') ON DUPLICATE KEY UPDATE s = CONCAT(LEFT(s, 99), 'again'), x = RAND()",
    "INSERT INTO t (id, k) VALUES (0, NULL)",
    "UPDATE t SET x = RAND(), at = SYSDATE_OF_LOG WHERE id % 7 = {0} % 7",
    "UPDATE t SET s = CONCAT(LEFT(s, 99), @s), n = @d WHERE id % 11 = {1} % 11",
    "UPDATE IGNORE t SET k = k + 1 WHERE k > {0} ORDER BY k DESC",
    "UPDATE t JOIN child ON child.n = t.k SET t.s = 'joined', child.n = child.n + 1 WHERE t.k = {0}",
    "DELETE FROM t WHERE k = {0}",
    "REPLACE INTO t (k, s) VALUES ({1}, LAST_INSERT_ID())",
    "INSERT INTO parent (s) VALUES ('p{0}'), ('q{0}')",
    "INSERT INTO child (parent, n) VALUES (LAST_INSERT_ID(), {0}), (NULL, {1})",
    "INSERT INTO child (parent, n) SELECT id, {0} FROM parent WHERE id % 5 = {0} % 5 ORDER BY id",
    "DELETE FROM parent WHERE id % 9 = {0} % 9",
    "DELETE t, noted FROM t JOIN noted ON noted.t = t.id WHERE t.k = {1}",
    "INSERT INTO keyless VALUES ({0}, 'x'), ({0}, 'x')",
    "UPDATE keyless SET b = RAND({1}) WHERE a = {0}",
    "INSERT INTO plain (n) VALUES ({0}), (@v := {1})",
    "WITH w AS (SELECT id FROM plain WHERE n = {0}) UPDATE plain JOIN w USING (id) SET n = n + 1",
)
ROWS = ("INSERT INTO plain (u, n) VALUES (UUID(), {0})", "UPDATE plain SET u = UUID() WHERE n = {0}")
OPTIONS = (
    *(f"SET time_zone = '{zone}'" for zone in ("+00:00", "+05:30", "-08:00", "SYSTEM")),
    "SET timestamp = 1700000000.123456",
    "SET timestamp = DEFAULT",
    *(
        f"SET sql_mode = {mode}"
        for mode in ("DEFAULT", "''", "'ANSI_QUOTES,PIPES_AS_CONCAT'", "'NO_BACKSLASH_ESCAPES'")
    ),
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'",
    "SET auto_increment_increment = 7, auto_increment_offset = 3",
    "SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT",
    "SET lc_time_names = 'de_DE'",
    "SET lc_time_names = DEFAULT",
    "SET foreign_key_checks = 0, unique_checks = 0",
    "SET foreign_key_checks = 1, unique_checks = 1",
    "SET collation_connection = utf8mb4_bin",
    "SET @s = _latin1 X'636166e9' COLLATE latin1_german1_ci, @b = X'00ff', @r = 1e0 / 3, @i = -5, @n = NULL",
    "SET @s = 'ë', @d = CAST(-12.5000000001 AS DECIMAL(30, 10)), @u = 18446744073709551615, @l = 'x'",
    "SET @s = NULL, @d = NULL, @l = _latin1 X'e9df'",
)
LOADS = (
    "LOAD DATA LOCAL INFILE '{file}' INTO TABLE loaded CHARACTER SET utf8mb4 (a, @b) SET b = CONCAT(@b, a), c = NOW(6)",
    "LOAD DATA LOCAL INFILE '{file}' REPLACE INTO TABLE loaded CHARACTER SET utf8mb4 (a, b)",
)


class Workload:
    """Sessions on a source, in one database.

    Args:
        server: the source.
        database: an empty database.
        draw: chooses.
        folder: for files.
    """

    def __init__(self, server: SqlServer, database: str, draw: random.Random, folder: Path) -> None:
        self._draw = draw
        self._folder = folder
        self.refused = 0
        charsets = ("utf8mb4", "latin1", "cp1250")
        self._sessions: list[Any] = [
            connect(server, charset=one, local_infile=True, database=database) for one in charsets
        ]
        for table in TABLES:
            self._run(self._sessions[0], table)

    def write(self, transactions: int) -> None:
        """Run transactions, most of which are logged as statements, some as rows and statements."""
        for number in range(transactions):
            session = self._draw.choice(self._sessions)
            for _ in range(self._draw.randrange(3)):
                self._run(session, self._draw.choice(OPTIONS))
            mixed = self._draw.random() < 0.2
            self._run(session, f"SET binlog_format = {'MIXED' if mixed else 'STATEMENT'}")
            if self._draw.random() < 0.05:
                self._load(session, number)
                continue
            if alone := self._draw.random() < 0.4:
                self._change(session, mixed=mixed)
                continue
            self._run(session, "BEGIN")
            for step in range(self._draw.randrange(1, 6)):
                if step == 2:
                    self._run(session, "SAVEPOINT one")
                self._change(session, mixed=mixed)
                if step == 3 and self._draw.random() < 0.5:
                    self._run(session, "ROLLBACK TO one")
            self._run(session, "COMMIT" if alone or self._draw.random() < 0.9 else "ROLLBACK")

    def _change(self, session: Any, *, mixed: bool) -> None:
        one, other = self._draw.sample(range(1, 60), 2)
        # A trigger with rows would act on the target once more: in mixed format what is unsafe becomes rows.
        safe = [change for change in CHANGES if " plain " in change or " keyless " in change]
        change = self._draw.choice((*ROWS, *safe)) if mixed else self._draw.choice(CHANGES)
        self._run(session, change.format(one, other).replace("SYSDATE_OF_LOG", "NOW(6)"))

    def _load(self, session: Any, number: int) -> None:
        file = self._folder / f"file{number}"
        self._run(session, "SET sql_mode = DEFAULT")  # NO_BACKSLASH_ESCAPES is refused
        first = self._draw.randrange(5000)
        file.write_text(
            "".join(f"{first + n}\t{'é' if n % 3 else 'x' * 200}\n" for n in range(self._draw.randrange(600)))
        )
        self._run(session, self._draw.choice(LOADS).format(file=file))

    def _run(self, session: Any, sql: str) -> None:
        """Run a statement; the source refuses some, as clients' statements are."""
        try:
            with session.cursor() as cursor:
                cursor.execute(sql)
        except (
            pymysql.err.IntegrityError,
            pymysql.err.DataError,
            pymysql.err.OperationalError,
            pymysql.err.ProgrammingError,
        ):
            self.refused += 1

    def close(self) -> None:
        """Commit what is open, and end the sessions."""
        for session in self._sessions:
            session.commit()
            session.close()


def tables(server: SqlServer, database: str) -> dict[str, tuple[str, list[Any]]]:
    """Each table: its definition without the next number, and the bytes of its rows."""
    session = connect(server, charset="utf8mb4", database=database)
    session.decoders, session.use_unicode = {}, False  # as the server sends them
    found = {}
    with session.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', character_set_results = NULL")
        cursor.execute("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
        for name, *_ in cursor.fetchall():
            shown = name.decode()
            cursor.execute(f"SHOW CREATE TABLE `{shown}`")
            definition = [line for line in cursor.fetchone()[1].decode().splitlines() if not line.startswith(")")]
            cursor.execute(f"SELECT * FROM `{shown}`")
            found[shown] = "\n".join(definition), sorted(cursor.fetchall(), key=repr)
    session.close()
    return found
