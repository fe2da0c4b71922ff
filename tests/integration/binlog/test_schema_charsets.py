"""Tables without a character set of their own: what a target plans from the log, and what the source has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice, product

import pytest

from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import Column
from connector.targets.ddl.plan import plan
from connector.targets.target_schema import TargetSchema
from tests.support.definitions import OTHER, SCHEMA
from tests.support.long import long
from tests.support.servers.environment import SqlServer
from tests.support.watched import Watched

CHARSETS = ("binary", "utf16", *("latin1", "gbk", "utf8mb3", "utf8mb4"))
"""Of one byte, of two and of four in a character, and bytes."""

DEFAULTS = (
    "DROP DATABASE {schema}; CREATE DATABASE {schema} CHARACTER SET {charset}",
    "DROP DATABASE {schema}; CREATE DATABASE {schema} COLLATE {collation}",
    "DROP DATABASE {schema}; SET character_set_server = {charset}; CREATE DATABASE {schema}; "
    "SET character_set_server = greek",
    "ALTER DATABASE {schema} CHARACTER SET {charset}",
    "USE {schema}; ALTER DATABASE DEFAULT COLLATE = {collation}",
    "CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET greek; ALTER DATABASE {schema} CHARSET {charset}",
)
"""How a schema gets a default."""

SESSIONS = (
    "USE {schema}",
    "USE {another}",
    "USE {another}; SET collation_database = koi8r_bin",
    "USE {schema}; SET collation_database = koi8r_bin",
)
"""Sessions that create a table in a schema: by its name alone only in their own."""

WAYS = tuple(product(DEFAULTS, SESSIONS))
"""Each way to get a default, with each session."""

COLUMNS = (
    "a CHAR(3), b VARCHAR(9), c TINYTEXT, d TEXT, e MEDIUMTEXT, f LONGTEXT, g TEXT(20000), h TEXT(40), i LONG VARCHAR, "
    "j ENUM('x','y'), k SET('x','y'), l NATIONAL CHAR(2), m NCHAR VARCHAR(2), n CHAR(2) BYTE, o VARCHAR(2) ASCII, "
    "p VARCHAR(3) CHARACTER SET cp1251, q TEXT CHARACTER SET binary, r VARCHAR(3) COLLATE latin2_bin, s VARBINARY(4), "
    "t BLOB, u INT, v VARCHAR(3) BINARY, w JSON, x VARCHAR(9) AS (CONCAT(b, 'x')) STORED"
)
FORMS = (
    f"CREATE TABLE {{table}} ({COLUMNS})",
    f"CREATE TABLE {{table}} ({COLUMNS}) ENGINE = InnoDB COMMENT 'CHARACTER SET latin1'",
    f"CREATE TABLE {{table}} ({COLUMNS}) CHARACTER SET cp850",
    f"CREATE TABLE {{table}} ({COLUMNS}) COLLATE cp850_bin",
    f"CREATE TABLE {{table}} ({COLUMNS}) /*!40100 DEFAULT CHARSET=cp850 */",
    f"CREATE TABLE IF NOT EXISTS {{table}} ({COLUMNS})",
    f"CREATE TABLE {{table}} ({COLUMNS}); CREATE TABLE {{beside}} LIKE {{table}}",
    "CREATE TABLE {table} (a INT); ALTER TABLE {table} ADD b VARCHAR(9), ADD c TEXT FIRST, ADD d ENUM('x')",
    "CREATE TABLE {table} (a INT); ALTER TABLE {table} CHARACTER SET cp850; ALTER TABLE {table} ADD b VARCHAR(9)",
    "CREATE TABLE {table} (a INT); ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4, ADD b VARCHAR(9)",
    "CREATE TABLE {table} (a INT); RENAME TABLE {table} TO {beside}; ALTER TABLE {beside} ADD b VARCHAR(9)",
    "CREATE TABLE {beside} (a VARCHAR(9), b TEXT); CREATE TABLE {table} SELECT * FROM {beside}",
    "CREATE TABLE {beside} (a VARCHAR(9), b TEXT) CHARSET cp850; CREATE TABLE {table} SELECT *, 'é' c FROM {beside}",
)


@pytest.fixture
def watched(mysql_server: SqlServer) -> Iterator[Watched]:
    found = Watched(mysql_server, "FULL")
    yield found
    found.close()


def described(columns: tuple[Column, ...]) -> list[tuple[str, str, str]]:
    return [(column.name, column.type, column.charset) for column in columns]


def compared(watched: Watched, charset: str, forms: tuple[str, ...] = FORMS) -> int:
    """Compares the tables of every form, each in a schema that got its default in another way, in another session.

    Returns:
        How many tables were compared.
    """
    collation = "binary" if charset == "binary" else f"{charset}_bin"
    tables, begin = 0, len(forms) * CHARSETS.index(charset)
    for form, (default, session) in zip(forms, islice(cycle(WAYS), begin, None), strict=False):
        schema, another = (SCHEMA, OTHER) if tables % 2 else (OTHER, SCHEMA)
        watched.run(*default.format(schema=f"`{schema}`", charset=charset, collation=collation).split("; "))
        watched.run(f"ALTER DATABASE `{another}` CHARACTER SET koi8u")
        tables += _one(watched, schema, another, session, form)
    return tables


def _one(watched: Watched, schema: str, another: str, session: str, form: str) -> int:
    watched.run(*session.format(schema=f"`{schema}`", another=f"`{another}`").split("; "))
    where = f"`{schema}`." if session.startswith("USE {another}") else ""
    watched.run(f"DROP TABLE IF EXISTS `{schema}`.made, `{schema}`.beside")
    watched.read()
    watched.run(*form.format(table=f"{where}made", beside=f"{where}beside").split("; "))
    tables = {name: table for name, table in watched.dictionary().tables.items() if name.schema == schema}
    watched.run(*(f"INSERT IGNORE INTO `{schema}`.{name.table} () VALUES ()" for name in tables))
    planned = TargetSchema()
    for batch in watched.read():
        for change in batch.changes if isinstance(batch, TransactionBatch) else ():
            if isinstance(change, Statement):
                planned = plan(change, planned, 0).target_schema
            elif isinstance(change, Rows):
                planned.check(change.layout)  # this is what stopped appliers
    assert {table.name for table in planned} == set(tables), form
    for name, table in tables.items():
        case = (session, form, schema)
        assert described(planned.get(name).columns) == described(table.layout.columns), case
        assert planned.get(name).charset == table.charset, case
    return len(tables)


@pytest.mark.parametrize("charset", [*CHARSETS[:2], *long(*CHARSETS[2:])])
def test_planned_columns_have_the_character_sets_of_the_source(watched: Watched, charset: str) -> None:
    assert compared(watched, charset) > len(FORMS)
