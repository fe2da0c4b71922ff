"""The history of the source's tables, held against a real MySQL: after each statement it is what the server says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from connector.capture import connection as capture
from connector.capture.catalogue import read_definitions
from connector.capture.filters import Filter
from connector.capture.moment import prepare_session
from connector.capture.reader import BinlogReader
from connector.capture.source_state import end_position
from connector.capture.stream import open_stream
from connector.capture.table_history import TableHistory
from connector.config import Filters
from connector.errors import CorruptBinlog, Unsupported
from connector.sandbox.environment import SqlServer
from connector.thl.definition import Definitions, Item, Redefined
from connector.thl.layout import TableLayout, TableName
from connector.thl.piece import Piece, Rows
from tests.support.binlog import images, source_of
from tests.support.mysql import connect

SCHEMA, OTHER = "history_a", "History B"
FILTER = Filter(Filters(do=(SCHEMA, OTHER)))


class Watched:
    """A server, a session that changes it, and a history that follows."""

    def __init__(self, server: SqlServer, metadata: str = "MINIMAL") -> None:
        self.session = connect(server)
        self.cursor = self.session.cursor()
        self.run(
            f"SET GLOBAL binlog_row_metadata = {metadata}",
            f"DROP DATABASE IF EXISTS `{SCHEMA}`",
            f"DROP DATABASE IF EXISTS `{OTHER}`",
            f"CREATE DATABASE `{SCHEMA}` CHARACTER SET latin1",
            f"CREATE DATABASE `{OTHER}`",
            f"USE {SCHEMA}",
        )
        source = source_of(server)
        self.beside = capture.connect(source)
        prepare_session(self.beside, source)
        self.known = self.dictionary()
        self.history = TableHistory(self.known, FILTER)
        self.reader = BinlogReader.from_stream(
            open_stream(source, end_position(self.beside)),
            filters=FILTER,
            service="test",
            piece_bytes=1 << 20,
            naming=self.history,
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def dictionary(self) -> Definitions:
        return read_definitions(self.beside, FILTER)

    def read(self) -> list[Item]:
        """All that the server has written; the changes it told of make what we know."""
        end = end_position(self.beside)
        found: list[Item] = []
        while self.reader.position != end:
            found += self.reader.read()
        for item in found:
            if isinstance(item, Redefined):
                self.known = self.known.after(item)
        return found

    def close(self) -> None:
        self.run("SET GLOBAL binlog_row_metadata = FULL", f"DROP DATABASE IF EXISTS `{SCHEMA}`")
        self.run(f"DROP DATABASE IF EXISTS `{OTHER}`")
        self.reader.close()
        self.beside.close()
        self.session.close()


@pytest.fixture
def watched(mysql_server: SqlServer) -> Iterator[Watched]:
    found = Watched(mysql_server)
    yield found
    found.close()


TYPES = (
    *(
        "tinyint",
        "smallint unsigned",
        "mediumint",
        "int",
        "integer unsigned zerofill",
        "bigint",
        "int8 unsigned",
        "bool",
    ),
    *(
        "float",
        "float(30)",
        "float(7,3)",
        "double precision",
        "real",
        "decimal",
        "decimal(12)",
        "numeric(20,4) unsigned",
    ),
    *("bit", "bit(17)", "year", "date", "time(3)", "datetime", "datetime(6)", "timestamp(2) null", "timestamp null"),
    *("char", "char(7)", "varchar(30)", "varchar(300)", "national varchar(10)", "nchar(4)", "character varying(9)"),
    *("binary(4)", "varbinary(40)", "blob", "tinyblob", "mediumblob", "longblob", "blob(300)", "char(3) byte"),
    *(
        "text",
        "tinytext",
        "mediumtext",
        "longtext",
        "text(100)",
        "text(20000)",
        "long varchar",
        "json",
        "geometry",
        "point",
    ),
    *("enum('a','b')", "enum('it''s', 'x,y', 'é  ')", "set('p','q','r')", "char(5) character set binary"),
    *("varchar(10) character set ucs2", "text charset utf8mb3", "char(4) collate cp1251_bin", "varchar(5) ascii"),
    *("enum('ж') character set utf8mb4", "varchar(8) unicode", "text(70) character set gbk", "vector(3)", "dec(5,5)"),
    "set(" + ",".join(f"'m{n}'" for n in range(40)) + ")",
    "enum(" + ",".join(f"'{n}'" for n in range(300)) + ")",
)
CHARSETS = ("utf8mb4", "latin1", "utf8mb3", "cp1251", "gbk", "ascii", "sjis", "gb18030", "ucs2", "utf16")
ATTRIBUTES = (
    *(
        "",
        "",
        "",
        "not null",
        "null",
        "comment 'a, b) not null'",
        "invisible",
        "/*!80023 invisible */",
        "/* not null */",
    ),
    "unique",
)


class Statements:
    """Statements about a few tables, of which many are refused by the server."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def any(self, *choices: str) -> str:
        return self.random.choice(choices)

    def table(self) -> str:
        schema = self.any("", "", "", f"{SCHEMA}.", f"`{OTHER}`.")
        return schema + self.any("t0", "t1", "`t2`", "`Tab``le 3`")

    def column(self) -> str:
        return self.any("a", "`b`", "c", "D", "`e f`", "g")

    def definition(self) -> str:
        return f"{self.random.choice(TYPES)} {self.any(*ATTRIBUTES)}"

    def place(self) -> str:
        return self.any("", "", " FIRST", f" AFTER {self.column()}")

    def part(self) -> str:
        a, b = self.column(), self.column()
        return self.any(
            f"PRIMARY KEY ({a})",
            f"PRIMARY KEY ({a}, {b}) COMMENT 'x'",
            f"CONSTRAINT k PRIMARY KEY USING BTREE ({a} DESC)",
            f"KEY ({a})",
            f"UNIQUE KEY u ({a}, {b})",
            f"KEY ((upper({a})))",
            f"CHECK ({a} is not null)",
        )

    def option(self) -> str:
        charset = self.any(*CHARSETS)
        return self.any(
            f"DEFAULT CHARACTER SET = {charset}", f"charset {charset}", "ENGINE = InnoDB", "COMMENT 'c'",
            "COLLATE utf8mb4_bin", "ROW_FORMAT=DYNAMIC",
        )  # fmt: skip

    def clause(self) -> str:
        column, other = self.column(), self.column()
        return self.any(
            f"ADD {column} {self.definition()}{self.place()}",
            f"ADD COLUMN {column} {self.definition()}{self.place()}",
            f"ADD COLUMN ({column} {self.definition()}, {other} {self.definition()})",
            f"ADD COLUMN {column} int AS (1 + 1) {self.any('STORED', 'VIRTUAL')}",
            f"ADD {column} SERIAL",
            f"ADD {column} int NOT NULL AUTO_INCREMENT UNIQUE",
            f"DROP COLUMN {column}",
            f"DROP {column}",
            f"MODIFY {column} {self.definition()}{self.place()}",
            f"MODIFY COLUMN {column} {self.definition()}",
            f"CHANGE {column} {other} {self.definition()}{self.place()}",
            f"CHANGE COLUMN {column} {column} {self.definition()}",
            f"RENAME COLUMN {column} TO {other}",
            f"ALTER {column} SET DEFAULT 1",
            f"ALTER COLUMN {column} DROP DEFAULT",
            f"ALTER {column} SET INVISIBLE",
            f"ADD {self.part()}",
            "DROP PRIMARY KEY",
            "DROP INDEX u",
            f"RENAME TO {self.table()}",
            f"CONVERT TO CHARACTER SET {self.any(*CHARSETS)}",
            "CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_bin",
            self.option(),
            "ORDER BY a",
            "FORCE",
            "ENGINE=InnoDB",
        )

    def create(self) -> str:
        name = self.table()
        head = f"CREATE TABLE {self.any('', 'IF NOT EXISTS ')}{name}"
        if self.random.random() < 0.15:
            return f"{head} {self.any(f'LIKE {self.table()}', f'(LIKE {self.table()})')}"
        if self.random.random() < 0.15:
            return f"{head} {self.option()} SELECT * FROM {self.table()} LIMIT 1"
        names = self.random.sample(["a", "`b`", "c", "D", "`e f`", "g"], self.random.randint(1, 5))
        parts = [f"{one} {self.definition()}" for one in names]
        if self.random.random() < 0.3:
            parts[0] = (
                f"{names[0]} {self.any('int primary key', 'serial', 'int key auto_increment', 'bigint unsigned null')}"
            )
        parts += [self.part() for _ in range(self.random.randint(0, 2))]
        options = " ".join(self.option() for _ in range(self.random.randint(0, 2)))
        return f"{head} ({', '.join(parts)}) {options}"

    def one(self) -> str:
        kind = self.random.random()
        if kind < 0.25:
            return self.create()
        if kind < 0.80:
            clauses = ", ".join(self.clause() for _ in range(self.random.choice((1, 1, 1, 2, 3))))
            return f"ALTER TABLE {self.table()} {clauses}"
        a, b = self.table(), self.table()
        return self.any(
            f"DROP TABLE {a}",
            f"DROP TABLE IF EXISTS {a}, {b}",
            f"RENAME TABLE {a} TO {b}",
            f"RENAME TABLE {a} TO tmp, {b} TO {a}, tmp TO {b}",
            f"TRUNCATE {a}",
            f"CREATE INDEX i ON {a} (a)",
            f"CREATE UNIQUE INDEX i ON {a} (c, D)",
            f"DROP INDEX `PRIMARY` ON {a}",
            "CREATE TEMPORARY TABLE passing (z int)",  # by another name: of one LIKE it the log omits the charset
            "DROP TEMPORARY TABLE passing",
            f"ALTER DATABASE {SCHEMA} CHARACTER SET {self.any(*CHARSETS)}",
            f"ALTER SCHEMA `{OTHER}` COLLATE = cp1250_general_ci",
            f"DROP DATABASE `{OTHER}`",
            f"CREATE DATABASE `{OTHER}` {self.any('', 'CHARACTER SET greek')}",
            f"CREATE DATABASE IF NOT EXISTS `{OTHER}`",
            f"CREATE OR REPLACE VIEW v AS SELECT 1 AS one, {self.any('2', '3')} AS two",
            "RENAME TABLE v TO w, w TO v",
            "DROP VIEW v",
        )


MODES = {1: "", 2: "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,REAL_AS_FLOAT", 3: "ANSI_QUOTES"}


@pytest.mark.parametrize("seed", MODES)
def test_after_every_statement_the_history_is_the_dictionary(watched: Watched, seed: int) -> None:
    statements = Statements(seed)
    told = layouts = 0
    quote = '"' if seed == 3 else "`"
    watched.run(f"SET sql_mode = '{MODES[seed]}'")
    for _ in range(400):
        sql = statements.one()
        if seed == 3:
            sql = sql.replace("``", "?").replace("`", quote)
        try:
            watched.run(sql)
        except pymysql.MySQLError:
            continue
        told += 1
        found = watched.read()
        for name, table in list(watched.known.tables.items()):
            if table.unknown:  # MySQL makes of labels that are not ASCII whatever it makes
                assert "a conversion of labels" in table.unknown, sql
                dropped = name.table.replace("`", "``") if quote == "`" else name.table
                watched.run(f"DROP TABLE {quote}{name.schema}{quote}.{quote}{dropped}{quote}")
        with suppress(pymysql.MySQLError):
            watched.run(f"REPLACE INTO {statements.any('t0', 't1')} () VALUES ()")
        found += watched.read()
        expected = watched.dictionary()
        assert watched.known.schemas == expected.schemas, sql
        assert watched.known.tables == expected.tables, sql
        for change in (change for item in found if isinstance(item, Piece) for change in item.changes):
            if isinstance(change, Rows):
                layouts += 1
                assert change.layout == expected.tables[change.layout.name].layout
                assert all(len(after or ()) == len(change.layout.columns) for _, after in images(change))
    assert told > 80
    assert layouts > 20


def forged(watched: Watched, **columns: Any) -> None:
    """Make the history know table t's first column otherwise."""
    name = TableName(SCHEMA, "t")
    table = watched.history._known.tables[name]
    first, *others = table.layout.columns
    layout = replace(table.layout, columns=(replace(first, **columns), *others))
    watched.history._known = Definitions({name: replace(table, layout=layout)}, watched.known.schemas)


@pytest.mark.parametrize(
    ("definition", "otherwise", "told"),
    [
        ("varchar(20)", {"type": "varchar(21)"}, "is varchar(20) latin1 NULL, in the history varchar(21) latin1 NULL"),
        ("varchar(20)", {"charset": "cp1251"}, "in the history varchar(20) cp1251 NULL"),
        ("int", {"unsigned": True}, "is int NULL, in the history int unsigned NULL"),
        ("int", {"nullable": False}, "in the history int NOT NULL"),
        ("decimal(5,2)", {"type": "decimal(5,3)"}, "is decimal(5,2) NULL"),
        ("enum('a','b')", {"labels": tuple(map(str, range(256)))}, "has numbers of 1 bytes, and 256 labels"),
        ("datetime(3)", {"type": "datetime"}, "is datetime(3) NULL, in the history datetime NULL"),
    ],
)
def test_a_table_that_is_not_the_one_of_the_history_stops(
    watched: Watched, definition: str, otherwise: dict[str, Any], told: str
) -> None:
    watched.run(f"CREATE TABLE t (v {definition}, w int)")
    watched.read()
    forged(watched, **otherwise)
    watched.run("INSERT INTO t (w) VALUES (1)")

    with pytest.raises(CorruptBinlog, match=r"t is not the table that the history knows: column 1, v, ") as caught:
        watched.read()

    assert told in str(caught.value)
    assert caught.value.where["table"] == (SCHEMA, "t")
    assert caught.value.where["file"]
    assert caught.value.where["pos"] > 4
    assert "binlog_row_metadata = FULL" in caught.value.hint


def test_a_column_more_or_less_stops(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int)")
    watched.read()
    table = watched.history._known.tables[TableName(SCHEMA, "t")]
    watched.history._known = Definitions({table.name: replace(table, layout=TableLayout(table.name, ()))})
    watched.run("INSERT INTO t VALUES (1)")

    with pytest.raises(CorruptBinlog, match="it has 1 columns, the history 0"):
        watched.read()


def test_rows_behind_a_definition_that_is_not_understood_stop_with_it(watched: Watched) -> None:
    """The definition itself, and rows of other tables, go through."""
    watched.run("CREATE TABLE t (v int) PARTITION BY HASH (v) PARTITIONS 2", "CREATE TABLE u (v int)")
    watched.run("ALTER TABLE t TRUNCATE PARTITION p0", "INSERT INTO u VALUES (1)")
    assert [c.count for i in watched.read() if isinstance(i, Piece) for c in i.changes if isinstance(c, Rows)] == [1]
    watched.run("INSERT INTO t VALUES (1)")

    with pytest.raises(Unsupported, match="ALTER TABLE t TRUNCATE PARTITION p0") as caught:
        watched.read()

    assert "-bin.0" in caught.value.message
    assert caught.value.where["file"]


def test_full_metadata_is_the_truth_and_the_history_is_not_asked(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int, w int)")
    watched.read()
    forged(watched, unsigned=True, name="other")
    watched.run("SET GLOBAL binlog_row_metadata = FULL", "INSERT INTO t VALUES (1, 2)")
    (layout,) = (c.layout for i in watched.read() if isinstance(i, Piece) for c in i.changes if isinstance(c, Rows))
    assert [column.name for column in layout.columns] == ["v", "w"]

    watched.run("SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO t VALUES (1, 2)")
    with pytest.raises(CorruptBinlog, match="int unsigned"):
        watched.read()


def test_metadata_may_change_while_tables_do(watched: Watched) -> None:
    watched.run("CREATE TABLE t (v int)")
    names = []
    for number, metadata in enumerate(("MINIMAL", "FULL", "FULL", "MINIMAL", "MINIMAL", "FULL")):
        watched.run(
            f"SET GLOBAL binlog_row_metadata = {metadata}",
            "INSERT INTO t () VALUES ()",
            f"ALTER TABLE t ADD c{number} enum('a') FIRST",
            "INSERT INTO t () VALUES ()",
        )
        found = [c.layout for i in watched.read() if isinstance(i, Piece) for c in i.changes if isinstance(c, Rows)]
        names.append([[column.name for column in layout.columns] for layout in found])
    columns = ["c5", "c4", "c3", "c2", "c1", "c0", "v"]
    assert names == [[columns[-1 - n :], columns[-2 - n :]] for n in range(6)]
