"""`thl list --format sql`, executed by a real MySQL on a copy of the state before, gives the state after."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.inspect.formats.printing import Layout, View, log_printer
from connector.inspect.thl_events.log import Listed, listed
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SourcePosition
from connector.mysql.transforms.filters import Filter
from connector.patterns import column_patterns
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.binlog.test_statements import SCRIPT, TABLES
from tests.integration.binlog.test_types import cases
from tests.support.binlog import changes, read_from
from tests.support.fragments import change, encoded, load_record, statement
from tests.support.loading import EVERYTHING
from tests.support.mysql import connect

pytestmark = pytest.mark.servers
SCHEMA = "told"
# Without GTIDs a server takes what they forbid: both kinds of tables, and temporary ones, in one transaction.
SETTINGS = {**MYSQL_FAST, "gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
NO_KEY = re.compile(r"text|blob|geometry|point|json|varchar\(2000\)")
GENERATED = ("told.everything.gen*", "told.computed.odd*", "told.computed.c")
JSON = (  # within quotes of SQL
    r'{"a": [1, -0.0, 1e100, 18446744073709551615, null, true, "ü\\n\\"q\\""], "b": {}}',
    "[]",
    r'"\\u0007 \\\\"',
    "3.5",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    with MySqlServer(tmp_path_factory.mktemp("told"), settings=SETTINGS, die_with_parent=True) as running:
        yield running


def session(server: MySqlServer) -> Any:
    return connect(server, init_command="SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")


def run(cursor: Any, statements: Iterable[str]) -> None:
    for one in filter(str.strip, statements):
        cursor.execute(one)


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def started_again(cursor: Any, start: Iterable[str], *, logged: bool) -> None:
    """The state before, made by the same statements each time."""
    cursor.execute(f"SET sql_log_bin = {int(logged)}")
    run(cursor, (f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}", f"USE {SCHEMA}"))
    run(cursor, start)


def state(cursor: Any) -> dict[str, tuple[str, list[Any]]]:
    """Of every table the definition and the rows, with the bytes of each value."""
    cursor.execute(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{SCHEMA}'")
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (SCHEMA, table),
        )
        shown = []
        for column, kind in cursor.fetchall():
            name = quoted(column)
            if kind in {"float", "double"}:
                shown.append(f"CAST(CAST({name} AS DOUBLE) AS CHAR)")
            elif kind.endswith(("char", "text", "blob", "binary")) or kind in {"geometry", "point", "vector", "bit"}:
                shown.append(f"HEX({name})")
            else:
                shown.append(f"CAST({name} AS CHAR)")
        cursor.execute(f"SELECT {', '.join(shown)} FROM `{SCHEMA}`.{quoted(table)}")
        rows = sorted(cursor.fetchall(), key=repr)
        cursor.execute(f"SHOW CREATE TABLE `{SCHEMA}`.{quoted(table)}")
        found[table] = re.sub(r" AUTO_INCREMENT=\d+", "", cursor.fetchone()[1]), rows
    return found


def logged(server: MySqlServer, cursor: Any, script: Callable[[], None]) -> list[Listed]:
    """The fragments of what a script does, from the server's binary log."""
    cursor.execute("SET sql_log_bin = 1")
    cursor.execute("SHOW BINARY LOG STATUS")
    file, offset, *_ = cursor.fetchone()
    script()
    with connect(server).cursor() as fence:
        fence.execute(f"CREATE TABLE {SCHEMA}.fence (a INT)")
        fence.execute("SET sql_log_bin = 0")
        fence.execute(f"DROP TABLE {SCHEMA}.fence")
    filters = Filter(Filters(do=(SCHEMA,)), keeps_statements=True)
    items = read_from(server, SourcePosition(file, int(offset)), _fenced, filters=filters)
    batches = [item for item in items if isinstance(item, TransactionBatch)]
    encoder = Encoder(
        service="s", source_id="db:1", partitions=1, limits=Limits(fragment=20_000, shard=1 << 22, message=1 << 20)
    )
    encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
    found = [fragment for batch in batches[: _before_fence(batches)] for fragment in encoder.encode(batch)]
    result: list[Listed] = []
    for seqno in range(found[-1].seqno + 1):
        event = [(number, fragment.value) for number, fragment in enumerate(found) if fragment.seqno == seqno]
        result += listed("thl.s", 0, event, voided=False)
    return result


def _fenced(items: list[Any]) -> bool:
    return any("TABLE told.fence" in getattr(change, "sql", "") for change in changes(items[-3:]))


def _before_fence(batches: list[TransactionBatch]) -> int:
    return next(number for number, batch in enumerate(batches) if _fenced([batch]))


def printed(fragments: Iterable[Listed], *, hexadecimal: bool = False) -> bytes:
    out = io.BytesIO()
    view = View(layout=Layout.SQL, hexadecimal=hexadecimal, excluded_columns=column_patterns(GENERATED))
    printer = log_printer(view, out)
    for one in fragments:
        printer.show(one)
    printer.flush()
    return out.getvalue()


def executed(server: MySqlServer, sql: bytes, folder: Path) -> None:
    (folder / "told.sql").write_bytes(sql)
    done = subprocess.run(
        [*server.client("mysql"), "--init-command=SET sql_log_bin = 0"], input=sql, capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stderr.decode(errors="replace"), folder / "told.sql")


def equal_afterwards(
    server: MySqlServer,
    cursor: Any,
    start: list[str],
    script: Callable[[], None],
    folder: Path,
    *,
    hexadecimal: Sequence[bool] = (False,),
) -> tuple[str, list[Listed]]:
    """Run a script, and its SQL, in each form, on the state before; returns the SQL and its fragments."""
    started_again(cursor, start, logged=False)
    before = state(cursor)
    fragments = logged(server, cursor, script)
    after = state(cursor)
    assert before != after
    sql = b""
    for form in hexadecimal:
        started_again(cursor, start, logged=False)
        sql = printed(fragments, hexadecimal=form)
        executed(server, sql, folder)
        now = state(cursor)
        for table, (definition, rows) in now.items():
            assert definition == after[table][0]
            assert rows == after[table][1], table
        assert now.keys() == after.keys()
    return sql.decode(errors="surrogateescape"), fragments


def test_rows_of_every_type_are_changed_by_key_and_without_one(server: MySqlServer, tmp_path: Path) -> None:
    types = [(definition, values) for _, definition, values in cases()]
    types += [("json", [f"'{one}'" for one in JSON]), ("vector(3)", ["string_to_vector('[1,-2,0.1]')"])]
    keyed = [(number, *one) for number, one in enumerate(types) if not NO_KEY.search(one[0]) and "vector" not in one[0]]
    columns = ", ".join(f"c{number} {definition}" for number, (definition, _) in enumerate(types))
    names = ", ".join(f"c{number}" for number in range(len(types)))
    rows = [
        ", ".join(values[row] if row < len(values) else "NULL" for _, values in types)
        for row in range(max(len(values) for _, values in types))
    ]
    wide = [f"INSERT INTO wide ({names}, w) VALUES ({row}, 0), ({row}, 0)" for row in rows]
    start = [f"CREATE TABLE wide ({columns}, w INT) ROW_FORMAT = DYNAMIC"]
    start += [
        f"CREATE TABLE k{number} (v {definition.removesuffix(' null')}, w INT, PRIMARY KEY (v))"
        for number, definition, _ in keyed
    ]
    change = [
        *(f"INSERT IGNORE INTO k{n} VALUES {', '.join(f'({v}, {i})' for i, v in enumerate(vs))}" for n, _, vs in keyed),
        *(f"UPDATE k{n} SET w = w + 10 WHERE w > 0" for n, _, _ in keyed),
        *(f"DELETE FROM k{n} LIMIT 1" for n, _, _ in keyed),
        *wide,
        "UPDATE wide SET w = 1 LIMIT 5",
        "DELETE FROM wide WHERE w = 1 LIMIT 2",
        f"UPDATE wide SET w = 3, {', '.join(f'c{number} = NULL' for number in range(0, len(types), 3))} LIMIT 4",
        "DELETE FROM wide WHERE w = 0 LIMIT 3",
        *wide[:2],
    ]
    with session(server).cursor() as cursor:
        cursor.execute("SET binlog_format = ROW")
        sql, fragments = equal_afterwards(
            server, cursor, start + wide, lambda: run(cursor, change), tmp_path, hexadecimal=(True, False)
        )
    assert sql.count("BEGIN;") == sql.count("COMMIT;") > 100
    assert "LIMIT 1;" in sql
    assert max(one.fragment["fragno"] for one in fragments) > 0


def test_everything_is_changed_and_defined(server: MySqlServer, tmp_path: Path) -> None:
    """Generated columns are excluded; bodies have semicolons; names have odd characters."""
    tables = [one for one in EVERYTHING if one.lstrip().startswith("create")]
    rows = [one for one in EVERYTHING if not one.lstrip().startswith("create")]
    change = [
        *rows,
        "UPDATE everything SET t1 = t1 + 10, v = CONCAT(IFNULL(v, ''), 'x'), j = JSON_ARRAY(t1, f)",
        "DELETE FROM everything WHERE t1 = 17",
        """UPDATE everything SET j = JSON_OBJECT('p"x', 1.10, 'l', JSON_ARRAY(0.5, -0.00, d), 'd', d2, 't', da3)""",
        "UPDATE nokey SET b = 'y' WHERE a = 1 LIMIT 1",
        "DELETE FROM nokey WHERE a IS NULL LIMIT 2",
        "UPDATE zeros SET t = '00:00:01' WHERE y = 0",
        "DELETE FROM zeros WHERE y = 1901",
        "UPDATE labelled SET e = 'new\nline', s = 'b' WHERE e2 = 'x'",
        "UPDATE computed SET a = a + 10",
        "UPDATE prefixed SET n = n + 1",
        "CREATE TABLE `odd ``name; ü` (`a'b` INT PRIMARY KEY, `c\nd` VARCHAR(9)) COMMENT 'it''s; # -- /*'",
        "INSERT INTO `odd ``name; ü` VALUES (1, 'a;b'), (2, '-- c'), (3, 'back\\\\slash\\0\r\n\t\x1a\x07'), (4, '')",
        "UPDATE `odd ``name; ü` SET `c\nd` = 'B' WHERE `a'b` = 1",
        "CREATE TABLE chosen AS SELECT a, b FROM nokey",
        "CREATE PROCEDURE p (x INT) BEGIN IF x > 0 THEN SELECT ';'; END IF; END",
        "CREATE TABLE case_sensitive (a VARCHAR(9), b VARCHAR(9) CHARACTER SET latin1)",
        "INSERT INTO case_sensitive VALUES ('a', 'é'), ('A', 'É'), ('á', 'e'), ('a ', 'e ')",
        "UPDATE case_sensitive SET a = 'x' WHERE BINARY a = 'A'",
        "DELETE FROM case_sensitive WHERE BINARY a = 'a '",
        "CREATE VIEW w AS SELECT a FROM nokey -- a comment",
        "DROP VIEW w",
    ]
    with session(server).cursor() as cursor:
        cursor.execute("SET binlog_format = ROW, sql_mode = ''")
        sql, _ = equal_afterwards(server, cursor, tables, lambda: run(cursor, change), tmp_path)
        cursor.execute(f"SHOW CREATE PROCEDURE {SCHEMA}.p")
        assert "SELECT ';'; END IF" in cursor.fetchone()[2]
    assert "DELIMITER //" in sql


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_images_change_the_same_rows(server: MySqlServer, tmp_path: Path, image: str) -> None:
    start = [
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, at TIMESTAMP DEFAULT 0 ON UPDATE CURRENT_TIMESTAMP)",
        "CREATE TABLE u (a INT NOT NULL UNIQUE, b TEXT, c INT)",
        "CREATE TABLE n (a INT, b TEXT)",
        "INSERT INTO t VALUES (1, 1, 'x', 0), (2, 2, 'y', 0), (3, 3, NULL, 0)",
        "INSERT INTO u VALUES (1, 'x', 1), (2, 'y', 2)",
        "INSERT INTO n VALUES (1, 'x'), (1, 'X'), (2, 'x')",
    ]
    change = [
        "UPDATE t SET a = 5, at = at WHERE id = 1",
        "UPDATE t SET id = 9 WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO t (id) VALUES (7)",
        "UPDATE u SET c = 5 WHERE a = 1",
        "DELETE FROM u WHERE a = 2",
        "UPDATE n SET a = 4 WHERE BINARY b = 'X'",
        "DELETE FROM n WHERE a = 2",
    ]
    with session(server).cursor() as cursor:
        cursor.execute(f"SET binlog_format = ROW, binlog_row_image = {image}")
        equal_afterwards(server, cursor, start, lambda: run(cursor, change), tmp_path)


@pytest.mark.parametrize("format", ["STATEMENT", "MIXED"])
def test_statements_are_executed_with_their_session(server: MySqlServer, tmp_path: Path, format: str) -> None:
    latin = connect(server, charset="latin1")

    def script() -> None:
        run(cursor, SCRIPT.splitlines())
        with latin.cursor() as other:
            run(other, (f"USE {SCHEMA}", f"SET binlog_format = {format}"))
            run(other, ("INSERT INTO t (s) VALUES ('caf\u00e9 \u20ac'), (_latin1'\u00e9')",))

    with session(server).cursor() as cursor:
        run(cursor, (f"SET binlog_format = {format}", "SET sql_mode = DEFAULT, time_zone = DEFAULT"))
        sql, _ = equal_afterwards(server, cursor, TABLES.splitlines(), script, tmp_path)
    latin.close()
    if format == "STATEMENT":
        assert re.search(r"SET INSERT_ID = 1;\nSET [^\n]*;\nINSERT INTO t \(s\)", sql)
        assert "SET RAND_SEED1 = " in sql
        assert "\nROLLBACK;\n" in sql
        assert "caf\udce9 \udc80" in sql  # in the client's character set


def test_load_changes_nothing_on_a_copy_and_makes_what_is_missing(server: MySqlServer, tmp_path: Path) -> None:
    parent = "CREATE TABLE parent (id INT PRIMARY KEY, v INT UNIQUE)"
    notes = "CREATE TABLE notes (id INT, v INT)"
    child = "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"
    rows = [[1, 10], [2, 20], [2, 20]]
    start = [parent, notes, child, "INSERT INTO parent VALUES (1, 10), (2, 20)", "INSERT INTO child VALUES (1, 1)"]
    start += ["INSERT INTO notes VALUES (1, 10), (2, 20), (2, 20)"]

    def read(table: str, images: list[list[int]]) -> dict[str, Any]:
        key = (0,) if table == "parent" else ()
        return change("read", [(None, image) for image in images], schema=SCHEMA, table=table, key=key)

    fragments: list[Listed] = []
    for create, table, part in ((parent, "parent", Part.ROWS), (notes, "notes", Part.WHOLE)):
        definition = [statement(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}", SCHEMA), statement(create, SCHEMA)]
        loaded = [read(table, rows[:2] if table == "parent" else rows)]
        for number, (one, made) in enumerate(((Part.BEGIN, definition), (part, loaded), (Part.END, []))):
            metadata = LoadEvent("l1", one, TableName(SCHEMA, table)).metadata()
            message = encoded(load_record(number, made) | {"metadata": metadata})
            fragments += listed("thl.s", 0, [(number, message)], voided=False)
    with session(server).cursor() as cursor:
        started_again(cursor, start, logged=False)
        before = state(cursor)
        executed(server, printed(fragments), tmp_path)
        assert state(cursor) == before
        run(
            cursor,
            (
                f"USE {SCHEMA}",
                "DELETE FROM parent WHERE id = 2",
                "UPDATE parent SET v = 20",
                "DELETE FROM notes LIMIT 1",
            ),
        )
        executed(server, printed(fragments), tmp_path)
        assert state(cursor) == before
        cursor.execute(f"DROP DATABASE {SCHEMA}")
        executed(server, printed(fragments), tmp_path)
        del before["child"]
        assert state(cursor) == before
