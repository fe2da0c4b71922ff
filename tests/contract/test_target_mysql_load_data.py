"""New rows of a MySQL target by LOAD DATA LOCAL: the values and the errors are those of INSERT, which is the oracle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import pymysql
import pytest
from pydantic import SecretStr

from connector.config.apply import Target
from connector.errors import ConnectorError, TargetDiffers, TargetUnavailable, ValueNotRepresentable
from connector.log.transaction.layout import TableLayout
from connector.targets.mysql.rows.keyed_rows import KeyedRows
from connector.targets.mysql.rows.load_data import FEWEST, FILE_BYTES, MOST_TAKEN_BACK, load_rows
from connector.targets.mysql.rows.table_statements import SAVEPOINT, TableStatements
from connector.targets.mysql.server.connection import Loaded, ServerSession
from connector.targets.mysql.server.errors import connector_error
from connector.targets.mysql.server.table_facts import NO_FACTS, facts_of
from connector.targets.open import check_target
from connector.targets.table import Table
from tests.contract.mysql_place import MySqlPlace, taking_files
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, LOOSE, USERS, Applier
from tests.contract.target_values import VALUES
from tests.support.net import Row, images, layout, net
from tests.support.proxy import Cut, Proxy, Way
from tests.support.servers.environment import SqlServer

Value = int | float | str | bytes | None

MANY = FEWEST + 50
SPECIAL: list[Value] = ["", "\\N", "\\", "\\\\N", "NULL", "\t", "\n", "\r\n", "a\\", "\\t", "\0", "\x1a", "'\"`", " a "]
CHARSETS = {
    "utf8mb4": "ü€😀",
    "utf8mb3": "ü€",
    "latin1": "ü€",
    "ascii": "~",
    "cp1251": "Ж€",
    "sjis": "ソ表",  # in bytes that end with a backslash
    "gbk": "运",
    "big5": "功",
    "eucjpms": "日",
    "utf16": "ü€😀",
    "utf16le": "ü€😀",
    "utf32": "ü€😀",
    "ucs2": "ü€",
}
ZEROS = {
    "date": ("DATE", ["0000-00-00", "2024-00-00", "2024-02-00", "2023-02-31"]),
    "datetime": ("DATETIME", ["0000-00-00 00:00:00", "2024-00-00 12:00:00", "2023-02-31 00:00:01"]),
    "timestamp": ("TIMESTAMP NULL", ["0000-00-00 00:00:00"]),
    "year": ("YEAR", [0, 1970, 2000]),
}
POINT = b"\0\0\0\0\1\1\0\0\0" + b"\0\0\0\0\0\0\xf0\x3f" * 2
# Type, definition, and values that MySQL stores otherwise than the session of an applier expects, or not at all.
UNFIT: list[tuple[str, str, Value]] = [
    ("varchar(3)", "VARCHAR(3)", "abcd"),
    ("varchar(3)", "VARCHAR(3)", "abc  "),
    ("char(3)", "CHAR(3)", "abc  "),
    ("varchar(9)", "VARCHAR(9) CHARACTER SET latin1", "日本"),
    ("varchar(9)", "VARCHAR(9) CHARACTER SET utf8mb3", "😀"),
    ("varchar(9)", "VARCHAR(9)", b"\xe9"),
    ("varchar(9)", "VARCHAR(9) CHARACTER SET latin1", b"\xe9"),
    ("tinytext", "TINYTEXT", "x" * 300),
    ("tinyint", "TINYINT", 128),
    ("int unsigned", "INT UNSIGNED", -1),
    ("decimal(4,2)", "DECIMAL(4,2)", "1000.00"),
    ("decimal(4,2)", "DECIMAL(4,2)", "1.005"),
    ("decimal(4,2)", "DECIMAL(4,2)", "x"),
    ("float", "FLOAT", 1e300),
    ("double", "DOUBLE", float("inf")),
    ("year", "YEAR", 1800),
    ("date", "DATE", "2024-13-01"),
    ("time", "TIME", "839:00:00"),
    ("datetime", "DATETIME", "never"),
    ("timestamp", "TIMESTAMP NULL", "1960-01-01 00:00:00"),
    ("enum('a','b')", "ENUM('a','b')", "z"),
    ("enum('a','b')", "ENUM('a','b')", ""),
    ("enum('a','b')", "ENUM('a','b')", 2),
    ("set('x','y')", "SET('x','y')", "x,z"),
    ("set('x','y')", "SET('x','y')", 3),
    ("json", "JSON", "{"),
    ("json", "JSON", '{"price": 1.10}'),
    ("binary(2)", "BINARY(2)", b"abc"),
    ("varbinary(2)", "VARBINARY(2)", b"abc"),
    ("tinyblob", "TINYBLOB", b"x" * 256),
    ("bit(3)", "BIT(3)", b"\x0f"),
    ("geometry", "GEOMETRY", b"abc"),
    ("geometry", "POINT SRID 4326", POINT),
    ("vector(2)", "VECTOR(2)", b"abc"),
    ("int", "INT CHECK (v < 5)", 5),
    ("int", "INT, d TINYINT AS (v * 2) STORED", 100),
    ("int", "INT, d TINYINT AS (v * 2) VIRTUAL, KEY (d)", 100),
    ("int", "INT, d INT NOT NULL", 1),
    *[
        (kind, f"{definition} NOT NULL", None)
        for kind, definition in (
            ("int", "INT"),
            ("varchar(9)", "VARCHAR(9)"),
            ("text", "TEXT"),
            ("double", "DOUBLE"),
            ("decimal(4,2)", "DECIMAL(4,2)"),
            ("date", "DATE"),
            ("datetime", "DATETIME"),
            ("timestamp", "TIMESTAMP"),
            ("timestamp", "TIMESTAMP DEFAULT '2000-01-01'"),
            ("year", "YEAR"),
            ("enum('a','b')", "ENUM('a','b')"),
            ("set('x','y')", "SET('x','y')"),
            ("json", "JSON"),
            ("blob", "BLOB"),
            ("varbinary(9)", "VARBINARY(9)"),
            ("bit(3)", "BIT(3)"),
            ("geometry", "GEOMETRY"),
            ("vector(2)", "VECTOR(2)"),
        )
    ],
]


@pytest.fixture
def place(mysql_server: SqlServer) -> Iterator[MySqlPlace]:
    """A server that takes LOAD DATA LOCAL, with a database `shop`."""
    with taking_files(mysql_server, keeps=True) as made:
        made.run("CREATE DATABASE shop")
        yield made


@pytest.fixture
def applier(place: MySqlPlace) -> Applier:
    made = Applier(place.open())
    made.sql(CREATE_USERS, CREATE_LOOSE)
    return made


@dataclass(frozen=True)
class Counts:
    """What the server counted: LOAD DATA statements, and those that were taken back."""

    loads: int
    taken_back: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(self.loads - before.loads, self.taken_back - before.taken_back)


def counts(place: MySqlPlace) -> Counts:
    found = dict(place.query("SHOW GLOBAL STATUS WHERE variable_name IN ('Com_load', 'Com_rollback_to_savepoint')"))
    return Counts(int(str(found["Com_load"])), int(str(found["Com_rollback_to_savepoint"])))


def user(number: int) -> Row:
    return (number, "ann\t\\", f"{number}@example.org")


def insert(place: MySqlPlace, table: TableLayout, rows: Sequence[Row], *, files: bool) -> BaseException | None:
    """Insert rows in a session of the applier's, by LOAD DATA if it may; return the error."""
    session = ServerSession(place.url, "test", files=files)
    assert session.loads is files
    try:
        session.query("START TRANSACTION")
        session.query(f"SAVEPOINT {SAVEPOINT}")
        facts = facts_of(session, table.name)
        KeyedRows(TableStatements(session, Table(table), table, facts, again=False)).insert(images(rows))
        session.query("COMMIT")
    except (ConnectorError, pymysql.MySQLError) as error:
        return error
    finally:
        session.close()
    return None


def outcome(place: MySqlPlace, name: str, error: BaseException | None) -> tuple[Any, ...]:
    """The bytes of a table by their checksum, and an error."""
    ((_, checksum),) = place.query(f"CHECKSUM TABLE shop.{name}")
    ((rows,),) = place.query(f"SELECT count(*) FROM shop.{name}")
    if error is None:
        return checksum, rows
    shown = error if isinstance(error, ConnectorError) else connector_error(error)  # type: ignore[arg-type]
    # The number of a row is that within its statement.
    return checksum, rows, type(shown), shown.where.get("code"), re.sub(r" at row \d+", "", shown.message)


def compare(
    place: MySqlPlace, table: TableLayout, definition: str, rows: Sequence[Row], *before: str
) -> tuple[tuple[Any, ...], Counts]:
    """Insert rows into an equal table by each path; return what both have in common, and the counts of LOAD DATA."""
    found = []
    for files in (False, True):
        place.run("DROP TABLE IF EXISTS shop.t")
        place.run(f"CREATE TABLE shop.t ({definition})")
        for sql in before:
            place.run(sql)
        start = counts(place)
        found.append((outcome(place, "t", insert(place, table, rows, files=files)), counts(place) - start))
    (inserted, none), (loaded, counted) = found
    assert none.loads == 0
    assert loaded == inserted
    return loaded, counted


def repeated(values: Sequence[Value]) -> list[Row]:
    """Many rows with each of the values and NULL."""
    with_null = [*values, None]
    return [(number, with_null[number % len(with_null)], number) for number in range(max(MANY, len(with_null)))]


def of(kind: str) -> TableLayout:
    return layout("shop.t", ["id int", f"v {kind}", "n int"], ["id"])


def defined(definition: str) -> str:
    return f"id INT PRIMARY KEY, v {definition}, n INT"


class TestValues:
    @pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "json"])
    def test_rows_are_those_of_insert(self, place: MySqlPlace, kind: str) -> None:
        definition, values = VALUES[kind]
        values = [item[:9000] if isinstance(item, str | bytes) else item for item in values]
        (_, rows), counted = compare(place, of(kind), defined(definition), repeated(values))
        assert rows >= MANY
        assert counted == Counts(loads=1, taken_back=0)

    @pytest.mark.parametrize("charset", CHARSETS)
    @pytest.mark.parametrize("definition", ["VARCHAR(50)", "LONGTEXT", "CHAR(50)"])
    def test_texts_of_any_character_set_are_those_of_insert(
        self, place: MySqlPlace, charset: str, definition: str
    ) -> None:
        values = [*SPECIAL, CHARSETS[charset], CHARSETS[charset] + "\t\\\n" + CHARSETS[charset]]
        kind = of(definition.lower())
        _, counted = compare(place, kind, defined(f"{definition} CHARACTER SET {charset}"), repeated(values))
        assert counted == Counts(loads=1, taken_back=0)

    @pytest.mark.parametrize("charset", CHARSETS)
    def test_labels_of_any_character_set_are_those_of_insert(self, place: MySqlPlace, charset: str) -> None:
        labels = ("1", "10", "2", CHARSETS[charset])
        listed = ",".join(f"'{label}'" for label in labels)
        for kind, values in (("enum", labels), ("set", (*labels, f"1,{labels[-1]}", ""))):
            definition = defined(f"{kind.upper()}({listed}) CHARACTER SET {charset}")
            _, counted = compare(place, of(f"{kind}({listed})"), definition, repeated(values))
            assert counted == Counts(loads=1, taken_back=0)

    @pytest.mark.parametrize("definition", ["VARBINARY(300)", "LONGBLOB", "BINARY(255)"])
    def test_bytes_are_those_of_insert(self, place: MySqlPlace, definition: str) -> None:
        values: list[Value] = [b"", b"\\N", b"\t\n\\", bytes(range(255)), *(bytes([byte]) for byte in range(1, 256))]
        _, counted = compare(place, of(definition.lower()), defined(definition), repeated(values))
        assert counted == Counts(loads=1, taken_back=0)

    @pytest.mark.parametrize("kind", ZEROS)
    def test_dates_that_are_none_are_those_of_insert(self, place: MySqlPlace, kind: str) -> None:
        definition, values = ZEROS[kind]
        _, counted = compare(place, of(kind), defined(definition), repeated(values))
        assert counted == Counts(loads=1, taken_back=0)

    def test_documents_are_those_of_insert(self, place: MySqlPlace) -> None:
        values: list[Value] = [
            '{"a\\\\n": "\\t\\u0001"}',
            "null",
            "[1.5, 2e300, 18446744073709551615]",
            '"\\\\N"',
            "{}",
        ]
        _, counted = compare(place, of("json"), defined("JSON"), repeated(values))
        assert counted == Counts(loads=1, taken_back=0)

    def test_documents_with_numbers_that_a_text_does_not_keep_are_inserted_from_the_first_one_on(
        self, place: MySqlPlace
    ) -> None:
        rows = [(number, '{"price": 1.10}' if number in (60, 90) else "{}", 0) for number in range(MANY)]
        _, counted = compare(place, of("json"), defined("JSON"), rows)
        assert counted == Counts(loads=1, taken_back=0)

    @pytest.mark.parametrize("definition", ["GEOMETRY", "POINT SRID 0", "GEOMETRY NOT NULL SRID 0, SPATIAL KEY (v)"])
    def test_geometries_are_those_of_insert(self, place: MySqlPlace, definition: str) -> None:
        rows = [(number, POINT, number) for number in range(MANY)]
        _, counted = compare(place, of("geometry"), defined(definition), rows)
        assert counted == Counts(loads=1, taken_back=0)

    def test_table_of_one_column_has_its_empty_texts(self, place: MySqlPlace) -> None:
        table = layout("shop.t", ["v varchar(9)"])
        rows = [("",) if number % 2 else (None,) for number in range(MANY)]
        _, counted = compare(place, table, "v VARCHAR(9)", rows)
        assert counted == Counts(loads=1, taken_back=0)

    def test_columns_that_the_server_computes_or_hides_are_those_of_insert(self, place: MySqlPlace) -> None:
        table = layout(
            "shop.t", ["id int", "a int", "b int", "c bigint", "hidden blob", "at timestamp", "of varchar(40)"], ["id"]
        )
        definition = (
            "id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT AS (a * 2) STORED, c BIGINT AS (b + 1) VIRTUAL, "
            "hidden BLOB INVISIBLE, at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, "
            "`of` VARCHAR(40) DEFAULT (UUID()), other INT DEFAULT 7, KEY ((a + 1)), KEY (c)"
        )
        rows = [
            (number, number, 9, 9, b"\\N\0", None if number % 2 else "2024-02-29 12:00:00", None)
            for number in range(MANY)  # the id 0, too
        ]
        (_, found), counted = compare(place, table, definition, rows)
        assert (found, counted) == (MANY, Counts(loads=1, taken_back=0))
        assert place.query("SELECT id, a, b, c, hidden, other FROM shop.t WHERE id < 2 ORDER BY id") == [
            (0, 0, 0, 1, b"\\N\0", 7),
            (1, 1, 2, 3, b"\\N\0", 7),
        ]

    def test_names_are_quoted(self, place: MySqlPlace) -> None:
        table = layout("shop.t", ["`id` int", "a'\\) blob", "b`c int"], ["`id`"])
        table = replace(table, columns=(replace(table.columns[0], name="`id"), *table.columns[1:]))
        rows = [(number, b"x", number) for number in range(MANY)]
        _, counted = compare(place, table, "```id` INT PRIMARY KEY, `a'\\)` BLOB, `b``c` INT", rows)
        assert counted == Counts(loads=1, taken_back=0)

    def test_many_rows_are_loaded_in_several_files(self, place: MySqlPlace) -> None:
        size = 7000
        rows = [(number, "x\n" * (size // 2), number) for number in range(3 * FILE_BYTES // size)]
        (_, found), counted = compare(place, of("text"), defined("TEXT"), rows)
        assert found == len(rows)
        assert counted.loads > 3
        assert counted.taken_back == 0


class TestErrors:
    @pytest.mark.parametrize(("kind", "definition", "value"), UNFIT, ids=[f"{one[1]}-{one[2]!r:.9}" for one in UNFIT])
    def test_value_that_does_not_fit_has_the_outcome_of_insert(
        self, place: MySqlPlace, kind: str, definition: str, value: Value
    ) -> None:
        _, fits = VALUES.get(kind, ("", [None]))
        good = {"json": "{}", "geometry": b"\0\0\0\0" + POINT[4:]}.get(kind, fits[0])
        if "CHECK" in definition or "AS" in definition.split():
            good = 1
        rows = [(number, value if number == 77 else good, number) for number in range(MANY)]
        if "NOT NULL" in definition or "SRID 4326" in definition:  # there is no other value at hand
            rows = [(number, value, number) for number in range(MANY)]
        compare(place, of(kind), f"id INT PRIMARY KEY, n INT, v {definition}", rows)

    @pytest.mark.parametrize(
        ("unique", "before"), [("", (77, 1, 77)), ("", (77, 2, 78)), ("UNIQUE", (77, 1, 77)), ("UNIQUE", (900, 2, 77))]
    )
    def test_row_that_is_there_stops_as_at_an_insert(
        self, place: MySqlPlace, unique: str, before: tuple[int, int, int]
    ) -> None:
        """Also one that is equal to the new one; by the key, and by another unique index."""
        rows = [(number, 1, number) for number in range(MANY)]
        definition = f"id INT PRIMARY KEY, v INT, n INT {unique}"
        found, counted = compare(place, of("int"), definition, rows, f"INSERT INTO shop.t VALUES {before}")
        assert found[1:3] == (1, TargetDiffers)
        assert "Duplicate entry '77'" in found[-1]
        assert counted == Counts(loads=1, taken_back=1)

    def test_row_without_a_partition_stops_as_at_an_insert(self, place: MySqlPlace) -> None:
        rows = [(number, 1, number) for number in range(MANY)]
        definition = "id INT PRIMARY KEY, v INT, n INT"
        partition = "ALTER TABLE shop.t PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (140))"
        found, counted = compare(place, of("int"), definition, rows, partition)
        assert found[1:4] == (0, TargetDiffers, 1526)
        assert counted == Counts(loads=1, taken_back=1)

    def test_warnings_count_where_the_server_keeps_none(self, place: MySqlPlace) -> None:
        place.query("SET GLOBAL max_error_count = 0")
        place.query("SET GLOBAL sql_notes = 0")
        try:
            rows = [(number, "abcd", number) for number in range(MANY)]
            found, counted = compare(place, of("varchar(3)"), defined("VARCHAR(3)"), rows)
        finally:
            place.query("SET GLOBAL max_error_count = DEFAULT")
            place.query("SET GLOBAL sql_notes = DEFAULT")
        assert "Data too long" in found[-1]
        assert counted == Counts(loads=1, taken_back=1)

    @pytest.mark.parametrize(
        ("kind", "definition", "value"),
        [
            ("double", "VARCHAR(40)", 1.5),
            ("float", "VARCHAR(40)", -0.25),
            ("double", "JSON", 1.0),
            ("int", "YEAR", 0),
            ("decimal(4,2)", "JSON", "1.50"),
            ("bit(3)", "INT", b"\5"),
            ("bit(3)", "VARCHAR(9)", b"\5"),
            ("timestamp", "VARCHAR(40)", "2024-02-29 00:00:00"),
            ("varchar(9)", "INT", "7"),
        ],
    )
    def test_column_of_which_others_have_changed_the_type_is_inserted(
        self, place: MySqlPlace, kind: str, definition: str, value: Value
    ) -> None:
        """Also if the server would load each row without a warning, and another text than it inserts."""
        rows = [(number, value, number) for number in range(MANY)]
        _, counted = compare(place, of(kind), defined(definition), rows)
        assert counted == Counts(0, 0)

    def test_table_whose_rows_are_taken_back_again_and_again_is_loaded_no_more(
        self, place: MySqlPlace, applier: Applier
    ) -> None:
        table = layout("shop.prices", ["id int", "price decimal(4,2)"], ["id"])
        applier.sql("CREATE TABLE prices (id INT PRIMARY KEY, price DECIMAL(4,2))")
        place.run("ALTER TABLE shop.prices MODIFY price DECIMAL(4,1)")  # each row is rounded, with a note
        numbers = iter(range(100 * MANY))

        def inserted(price: str) -> Counts:
            start = counts(place)
            applier.rows(net(table, inserts=[(next(numbers), price) for _ in range(MANY)]))
            return counts(place) - start

        for _ in range(2):
            assert inserted("1.25") == Counts(1, 1)
        assert inserted("1.20") == Counts(1, 0)  # one that succeeds begins the count again
        for _ in range(MOST_TAKEN_BACK):
            assert inserted("1.25") == Counts(1, 1)
        assert inserted("1.25") == Counts(0, 0)
        assert inserted("1.20") == Counts(0, 0)
        applier.rows(net(USERS, inserts=map(user, range(MANY))))
        assert counts(place).loads > MOST_TAKEN_BACK  # other tables are
        assert len(place.read(table) or []) == 8 * MANY

    def test_rows_before_those_that_are_not_loaded_stay(self, place: MySqlPlace) -> None:
        """A value that INSERT stores, if not as it is, in the second file."""
        size = 7000
        rows = [(number, "x" * size, number) for number in range(2 * FILE_BYTES // size)]
        rows[-1] = (len(rows), "x" * size + " ", 0)
        (_, found), counted = compare(place, of("varchar(7000)"), defined(f"VARCHAR({size})"), rows)
        assert (found, counted) == (len(rows), Counts(loads=2, taken_back=1))


class TestTriggers:
    def test_error_of_a_trigger_is_that_of_insert(self, place: MySqlPlace) -> None:
        """MySQL would ignore this one in LOAD DATA without a warning."""
        place.run("CREATE TABLE shop.seen (id INT PRIMARY KEY, v VARCHAR(2))")
        rows = [(number, "a", number) for number in range(MANY)]
        body = "INSERT IGNORE INTO shop.seen VALUES (1, 'too long')"
        trigger = f"CREATE TRIGGER shop.fires AFTER INSERT ON shop.t FOR EACH ROW {body}"
        found, counted = compare(place, of("varchar(3)"), defined("VARCHAR(3)"), rows, trigger)
        assert found[1:4] == (0, ValueNotRepresentable, 1265)
        assert counted == Counts(0, 0)

    @pytest.mark.parametrize(
        ("statements", "told"),
        [
            (["ALTER TABLE shop.users ADD other INT NOT NULL"], "'other' doesn't have a default value"),
            (
                [
                    "ALTER TABLE shop.users ADD other INT NOT NULL DEFAULT 1",
                    "CREATE TRIGGER shop.fires BEFORE INSERT ON shop.users FOR EACH ROW SET NEW.other = NULL",
                ],
                "Column 'other' cannot be null",
            ),
        ],
    )
    def test_what_others_have_made_since_the_last_commit_has_the_error_of_insert(
        self, place: MySqlPlace, applier: Applier, statements: list[str], told: str
    ) -> None:
        applier.rows(net(USERS, inserts=map(user, range(MANY))))
        for statement in statements:
            place.run(statement)
        with pytest.raises(TargetDiffers, match=told):
            applier.rows(net(USERS, inserts=map(user, range(MANY, 2 * MANY))))

    def test_character_set_that_others_have_given_a_column_since_the_last_commit_gets_the_same_texts(
        self, place: MySqlPlace, applier: Applier
    ) -> None:
        """Before and after it the rows are loaded, by a file of bytes and by one of texts."""
        table = layout("shop.words", ["id int", "v varchar(9)"], ["id"])
        applier.sql("CREATE TABLE words (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4)")
        start = counts(place)
        for first in (0, MANY):
            applier.rows(net(table, inserts=[(number, "ü€") for number in range(first, first + MANY)]))
            place.run("ALTER TABLE shop.words MODIFY v VARCHAR(9) CHARACTER SET latin1")
        assert counts(place) - start == Counts(2, 0)
        assert place.read(table) == [(number, "ü€") for number in range(2 * MANY)]

    @pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
    def test_columns_are_asked_for_once_as_long_as_a_table_is_defined_as_it_was(
        self, place: MySqlPlace, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        place.run("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT, n INT NOT NULL AUTO_INCREMENT UNIQUE)")
        if kind == "VIEW":
            place.run("RENAME TABLE shop.t TO shop.under")
            place.run("CREATE VIEW shop.t AS SELECT * FROM shop.under")
        session = ServerSession(place.url, "test", files=True)
        asked, read = list[str](), session.rows

        def rows(sql: str) -> list[Any]:
            asked.append(sql)
            return read(sql)

        monkeypatch.setattr(session, "rows", rows)
        for first in (0, MANY, 2 * MANY):
            new = images([(number, number, number + 1) for number in range(first, first + MANY)])
            load_rows(TableStatements(session, Table(of("int")), of("int"), NO_FACTS, again=False), new)
        session.close()
        assert sum("information_schema.columns" in sql for sql in asked) == (1 if kind == "TABLE" else 3)
        assert sum("information_schema.triggers" in sql for sql in asked) == 3
        assert place.query("SELECT count(*) FROM shop.t") == [(3 * MANY,)]

    @pytest.mark.parametrize(("right", "loads"), [("TRIGGER", 1), ("REFERENCES", 0)])
    def test_user_who_would_see_no_trigger_inserts(self, place: MySqlPlace, right: str, loads: int) -> None:
        place.run("DROP USER IF EXISTS limited")
        place.run("CREATE USER limited IDENTIFIED BY 'only this'")
        table = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW"
        for schema in ("thl", "shop"):
            place.run(f"GRANT {table}, {right} ON {schema}.* TO limited")
        root, place.url = place.url, f"mysql://limited:only%20this@{place.server.host}:{place.server.port}"
        try:
            applier = Applier(place.open())
            applier.sql(CREATE_USERS)
            start = counts(place)
            applier.rows(net(USERS, inserts=map(user, range(MANY))))
            assert counts(place) - start == Counts(loads, 0)
            assert place.read(USERS) == [user(number) for number in range(MANY)]
            sees_none = "sees no triggers that may act on what is applied: GRANT TRIGGER ON `shop`.* TO 'limited'@'%';"
            place.run("GRANT CREATE TEMPORARY TABLES, REFERENCES ON *.* TO limited")
            assert (sees_none in check_target(Target(url=SecretStr(place.url)))) is not loads
        finally:
            place.url = root
            place.run("DROP USER limited")

    def test_table_with_a_trigger_at_inserts_is_written_by_insert(self, place: MySqlPlace, applier: Applier) -> None:
        place.run("CREATE TRIGGER shop.fires AFTER INSERT ON shop.users FOR EACH ROW SET @seen = 1")
        start = counts(place)
        applier.rows(net(USERS, inserts=map(user, range(MANY))))
        assert counts(place) - start == Counts(0, 0)
        assert place.read(USERS) == [user(number) for number in range(MANY)]


class TestTarget:
    @pytest.mark.parametrize(("number", "loads"), [(FEWEST - 1, 0), (FEWEST, 1)])
    def test_rows_are_loaded_from_a_hundred_on(
        self, place: MySqlPlace, applier: Applier, number: int, loads: int
    ) -> None:
        start = counts(place)
        applier.rows(net(USERS, inserts=map(user, range(number))))
        assert counts(place) - start == Counts(loads, 0)
        assert place.read(USERS) == [user(one) for one in range(number)]

    def test_rows_without_a_key_are_loaded(self, place: MySqlPlace, applier: Applier) -> None:
        rows: list[Row] = [(1, "a\tb", -0.0, '{"a": 1}')] * MANY
        start = counts(place)
        applier.rows(net(LOOSE, inserts=rows))
        assert counts(place) - start == Counts(1, 0)
        assert repr(place.read(LOOSE)) == repr(rows)

    def test_server_without_local_files_gets_inserts(self, place: MySqlPlace) -> None:
        place.query("SET GLOBAL local_infile = OFF")
        applier = Applier(place.open())
        applier.sql(CREATE_USERS)
        start = counts(place)
        applier.rows(net(USERS, inserts=map(user, range(MANY))))
        assert counts(place) - start == Counts(0, 0)
        assert place.read(USERS) == [user(number) for number in range(MANY)]

    def test_server_that_takes_no_more_local_files_gets_inserts(self, place: MySqlPlace, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=map(user, range(MANY))))
        place.query("SET GLOBAL local_infile = OFF")
        start = counts(place)
        for first in (MANY, 2 * MANY):
            applier.rows(net(USERS, inserts=map(user, range(first, first + MANY))))
        assert counts(place) - start == Counts(1, 1)  # it is not tried again
        assert place.read(USERS) == [user(number) for number in range(3 * MANY)]

    def test_row_that_is_there_stops_and_leaves_nothing(self, place: MySqlPlace, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[user(7)]))
        with pytest.raises(TargetDiffers, match=r"rows of shop.users could not be inserted: Duplicate entry '7'"):
            applier.target.stage([net(USERS, inserts=map(user, range(MANY)))], last=True)
        applier.target.discard()
        assert place.read(USERS) == [user(7)]

    @pytest.mark.parametrize("after", [5000, FILE_BYTES // 2, FILE_BYTES + 5000])
    def test_connection_lost_within_a_file_is_an_outage(self, place: MySqlPlace, after: int) -> None:
        size = 1000
        rows = [(number, "x" * size, str(number)) for number in range(3 * FILE_BYTES // size)]
        table = layout("shop.long", ["id int", "a varchar(2000)", "b varchar(20)"], ["id"])
        with Proxy((place.server.host, place.server.port)) as proxy:
            direct, place.url = place.url, place.url.rpartition(":")[0] + f":{proxy.port}"
            applier = Applier(place.open())
            place.url = direct
            applier.sql("CREATE TABLE `long` (id INT PRIMARY KEY, a VARCHAR(2000), b VARCHAR(20))")
            proxy.arm(Cut(Way.UP, "reset", after))
            with pytest.raises(TargetUnavailable):
                applier.rows(net(table, inserts=rows))
            assert not proxy.armed
            assert place.read(table) == []
            again = Applier(place.open())
            again.rows(net(table, inserts=rows))
        assert place.read(table) == rows

    def test_answer_to_a_file_lost_is_an_outage(self, place: MySqlPlace) -> None:
        with Proxy((place.server.host, place.server.port)) as proxy:
            direct, place.url = place.url, place.url.rpartition(":")[0] + f":{proxy.port}"
            applier = Applier(place.open())
            place.url = direct
            applier.sql(CREATE_USERS)
            proxy.arm(Cut(Way.UP, "lost answer", at=lambda chunk: b"99@example.org" in chunk))
            with pytest.raises(TargetUnavailable):
                applier.rows(net(USERS, inserts=map(user, range(MANY))))
            assert not proxy.armed
        assert place.read(USERS) == []

    def test_row_larger_than_a_packet_is_loaded(self, place: MySqlPlace) -> None:
        """A packet has less than 16 MiB."""
        value = "ab\n" * (6 << 20)
        rows = [(number, value if number == 77 else None, number) for number in range(MANY)]
        (_, found), counted = compare(place, of("longtext"), defined("LONGTEXT"), rows)
        assert (found, counted) == (MANY, Counts(loads=2, taken_back=0))

    @pytest.mark.long
    @pytest.mark.parametrize(("kind", "value"), [("longtext", "\tx" * (32 << 20)), ("longblob", b"\0\\" * (32 << 20))])
    def test_row_of_64_mib_is_that_of_insert(self, place: MySqlPlace, kind: str, value: Value) -> None:
        rows = [(number, value if number == 77 else None, number) for number in range(MANY)]
        (_, found), counted = compare(place, of(kind), defined(kind.upper()), rows)
        assert found == MANY
        assert counted == Counts(loads=2, taken_back=0)  # the large row ends its file

    def test_row_that_no_statement_could_hold_has_the_error_of_insert(self, place: MySqlPlace) -> None:
        ((before,),) = place.query("SELECT @@GLOBAL.max_allowed_packet")
        place.query("SET GLOBAL max_allowed_packet = 1048576")
        try:
            rows = [(number, "x" * 1_048_576 if number == 77 else "", number) for number in range(MANY)]
            found, _ = compare(place, of("longtext"), defined("LONGTEXT"), rows)
        finally:
            place.query(f"SET GLOBAL max_allowed_packet = {before}")
        assert "max_allowed_packet is 1048576" in found[-1]


class TestFiles:
    """A server may ask for any file of this machine."""

    def test_server_gets_the_lines_whatever_name_it_asks_for(self, place: MySqlPlace) -> None:
        place.run("CREATE TABLE shop.t (v TEXT)")
        session = ServerSession(place.url, "test", files=True)
        try:
            sql = b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE shop.t"
            assert session.load(sql, BytesIO(b"ours\n")) == Loaded(records=1)
        finally:
            session.close()
        assert place.query("SELECT * FROM shop.t") == [("ours",)]

    def test_server_gets_nothing_at_another_statement(self, place: MySqlPlace) -> None:
        place.run("CREATE TABLE shop.t (v TEXT)")
        session = ServerSession(place.url, "test", files=True)
        try:
            with pytest.raises(pymysql.err.OperationalError, match="passwd"):
                session.query(b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE shop.t")
        finally:
            session.close()
        assert place.query("SELECT * FROM shop.t") == []


@pytest.fixture
def mariadb_place(mariadb_server: SqlServer) -> Iterator[MySqlPlace]:
    with taking_files(mariadb_server) as made:
        yield made


def test_mariadb_gets_inserts(mariadb_place: MySqlPlace) -> None:
    applier = Applier(mariadb_place.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    start = counts(mariadb_place)
    applier.rows(net(USERS, inserts=map(user, range(MANY))))
    assert counts(mariadb_place) - start == Counts(0, 0)
    assert mariadb_place.read(USERS) == [user(number) for number in range(MANY)]
