"""The binary log of a real MariaDB: values equal their SELECT, transactions equal the committed ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.errors import Unsupported
from connector.log.ids import Kind
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.log.transaction.layout import TableLayout
from connector.mysql.values.collations import charset_of
from tests.integration.binlog.test_binlog_command import binlog
from tests.integration.binlog.test_types import BYTES, DOUBLE, EXACT, TEXT, allowing, cases
from tests.support.binlog import changes, images, row_changes, whole_file
from tests.support.producing import until
from tests.support.servers.environment import SqlServer

SCHEMA = "mariadb_log"
LONG = "repeat('ab\u00e9\u20ac', 3000)"
# Types that MySQL has not, or writes otherwise.
OWN = [
    (BYTES, "uuid", ["'123e4567-e89b-12d3-a456-426655440000'", "'0190163d-8694-739b-aea5-966c26f8ad90'", "uuid()"]),
    (BYTES, "inet4", ["'1.2.3.4'", "'0.0.0.0'", "'255.255.255.255'"]),
    (BYTES, "inet6", ["'2001:db8::1'", "'::'", "'::ffff:1.2.3.4'"]),
    (TEXT, "json", ['\'{"a": [1, 2.50, "\u20ac"]}\'', "'null'"]),
    (TEXT, "varchar(100) compressed", ["'short'", "''", "repeat('x', 100)"]),
    (TEXT, "varchar(254) character set latin1 compressed", ["repeat('\u00e9', 254)", "'\u00e9'", "''"]),
    (TEXT, "varchar(255) character set latin1 compressed", ["repeat('\u00e9', 255)", "'\u00e9'"]),
    (TEXT, "varchar(9000) compressed", [LONG.replace("3000", "2000"), "''", "'\u20ac'"]),
    (TEXT, "tinytext compressed", ["repeat('y', 200)", "'y'"]),
    (TEXT, "text character set sjis compressed", ["repeat('\u6f22\u5b57', 300)", "'\u8868'"]),
    (TEXT, "text character set ucs2 compressed", ["repeat('\u6f22\u5b57', 300)", "'\u8868'"]),
    (TEXT, "longtext compressed", [LONG, "''"]),
    (BYTES, "varbinary(300) compressed", ["repeat(x'00ff', 150)", "x''", "x'00'"]),
    (BYTES, "mediumblob compressed", ["repeat(x'00', 100000)", "x'ff'"]),
    (TEXT, "varchar(20) collate utf8mb4_uca1400_ai_ci", ["'\u00e9\u20ac'"]),
    (TEXT, "varchar(20) collate utf8mb3_uca1400_as_cs", ["'\u00e9\u20ac'"]),
    (TEXT, "varchar(20) collate utf16_uca1400_nopad_ai_ci", ["'\u00e9\u20ac'"]),
    (TEXT, "char(20) collate latin1_swedish_nopad_ci", ["'\u00e9\u20ac'"]),
    (TEXT, "char(20) collate cp1251_nopad_bin", ["'\u042f'"]),
    (TEXT, "char(20) collate utf8mb4_croatian_ci", ["'\u010d'"]),
    (TEXT, "enum('\u00e9','b') collate utf8mb4_uca1400_ai_ci", ["'\u00e9'"]),
]
CASES = [*cases(), *OWN]
AS_LOGGED = {"point": "geometry", "uuid": "binary(16)", "inet4": "binary(4)", "inet6": "binary(16)"}


@pytest.fixture
def cursor(mariadb_server: SqlServer) -> Iterator[Any]:
    connection = allowing(mariadb_server)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {SCHEMA}")
        yield cursor
        cursor.execute("SET GLOBAL log_bin_compress = OFF, log_bin_compress_min_len = 256")
    connection.close()


def written(cursor: Any, *statements: str) -> Path:
    """A file that holds what these statements write, and nothing else."""
    cursor.execute("FLUSH BINARY LOGS")
    until(lambda: checkpoint_written(cursor))
    for statement in statements:
        cursor.execute(statement)
    return closed(cursor)


def checkpoint_written(cursor: Any) -> bool:
    """Whether the newest file has the checkpoint of itself, which a thread of the server writes at some time."""
    cursor.execute("SHOW MASTER STATUS")
    name = cursor.fetchone()[0]
    cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
    return any(kind == "Binlog_checkpoint" and info == name for _, _, kind, _, _, info in cursor.fetchall())


def closed(cursor: Any) -> Path:
    """The file that the server was writing until now."""
    cursor.execute("SHOW MASTER STATUS")
    name = cursor.fetchone()[0]
    cursor.execute("FLUSH BINARY LOGS")
    cursor.execute("SELECT @@datadir")
    folder = Path(cursor.fetchone()[0])
    if not folder.is_dir():
        pytest.skip("the server's files are not on this machine")
    return folder / name


def said_of(cursor: Any, table: str, how: str, definition: str) -> list[Any]:
    """Every value of a column, made comparable by the server."""
    what = {TEXT: "HEX(CONVERT(v USING utf8mb4))", EXACT: "CAST(v AS CHAR)", BYTES: "HEX(v)"}.get(how, "v + 0e0")
    if definition.startswith("bit"):
        what = f"LPAD(HEX(v), {(int(definition[4:-1]) + 7) // 8 * 2}, '0')"
    elif definition in {"uuid", "inet4", "inet6"}:
        what = f"HEX(CAST(v AS BINARY({ {'uuid': 16, 'inet4': 4, 'inet6': 16}[definition] })))"
    cursor.execute(f"SELECT {what} FROM {table} ORDER BY id")
    return [row[0] for row in cursor.fetchall()]


def same(value: Any, said: Any, how: str, definition: str) -> bool:
    if how == BYTES:
        return bool(value == bytes.fromhex(said))
    if how == DOUBLE:
        return isinstance(value, float) and value == said
    if how == EXACT:
        return str(value).zfill(4 if definition == "year" else 1) == said
    return bool(value == bytes.fromhex(said).decode())


@pytest.mark.parametrize("compressed", [False, True])
def test_every_value_equals_its_select(cursor: Any, compressed: bool) -> None:
    if compressed:
        cursor.execute("SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10")
    cursor.execute("FLUSH BINARY LOGS")
    for number, (_, definition, values) in enumerate(CASES):
        cursor.execute(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        for value in values:
            cursor.execute(f"INSERT INTO t{number} (v) VALUES ({value})")
        cursor.execute(f"INSERT INTO t{number} (v) VALUES (NULL)")
        cursor.execute(f"UPDATE t{number} SET id = id + 1000 ORDER BY id")
        cursor.execute(f"DELETE FROM t{number} WHERE v IS NULL")
    log = closed(cursor)

    found = whole_file(log)

    compared, wrong = 0, []
    for number, (how, definition, values) in enumerate(CASES):
        rows = row_changes(found, f"t{number}")
        said = said_of(cursor, f"t{number}", how, definition)
        assert len(said) == len(values)
        inserted = [after[1] for action, _, after in rows if action == "INSERT" and after]
        updated = [(before, after) for action, before, after in rows if action == "UPDATE" and before and after]
        deleted = [before for action, before, _ in rows if action == "DELETE"]
        assert deleted == [[len(values) + 1001, None]]
        assert [before[1] for before, _ in updated] == [after[1] for _, after in updated] == inserted
        assert inserted.pop() is None
        compared += len(said)
        pairs = zip(inserted, said, strict=True)
        wrong += [(definition, value, row) for value, row in pairs if not same(value, row, how, definition)]
    assert not wrong
    assert compared > 200
    if compressed:
        kinds = set(kinds_in(log.read_bytes()))
        assert {165, 166, 167} <= kinds


def kinds_in(log: bytes) -> Iterator[int]:
    at = 4
    while at < len(log):
        yield log[at + 4]
        at += int.from_bytes(log[at + 9 : at + 13], "little")


def test_every_column_has_the_type_of_the_information_schema(cursor: Any) -> None:
    cursor.execute("FLUSH BINARY LOGS")
    for number, (_, definition, _) in enumerate(CASES):
        cursor.execute(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        cursor.execute(f"INSERT INTO t{number} (v) VALUES (NULL)")
    layouts = {
        change.layout.name.table: change.layout
        for change in changes(whole_file(closed(cursor)))
        if isinstance(change, Rows)
    }
    assert len(layouts) == len(CASES)
    for number, (_, definition, _) in enumerate(CASES):
        cursor.execute(
            "SELECT column_type, character_set_name FROM information_schema.columns "
            f"WHERE table_schema = '{SCHEMA}' AND table_name = 't{number}' AND column_name = 'v'"
        )
        told, charset = cursor.fetchone()
        column = layouts[f"t{number}"].columns[1]
        words = told.replace(" /*M!100301 COMPRESSED*/", "").split()
        expected = words[0] if not told.startswith(("enum", "set")) else told.split("(")[0]
        expected = AS_LOGGED.get(expected, expected)
        if expected.startswith(("tinyint", "smallint", "mediumint", "int(", "bigint", "year")):
            expected = expected.partition("(")[0]  # MariaDB still has display widths
        assert column.type == expected
        assert column.unsigned == ("unsigned" in words), definition
        if charset:
            assert column.charset == charset
        if column.labels and "\\" not in told:
            assert f"{column.type}({','.join(repr(label) for label in column.labels)})" == told


def test_every_collation_of_the_server_is_known(cursor: Any) -> None:
    cursor.execute(
        "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability WHERE id > 0"
    )
    rows = cursor.fetchall()
    assert len(rows) > 1000
    assert [(number, name) for number, name in rows if charset_of(number) != name] == []


def test_transactions_equal_the_committed_ones(cursor: Any) -> None:
    log = written(
        cursor,
        "CREATE TABLE a (id int primary key) ENGINE = InnoDB",
        "CREATE TABLE m (id int primary key) ENGINE = MyISAM",
        "INSERT INTO a VALUES (1)",
        "BEGIN",
        "INSERT INTO a VALUES (2)",
        "SAVEPOINT s",
        "INSERT INTO a VALUES (3)",
        "ROLLBACK TO s",
        "INSERT INTO a VALUES (4)",
        "COMMIT",
        "INSERT INTO m VALUES (5)",
        "BEGIN",
        "INSERT INTO m VALUES (6)",
        "INSERT INTO a VALUES (6)",
        "ROLLBACK",
        "CREATE TABLE c AS SELECT id FROM a",
        "SET SESSION gtid_domain_id = 7",
        "INSERT INTO a VALUES (7)",
        "SET SESSION gtid_domain_id = 0, SESSION binlog_alter_two_phase = ON",
        "ALTER TABLE a ADD v int",
        "SET SESSION binlog_alter_two_phase = OFF, SESSION binlog_annotate_row_events = OFF",
        "DELETE FROM a WHERE id = 1",
    )

    found = whole_file(log)

    pieces = [piece for piece in found if isinstance(piece, TransactionBatch) and piece.begin and piece.ending]
    told = [
        (
            piece.begin.kind,
            [
                change.sql
                if isinstance(change, Statement)
                else (change.action.name, change.layout.name.table, images(change))
                for change in piece.changes
            ],
        )
        for piece in pieces
        if piece.begin
    ]
    row = lambda n, *more: (None, [n, *more])  # noqa: E731
    assert told == [
        (Kind.DDL, ["CREATE TABLE a (id int primary key) ENGINE = InnoDB"]),
        (Kind.DDL, ["CREATE TABLE m (id int primary key) ENGINE = MyISAM"]),
        (Kind.TRANSACTION, [("INSERT", "a", [row(1)])]),
        (Kind.TRANSACTION, [("INSERT", "a", [row(2), row(4)])]),
        (Kind.TRANSACTION, [("INSERT", "m", [row(5)])]),
        (Kind.TRANSACTION, [("INSERT", "m", [row(6)])]),
        (
            Kind.DDL,
            ["CREATE TABLE `c` (\n  `id` int(11) NOT NULL\n)", ("INSERT", "c", [row(1), row(2), row(4)])],
        ),
        (Kind.TRANSACTION, [("INSERT", "a", [row(7)])]),
        (Kind.DDL, ["ALTER TABLE a ADD v int"]),
        (Kind.TRANSACTION, [("DELETE", "a", [([1, None], None)])]),
    ]
    gtids = [piece.begin.gtid or "" for piece in pieces if piece.begin]
    server = gtids[0].split("-")[1]
    cursor.execute("SELECT @@server_id")
    assert server == str(cursor.fetchone()[0])
    numbers = [int(gtid.rpartition("-")[2]) for gtid in gtids if gtid.startswith(f"0-{server}-")]
    started = next(
        item for item in found if isinstance(item, PositionAdvance) and item.gtid
    )  # the ALTER that only started
    assert gtids[7].startswith(f"7-{server}-")
    assert sorted([*numbers, int(str(started.gtid).rpartition("-")[2])]) == list(range(numbers[0], numbers[0] + 10))
    assert started.gtid == f"0-{server}-{numbers[0] + 7}"
    begins = [piece.begin.start for piece in pieces if piece.begin]
    ends = [
        item.end if isinstance(item, PositionAdvance) else item.ending.end
        for item in found
        if getattr(item, "ending", 1)
    ]
    assert begins[1:] == [end for end in ends if end in begins[1:]]
    statement = pieces[0].changes[0]
    assert isinstance(statement, Statement)
    assert statement.schema == SCHEMA
    assert statement.options["timestamp"].partition(".")[2].isdigit()


def test_a_system_versioned_table_has_its_hidden_columns(cursor: Any) -> None:
    log = written(
        cursor,
        "CREATE TABLE v (id int primary key, a int) WITH SYSTEM VERSIONING",
        "INSERT INTO v VALUES (1, 1)",
        "UPDATE v SET a = 2",
        "DELETE FROM v",
    )

    found = whole_file(log)

    layouts: list[TableLayout] = [change.layout for change in changes(found) if isinstance(change, Rows)]
    assert {tuple(column.name for column in layout.columns) for layout in layouts} == {
        ("id", "a", "row_start", "row_end")
    }
    assert {layout.key for layout in layouts} == {(0, 3)}
    cursor.execute("SELECT id, a, CAST(row_start AS CHAR), CAST(row_end AS CHAR) FROM v FOR SYSTEM_TIME ALL ORDER BY a")
    kept: dict[tuple[Any, Any], list[Any]] = {}
    for _, before, after in row_changes(found, "v"):
        if before:
            del kept[before[0], before[3]]
        if after:
            kept[after[0], after[3]] = after
    assert sorted(kept.values()) == [list(row) for row in cursor.fetchall()]
    assert len(kept) == 2


@pytest.mark.parametrize(
    ("statements", "column"),
    [
        (
            ["SET GLOBAL mysql56_temporal_format = OFF", "CREATE TABLE o (id int, t time(2))",
             "SET GLOBAL mysql56_temporal_format = ON", "INSERT INTO o VALUES (1, '10:00:00')"],
            "t",
        ),
    ],
)  # fmt: skip
def test_unsupported_column_is_refused_by_name(cursor: Any, statements: list[str], column: str) -> None:
    log = written(cursor, "CREATE TABLE r (id int primary key)", *statements)
    with pytest.raises(Unsupported) as refused:
        whole_file(log)
    assert refused.value.where["column"] == column
    assert "mysql56_temporal_format" in refused.value.hint


def test_thl_binlog_prints_a_mariadb_log(cursor: Any) -> None:
    log = written(
        cursor,
        "CREATE TABLE p (id int primary key, u uuid, t text compressed)",
        "INSERT INTO p VALUES (1, '123e4567-e89b-12d3-a456-426655440000', repeat('z', 200))",
    )
    told = binlog(log)
    assert (told.returncode, told.stderr) == (0, "")
    row = json.loads(told.stdout.splitlines()[-1])["changes"][0]["rows"][0]["after"]
    assert row == {"id": 1, "u": {"base64": "Ej5FZ+ibEtOkVkJmVUQAAA=="}, "t": "z" * 200}
    assert binlog(log, "--format", "tungsten").returncode == 0
