"""DDL plans compared with a real MySQL: defaults of existing rows, types, and values that a MODIFY keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pymysql
import pytest

from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.plan import plan
from connector.targets.narrowing import Narrowing, Value, narrowing
from connector.targets.operations import AlterTable, KnownValue
from connector.targets.table import Table
from connector.targets.target_schema import TargetSchema
from connector.targets.types import family
from connector.targets.widening import widening
from tests.contract.target_ddl import FILLED, NARROWED
from tests.contract.target_values import VALUES
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer
from tests.unit.targets.test_ddl import TYPES
from tests.unit.targets.test_types import PAIRS

SCHEMA = "ddl_oracle"
Cursor = pymysql.cursors.Cursor


@pytest.fixture(scope="module")
def mysql(mysql_server: SqlServer) -> Iterator[Cursor]:
    connection = connect(mysql_server)
    cursor = connection.cursor()
    cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
    cursor.execute(f"USE {SCHEMA}")
    cursor.execute("SET sql_mode = '', time_zone = '+05:30', timestamp = 1700000000.123456")
    yield cursor
    cursor.execute(f"DROP DATABASE {SCHEMA}")
    connection.close()


def read(cursor: Cursor, column: str, kind: str) -> int | float | str | bytes | None:
    """A value as the log has it."""
    base = re.match("[a-z]+", kind)
    assert base is not None
    if base[0] in ("binary", "varbinary", "blob", "bit", "point", "vector", "tinyblob", "mediumblob", "longblob"):
        cursor.execute(f"SELECT HEX({column}{' + 0' if base[0] == 'bit' else ''}) FROM t")
    elif base[0] in ("float", "double"):
        cursor.execute(f"SELECT CAST({column} AS DOUBLE) FROM t")
    else:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT CAST({column} AS CHAR) FROM t")
        ((text,),) = cursor.fetchall()
        cursor.execute("SET time_zone = '+05:30'")
        whole = base[0].endswith("int") or base[0] == "year"
        return int(text) if whole and text is not None and int(text) < 2**63 else text
    ((value,),) = cursor.fetchall()
    if base[0] in ("float", "double") or value is None:
        return value
    if base[0] == "bit":
        (bits,) = re.findall(r"\d+", kind)
        return int(value, 16).to_bytes((int(bits) + 7) // 8, "big")
    return bytes.fromhex(value)


def table_of(cursor: Cursor, schema: str = SCHEMA) -> Table:
    """Table t as SHOW CREATE TABLE says it, read by our own parser."""
    cursor.execute("SHOW CREATE TABLE t")
    ((_, sql),) = cursor.fetchall()
    return plan(Statement(schema, sql), TargetSchema(), 0).target_schema.get(TableName(schema, "t"))


@pytest.mark.parametrize(("definition", "column", "value"), FILLED, ids=[line[0] for line in FILLED])
def test_added_columns_have_mysqls_values_in_existing_rows(
    mysql: Cursor, definition: str, column: str, value: int | float | str | bytes | None
) -> None:
    mysql.execute("DROP TABLE IF EXISTS t")
    mysql.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    mysql.execute("INSERT INTO t VALUES (1)")
    before = TargetSchema([table_of(mysql)])
    sql = f"ALTER TABLE t ADD COLUMN {definition}"
    mysql.execute(sql)
    options = {"time_zone": "+05:30", "timestamp": "1700000000.123456"}
    (operation,) = plan(Statement(SCHEMA, sql, options), before, 0).operations
    assert isinstance(operation, AlterTable)
    assert operation.origins[-1] == KnownValue(value)
    _, kind, *_ = column.split()
    assert read(mysql, "n", kind) == value


def described(cursor: Cursor, name: str) -> tuple[str, str]:
    """A column's type and character set as information_schema says them, in the log's words."""
    cursor.execute(
        "SELECT DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS "
        f"WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = 't' AND COLUMN_NAME = '{name}'"
    )
    ((base, full, charset),) = cursor.fetchall()
    text = full.decode() if isinstance(full, bytes) else full
    if base in ("enum", "set"):
        return base, charset
    if base in ("point", "geomcollection", "geometrycollection", "geometry"):
        return "geometry", ""
    sizes = re.findall(r"\([\d,]+\)", text)
    keep = base in (
        "decimal",
        "bit",
        "char",
        "varchar",
        "binary",
        "varbinary",
        "vector",
        "time",
        "datetime",
        "timestamp",
    )
    kind = base + (sizes[0] if sizes and keep else "") + (" unsigned" if "unsigned" in text else "")
    return kind, charset or ""


@pytest.mark.parametrize("definition", [line[0] for line in TYPES] + [made for made, _ in VALUES.values()])
def test_parsed_types_equal_the_servers(mysql: Cursor, definition: str) -> None:
    mysql.execute("DROP TABLE IF EXISTS t")
    sql = f"CREATE TABLE t (c {definition}) CHARACTER SET utf8mb4"
    mysql.execute(sql)
    ours = plan(Statement(SCHEMA, sql), TargetSchema(), 0).target_schema.get(TableName(SCHEMA, "t"))
    shown = table_of(mysql)
    assert [(family(column), column.type, column.labels) for column in ours.columns] == [
        (family(column), column.type, column.labels) for column in shown.columns
    ]
    (column,) = ours.columns
    kind = column.type + (" unsigned" if column.unsigned else "")
    assert described(mysql, "c") == (kind, "" if column.charset == "binary" else column.charset)


EXTREMES = {
    "char": "'ab'",
    "varchar": "'ab '",
    "tinytext": "'ab '",
    "text": "'ab '",
    "binary": "'ab'",
    "varbinary": "'ab'",
    "blob": "'ab'",
    "float": "0.1",
    "decimal": "'-999.99'",
    "datetime": "'2024-02-29 23:59:59.999'",
    "time": "'-838:59:58.9'",
    "enum": "'b'",
    "set": "'a,b'",
    "json": """'{"a": 1.50}'""",
}
ALLOWED = [(old, new) for old, new, expected in PAIRS if expected is not None]


@pytest.mark.parametrize(("old", "new"), ALLOWED, ids=[f"{old} to {new}" for old, new in ALLOWED])
def test_applied_modify_keeps_the_value(mysql: Cursor, old: str, new: str) -> None:
    mysql.execute("DROP TABLE IF EXISTS t")
    was, becomes = (text.partition(" ")[2] for text in (old, new))
    mysql.execute(f"CREATE TABLE t (c {was})")
    base = re.match("[a-z]+", was)
    assert base is not None
    mysql.execute(f"INSERT INTO t VALUES ({EXTREMES[base[0]]})")
    before, table = read(mysql, "c", was), table_of(mysql)
    mysql.execute(f"ALTER TABLE t MODIFY c {becomes}")
    after, (column,) = read(mysql, "c", becomes), table_of(mysql).columns
    change = widening(table.columns[0], column)
    assert change is not None
    assert after == (f"{before}{change.pad}" if change.pad else before)


@pytest.mark.parametrize("line", NARROWED, ids=[f"{old} to {new}" for old, new, *_ in NARROWED])
def test_checked_value_is_kept_in_each_sql_mode(
    mysql: Cursor, line: tuple[str, str, list[Value], list[Value], list[Value] | None]
) -> None:
    """And what we stop at is another one afterwards, or the server refuses it, too."""
    old, new, fit, unfit, become = line
    kinds = [re.sub(r" CHARACTER SET \w+", "", kind.lower()) for kind in (old, new)]
    for value, expected in [*zip(fit, become or fit, strict=True), *((value, None) for value in unfit)]:
        for mode in ("", "STRICT_ALL_TABLES"):
            mysql.execute("DROP TABLE IF EXISTS t")
            mysql.execute(f"CREATE TABLE t (v {old})")
            mysql.execute("SET time_zone = '+00:00'")
            mysql.execute("INSERT INTO t VALUES (%s)", (value,))
            before, (was,) = read(mysql, "v", kinds[0]), table_of(mysql).columns
            mysql.execute("SET sql_mode = %s", (mode,))
            try:
                mysql.execute(f"ALTER TABLE t MODIFY v {new}")
            except pymysql.err.DataError:
                assert (expected, mode) == (None, "STRICT_ALL_TABLES")
                continue
            finally:
                mysql.execute("SET sql_mode = ''")
            after, (becomes,) = read(mysql, "v", kinds[1]), table_of(mysql).columns
            assert before is not None
            change = narrowing(was, becomes)
            assert isinstance(change, Narrowing)
            assert any(one.matches(before) for one in change.unfit) is (expected is None)
            if expected is not None:
                assert after == expected
            else:
                assert str(after) != str(before)


COMMENTS = [
    "it''s",
    "a\\\\b",
    "a\\nb",
    "a\\%b\\_",
    'q"q',
    "é 漢",
    " blanks ",
    "",
]  # the server cuts at U+0000, and has no emoji


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"])
@pytest.mark.parametrize("text", COMMENTS)
def test_comments_are_what_the_server_keeps(mysql: Cursor, text: str, mode: str) -> None:
    """As a statement says them, and as SHOW CREATE TABLE does for the initial load."""
    sql = f"CREATE TABLE t (c INT COMMENT '{text}') COMMENT = '{text}'"
    mysql.execute("DROP TABLE IF EXISTS t")
    mysql.execute("SET sql_mode = %s", (mode,))
    mysql.execute(sql)
    mysql.execute("SET sql_mode = ''")
    mysql.execute(
        "SELECT TABLE_COMMENT, COLUMN_COMMENT FROM information_schema.TABLES JOIN information_schema.COLUMNS "
        f"USING (TABLE_SCHEMA, TABLE_NAME) WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = 't'"
    )
    (kept,) = mysql.fetchall()
    ours = plan(Statement(SCHEMA, sql, {"sql_mode": mode}), TargetSchema(), 0).target_schema.get(TableName(SCHEMA, "t"))
    for table in (ours, table_of(mysql)):
        assert (table.comment, dict(table.comments).get("c", "")) == kept
