"""The table history of a MariaDB compared with the server, with metadata NO_LOG (its default) and MINIMAL."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction.batch import TransactionBatch
from tests.integration.binlog.test_schema_charsets import CHARSETS, FORMS, compared
from tests.integration.mariadb.test_log import CASES, said_of, same
from tests.support.binlog import row_changes
from tests.support.definitions import OTHER, SCHEMA, TYPES, Statements
from tests.support.long import long
from tests.support.servers.environment import SqlServer
from tests.support.watched import Watched, rows_of, walk

OWN = (
    *("uuid", "inet6", "inet4", "json", "year(4)", "timestamp", "timestamp(3)", "point ref_system_id=4326"),
    *("varchar(30) compressed", "text compressed", "mediumblob compressed=zlib", "varbinary(30) compressed"),
    *("varchar(8) collate utf8mb4_uca1400_ai_ci", "text collate uca1400_ai_ci", "char(4) collate latin1_nopad_bin"),
    *("text character set utf8", "int default (1 + 1)", "uuid default uuid()", "int(11) without system versioning"),
    *("varchar(5) as ('v') persistent", "int unsigned as (1) virtual", "bit(3) default b'1' check (1 = 1)"),
)


class MariaStatements(Statements):
    """The same, and what MySQL has not."""

    def definition(self) -> str:
        if self.random.random() < 0.5:
            return self.any(*OWN)
        return f"{self.random.choice([kind for kind in TYPES if 'vector' not in kind])} {self.any('', 'not null')}"

    def clause(self) -> str:
        if self.random.random() < 0.6:
            return super().clause()
        column, other = self.column(), self.column()
        return self.any(
            f"ADD COLUMN IF NOT EXISTS {column} {self.definition()}{self.place()}",
            f"ADD COLUMN IF NOT EXISTS ({column} {self.definition()}, {other} {self.definition()})",
            f"DROP COLUMN IF EXISTS {column}",
            f"MODIFY COLUMN IF EXISTS {column} {self.definition()}{self.place()}",
            f"CHANGE COLUMN IF EXISTS {column} {other} {self.definition()}",
            f"RENAME COLUMN IF EXISTS {column} TO {other}",
            f"ADD INDEX IF NOT EXISTS i ({column})",
            "DROP INDEX IF EXISTS i",
            f"ADD CONSTRAINT IF NOT EXISTS c CHECK ({column} is not null)",
            "CONVERT TO CHARACTER SET utf8mb3 COLLATE uca1400_ai_ci",
            "COLLATE uca1400_as_cs",
            "PAGE_CHECKSUM = 1",
        )

    def one(self) -> str:
        if self.random.random() < 0.6:
            return super().one()
        a, b = self.table(), self.table()
        return self.any(
            self.create().replace("CREATE TABLE", "CREATE OR REPLACE TABLE").replace("IF NOT EXISTS ", ""),
            f"SET STATEMENT max_statement_time = 60 FOR ALTER TABLE {a} {self.clause()}",
            f"ALTER TABLE IF EXISTS {a} WAIT 5 {self.clause()}, {self.clause()}",
            f"ALTER ONLINE TABLE {a} NOWAIT {self.clause()}",
            f"RENAME TABLE IF EXISTS {a} TO {b}",
            f"RENAME TABLE {a} WAIT 5 TO {b}",
            f"DROP TABLE IF EXISTS {a} WAIT 5",
            f"TRUNCATE TABLE {a} WAIT 5",
            f"DROP INDEX IF EXISTS `PRIMARY` ON {a}",
            f"CREATE OR REPLACE DATABASE `{OTHER}` {self.any('', 'COLLATE utf8mb4_uca1400_ai_ci', 'CHARSET cp1251')}",
            f"ALTER DATABASE {SCHEMA} COLLATE uca1400_ai_ci",
            f"ALTER DATABASE {SCHEMA} COMMENT 'shop'",
            "CREATE OR REPLACE SEQUENCE seq",
            "ALTER SEQUENCE IF EXISTS seq RESTART 5",
            "DROP SEQUENCE IF EXISTS seq",
            "SET SESSION binlog_alter_two_phase = 1 - @@binlog_alter_two_phase",
            "CREATE OR REPLACE FUNCTION f() RETURNS int RETURN 1",
        )


@pytest.fixture
def watched(mariadb_server: SqlServer, request: pytest.FixtureRequest) -> Iterator[Watched]:
    found = Watched(mariadb_server, request.param)
    yield found
    found.close()


NOT_UNDERSTOOD = (
    *("a conversion of ENUM or SET labels", "CONVERT TO beside", "a generated TIMESTAMP under", " is not in "),
    *("IF [NOT] EXISTS for a column", "a statement that failed"),
)
MODES = {
    1: "sql_mode = ''",
    2: "sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,REAL_AS_FLOAT', explicit_defaults_for_timestamp = OFF",
}


@pytest.mark.parametrize(("watched", "seed"), [("NO_LOG", 1), ("MINIMAL", 2)], indirect=["watched"])
def test_history_equals_the_dictionary_after_every_statement(watched: Watched, seed: int) -> None:
    watched.run(f"SET {MODES[seed]}")
    told, layouts = walk(watched, MariaStatements(seed), 300, reasons=NOT_UNDERSTOOD, passing=True)
    assert told > 80
    assert layouts > 5


@pytest.mark.parametrize("charset", [CHARSETS[0], *long(*CHARSETS[1:])])
@pytest.mark.parametrize("watched", ["MINIMAL"], indirect=True)
def test_planned_columns_have_the_character_sets_of_the_source(watched: Watched, charset: str) -> None:
    watched.tell("FULL")
    assert compared(watched, charset, FORMS) > len(FORMS)


@pytest.mark.parametrize("watched", ["NO_LOG"], indirect=True)
def test_every_value_equals_its_select(watched: Watched) -> None:
    """Though the log tells neither signs nor character sets."""
    watched.run("SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")
    for number, (_, definition, values) in enumerate(CASES):
        watched.run(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        watched.run(*(f"INSERT INTO t{number} (v) VALUES ({value})" for value in values))
    found = [item for item in watched.read() if isinstance(item, TransactionBatch)]
    for number, (how, definition, _) in enumerate(CASES):
        said = said_of(watched.cursor, f"t{number}", how, definition)
        values_ = [after[1] for _, _, after in row_changes(found, f"t{number}") if after]
        assert [(definition, value) for value, row in zip(values_, said, strict=True)
                if not same(value, row, how, definition)] == []  # fmt: skip


@pytest.mark.parametrize("watched", ["NO_LOG"], indirect=True)
def test_rows_of_an_unknown_table_are_refused_with_the_statement(watched: Watched) -> None:
    watched.run("CREATE TABLE v (a int) WITH SYSTEM VERSIONING", "CREATE TABLE o (a int)", "INSERT INTO o VALUES (1)")
    assert [rows.count for rows in rows_of(watched.read())] == [1]
    watched.run("INSERT INTO v VALUES (1)")
    with pytest.raises(Unsupported) as caught:
        watched.read()
    unknown_since = str(caught.value.where["unknown_since"])
    assert "WITH SYSTEM VERSIONING" in unknown_since
    assert "-bin.0" in unknown_since


@pytest.mark.parametrize("watched", ["NO_LOG"], indirect=True)
def test_table_unlike_its_history_is_refused(watched: Watched) -> None:
    """Also a column that the dictionary does not show: a UNIQUE over a TEXT has a hidden one."""
    watched.run("CREATE TABLE h (a int PRIMARY KEY, b text UNIQUE)")
    watched.read()
    watched.run("INSERT INTO h VALUES (1, 'x')")
    with pytest.raises(CorruptBinlog) as caught:
        watched.read()
    assert caught.value.where["table"].table == "h"
    assert caught.value.where["difference"]


@pytest.mark.parametrize("watched", ["NO_LOG"], indirect=True)
def test_temporary_tables_do_not_change_the_history(watched: Watched) -> None:
    """The log does not mark only their RENAME as temporary: then both tables become unknown."""
    watched.run("CREATE TABLE t (a int)", "CREATE TABLE u (b int)")
    watched.run(
        "CREATE TEMPORARY TABLE t (z text)", "ALTER TABLE t ADD y int", "CREATE OR REPLACE TEMPORARY TABLE t (y int)"
    )
    watched.read()
    assert watched.known == watched.dictionary()
    watched.run("RENAME TABLE t TO u")
    watched.read()
    assert {name.table: "RENAME to" in table.unknown for name, table in watched.known.tables.items()} == {
        "t": True, "u": True,
    }  # fmt: skip


@pytest.mark.parametrize("watched", ["NO_LOG"], indirect=True)
def test_effect_of_a_failed_statement_is_followed(watched: Watched) -> None:
    watched.run("CREATE TABLE t (a int)", "CREATE TABLE u (b int)")
    with pytest.raises(pymysql.MySQLError):
        watched.run("CREATE OR REPLACE TABLE t (b int, KEY (c))")
    watched.read()
    assert watched.known == watched.dictionary()
    assert [name.table for name in watched.known.tables] == ["u"]
