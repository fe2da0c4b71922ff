"""Definitions under filters on real servers: published definitions leave captured tables equal to the source's.

Each case makes two schemas of its own, `…_s` and `…_o`, and writes a log file of its own under one default schema. What
is published of it is applied to a model of a target. Both are then equal, or the producer has stopped and says how to
go on; never do they differ, and never does the applier meet a table that is not captured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest

from connector.config.filters import Filters
from connector.errors import ConnectorError, Unsupported
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableName
from connector.mysql.transforms.filters import Filter
from connector.targets.ddl.plan import plan
from connector.targets.operations import CreateTable, DropTable, RenameTable, Truncate
from connector.targets.target_schema import TargetSchema
from tests.support.binlog import changes, images, whole_file
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SERVERS = pytest.mark.parametrize("server", ["mysql_server", "mariadb_server"], ids=["mysql", "mariadb"])
# By whole schemas, and by tables: there {s}.x and {s}.y are not captured.
FILTERS = {
    "schemas": Filter(Filters(do=("*_s",))),
    "tables": Filter(Filters(do=("*_s.t", "*_s.u", "*_s.n*", "*_s.é"))),
    "ignoring": Filter(Filters(ignore=("*_o", "*_s.x", "*_s.y"))),
}
ROWS = "INSERT INTO {0} VALUES (1, 1), (2, 2)"
EVERYDAY = {
    "truncate": "TRUNCATE TABLE {s}.t; TRUNCATE {o}.t; TRUNCATE {s}.x",
    "like": "CREATE TABLE {s}.n LIKE {s}.t; INSERT INTO {s}.n VALUES (5, 5); CREATE TABLE {o}.n LIKE {s}.t",
    "select": "CREATE TABLE {s}.n AS SELECT * FROM {o}.t; CREATE TABLE {s}.y SELECT * FROM {s}.t",
    "drop": "DROP TABLE {s}.t, {o}.t, {s}.x; DROP TABLE IF EXISTS {o}.u, {s}.missing, {s}.u",
    "rename": "RENAME TABLE {s}.t TO {s}.n, {o}.t TO {o}.n; INSERT INTO {s}.n VALUES (5, 5)",
    "rotate": "RENAME TABLE {s}.t TO {o}.t_01; CREATE TABLE {s}.t LIKE {s}.u; INSERT INTO {s}.t VALUES (7, 7)",
    "alter": "ALTER TABLE {s}.t ADD w INT, RENAME TO {s}.n; ALTER TABLE {o}.t DROP v; ALTER TABLE {s}.x ADD w INT",
    "schemas": "ALTER DATABASE {s} CHARACTER SET latin1; DROP DATABASE {o}; DROP DATABASE {s}",
}
FORMS = {
    "select_typed": "CREATE TABLE {s}.n (id INT PRIMARY KEY) SELECT id FROM {s}.x; "
    "CREATE TABLE {o}.n SELECT * FROM {s}.t",
    "if_not_exists": "CREATE TABLE IF NOT EXISTS {s}.t (z INT); CREATE TABLE IF NOT EXISTS {s}.n LIKE {s}.u",
    "create": "CREATE TABLE {s}.n (id INT, v INT); CREATE TABLE {o}.n (id INT, v INT); "
    "CREATE TABLE {s}.y (id INT, v INT)",
    "swap": "RENAME TABLE {s}.t TO {o}.tmp, {s}.u TO {s}.t, {o}.tmp TO {s}.u",
    "rotate_at_once": "RENAME TABLE {s}.t TO {o}.old, {s}.u TO {s}.t; INSERT INTO {s}.t VALUES (8, 8)",
    "alter_away": "ALTER TABLE {s}.t RENAME {o}.gone",
    "rename_in": "RENAME TABLE {o}.t TO {s}.n",
    "rename_back": "RENAME TABLE {s}.t TO {o}.away; RENAME TABLE {o}.away TO {s}.t",
    "alter_in": "ALTER TABLE {s}.x RENAME TO {s}.n",
    "like_other": "CREATE TABLE {s}.n LIKE {o}.t",
    "like_ignored": "CREATE TABLE {s}.n LIKE {s}.x",
    "exchange": "ALTER TABLE {o}.p EXCHANGE PARTITION p0 WITH TABLE {s}.t",
    "exchange_others": "ALTER TABLE {o}.p EXCHANGE PARTITION p0 WITH TABLE {o}.t",
    "index": "CREATE INDEX i ON {s}.t (v); DROP INDEX i ON {s}.t; CREATE UNIQUE INDEX i ON {o}.t (v)",
    "comments": "/* {o}.t */ TRUNCATE /*!50000 TABLE */ {s} . `t` -- {o}.x\n; /*!50503 DROP TABLE */ {s}.u # x\n",
    "ansi": 'SET sql_mode = \'ANSI_QUOTES\'; DROP TABLE "{s}"."t", "{o}".t',
    "fails": "DROP TABLE {s}.t, {s}.missing; DROP TABLE {o}.missing, {s}.u",
    "engines": "CREATE TABLE {s}.n (id INT, v INT) ENGINE=MyISAM; DROP TABLE {s}.t, {s}.n, {o}.t",
    "views": "CREATE VIEW {s}.n AS SELECT 1 AS one; CREATE VIEW {o}.n AS SELECT 1 AS one; DROP VIEW {s}.n, {o}.n",
    "programs": "CREATE PROCEDURE {o}.p() TRUNCATE {s}.t; CALL {o}.p(); DROP PROCEDURE {o}.p; CREATE FUNCTION {s}.f() "
    "RETURNS INT DETERMINISTIC RETURN 1; DROP FUNCTION {s}.f; "
    "CREATE EVENT {o}.e ON SCHEDULE EVERY 1 DAY DO TRUNCATE {s}.t",
    "trigger": "CREATE TRIGGER {o}.g AFTER INSERT ON {o}.t FOR EACH ROW INSERT INTO {s}.t VALUES (NEW.id, NEW.v); "
    "INSERT INTO {o}.t VALUES (9, 9)",
    "accounts": "FLUSH TABLES; ANALYZE TABLE {s}.t, {o}.t; OPTIMIZE TABLE {o}.t; CHECK TABLE {o}.t; "
    "REPAIR TABLE {o}.t; "
    "CREATE USER {o}; GRANT SELECT ON {s}.* TO {o}; RENAME USER {o} TO {o}2; DROP USER {o}2; LOCK TABLES {s}.t WRITE; "
    "TRUNCATE {s}.t; UNLOCK TABLES",
    "temporary": "CREATE TEMPORARY TABLE {o}.n (id INT); DROP TEMPORARY TABLE {o}.n; "
    "CREATE TEMPORARY TABLE {s}.n (id INT)",
    "temporary_like": "CREATE TEMPORARY TABLE {o}.n (id INT, v INT); CREATE TABLE {s}.n LIKE {o}.n",
    "temporary_hides": "CREATE TEMPORARY TABLE {s}.t (id INT); TRUNCATE {s}.t; ALTER TABLE {s}.t ADD z INT; "
    "DROP TABLE {s}.t",
    "temporary_renamed": "CREATE TEMPORARY TABLE {s}.t (id INT); ALTER TABLE {s}.t RENAME TO {s}.n2",
    # Without SELECT: the server writes what it makes of that in UTF-8, and says that it is latin1.
    "latin1": "SET NAMES latin1; CREATE TABLE {s}.é (id INT, v INT); RENAME TABLE {s}.é TO {s}.n; CREATE TABLE {s}.é "
    "LIKE {s}.n; DROP TABLE {s}.é, {o}.t",
    "many": "DROP TABLE " + ", ".join(f"{{o}}{n}.t" for n in range(18)) + ", {s}.t",
    "schema": "CREATE SCHEMA {o}_x; ALTER SCHEMA {o} CHARSET latin1; DROP SCHEMA {o}_x; DROP TABLE {s}.t; "
    "DROP SCHEMA {s}",
}
MARIADB = {
    "sequence": "CREATE SEQUENCE {o}.q; SELECT NEXT VALUE FOR {o}.q; DROP SEQUENCE {o}.q",
    "replace": "CREATE OR REPLACE TABLE {s}.t (id INT PRIMARY KEY, z INT); "
    "CREATE OR REPLACE TABLE {o}.t SELECT * FROM {s}.u",
    "replace_select": "CREATE OR REPLACE TABLE {s}.u SELECT * FROM {o}.t; CREATE OR REPLACE TABLE {s}.n LIKE {s}.u",
    "rename_if": "RENAME TABLE IF EXISTS {s}.t WAIT 1 TO {s}.n, {o}.t TO {o}.n",
    "wait": "DROP TABLE IF EXISTS {o}.t, {s}.t WAIT 1; ALTER TABLE {s}.u NOWAIT ADD z INT; TRUNCATE TABLE {o}.u WAIT 1",
    "statement": "SET STATEMENT lock_wait_timeout = 5 FOR TRUNCATE {s}.t; SET STATEMENT sort_buffer_size = 100000 FOR "
    "DROP TABLE {o}.t, {s}.u",
    "period": "CREATE TABLE {o}.n (a DATE, b DATE, PERIOD FOR p (a, b)); ALTER TABLE {o}.n DROP PERIOD FOR p",
    "convert": "ALTER TABLE {o}.p CONVERT PARTITION p0 TO TABLE {s}.n",
    "convert_others": "ALTER TABLE {o}.p CONVERT PARTITION p0 TO TABLE {o}.n",
    "replace_schema": "CREATE OR REPLACE DATABASE {o}; CREATE TABLE {o}.t (id INT)",
}
# What the log alone cannot show: these stop under these filters.
STOPS = {
    "rename_in": {"schemas", "tables", "ignoring"},
    "rename_back": {"schemas", "tables", "ignoring"},
    "alter_in": {"tables", "ignoring"},
    "like_other": {"schemas", "tables", "ignoring"},
    "like_ignored": {"tables", "ignoring"},
    "exchange": {"schemas", "tables", "ignoring"},
    "convert": {"schemas", "tables", "ignoring"},
}
DEFAULTS = ("{o}", "{s}", "")


@dataclass
class Shown:
    """The captured tables as the log shows them: their columns, and the first value of each row."""

    target_schema: TargetSchema
    rows: dict[TableName, list[Any]]

    def statement(self, statement: Statement) -> None:
        found = plan(statement, self.target_schema, 0)
        for operation in found.operations:
            match operation:
                case CreateTable(table=table):
                    self.rows[table.name] = []
                case DropTable(table=table):
                    del self.rows[table.name]
                case RenameTable(table=table, name=name):
                    self.rows[name] = self.rows.pop(table.name)
                case Truncate(table=table):
                    self.rows[table.name] = []
                case _:
                    pass
        self.target_schema = found.target_schema

    def changed(self, rows: Rows) -> None:
        assert rows.action is Action.INSERT
        self.target_schema.check(rows.layout)
        self.rows[rows.layout.name] += [after[0] for _, after in images(rows) if after is not None]

    @property
    def tables(self) -> dict[str, tuple[list[str], list[Any]]]:
        return {
            str(table.name): ([column.name for column in table.columns], sorted(self.rows[table.name]))
            for table in self.target_schema
        }


def written(
    server: SqlServer, name: str, script: str, default: str
) -> tuple[Path, dict[str, tuple[list[str], list[Any]]]]:
    """A file of the log that a case writes, and what the server's tables in its schemas are afterwards."""
    schemas = {"s": f"{name}_s", "o": f"{name}_o"}
    with closing(connect(server)) as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        others = [f"{{o}}{number}" for number in range(18)] if "{o}17" in script else []
        for schema in ("{s}", "{o}", *others):
            cursor.execute(f"CREATE DATABASE {schema}".format(**schemas))
        for table in ("{s}.t", "{s}.u", "{s}.x", "{o}.t", "{o}.u", *(f"{other}.t" for other in others)):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)".format(**schemas))
            cursor.execute(ROWS.format(table.format(**schemas)))
        cursor.execute(
            "CREATE TABLE {o}.p (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) "
            "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))".format(**schemas)
        )
    with closing(connect(server)) as connection, connection.cursor() as cursor:
        if default:
            cursor.execute(f"USE {default}".format(**schemas))
        encoding = "utf-8"
        for statement in script.format(**schemas).split("; "):
            try:
                cursor.execute(statement.encode(encoding))
                while cursor.nextset():
                    pass
            except pymysql.err.MySQLError as error:
                assert name.startswith("fails") or error.args[0] == 1046, (statement, error)
            encoding = "latin1" if "SET NAMES latin1" in statement else encoding
    with closing(connect(server)) as connection, connection.cursor() as cursor:
        found = {}
        cursor.execute(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
            "AND TABLE_SCHEMA LIKE %s",
            (name.replace("_", "\\_") + "\\_%",),
        )
        for schema, table in cursor.fetchall():
            cursor.execute(f"SELECT * FROM `{schema}`.`{table}` ORDER BY 1")
            found[f"{schema}.{table}"] = [one[0] for one in cursor.description], [row[0] for row in cursor.fetchall()]
        log = closed(cursor)
        cursor.execute(
            "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE %s", (f"{name}\\_%",)
        )
        for (schema,) in cursor.fetchall():
            cursor.execute(f"DROP DATABASE `{schema}`")
    return log, found


def closed(cursor: Any) -> Path:
    """The file that the server was writing until now."""
    cursor.execute("SHOW BINARY LOGS")
    name = cursor.fetchall()[-1][0]
    cursor.execute("FLUSH BINARY LOGS")
    cursor.execute("SELECT @@datadir")
    folder = Path(cursor.fetchone()[0])
    if not folder.is_dir():
        pytest.skip("the server's files are not on this machine")
    return folder / name


def compare(server: SqlServer, name: str, script: str, default: str) -> None:
    log, found = written(server, name, script, default)
    for called, filter in FILTERS.items():
        shown = Shown(TargetSchema(), {})
        stops = called in STOPS.get(name, ())
        try:
            for change in changes(whole_file(log, filters=filter)):
                if isinstance(change, Statement):
                    shown.statement(change)
                else:
                    shown.changed(change)
        except Unsupported as error:
            assert stops, f"{called}, {default}: {error}"
            assert "source.filters.ignore: [" in error.hint
            continue
        assert not stops, f"{called}, {default}: it was to stop"
        wanted = {table: rows for table, rows in found.items() if filter.captures(*table.split(".", 1))}
        assert shown.tables == wanted, f"{called}, default schema {default!r}"


@SERVERS
def test_filtered_definitions_leave_captured_tables_equal_to_the_source(
    server: str, request: pytest.FixtureRequest
) -> None:
    there = request.getfixturevalue(server)
    for name, script in EVERYDAY.items():
        compare(there, name, script, "{o}")


@pytest.mark.long
@SERVERS
@pytest.mark.parametrize("default", DEFAULTS, ids=["other", "captured", "none"])
def test_every_ddl_form_is_filtered_alike_under_every_default_schema(
    server: str, default: str, request: pytest.FixtureRequest
) -> None:
    there = request.getfixturevalue(server)
    own = MARIADB if server == "mariadb_server" else {}
    wrong = dict(_differing(there, EVERYDAY | FORMS | own, default))
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


def _differing(server: SqlServer, forms: dict[str, str], default: str) -> Iterator[tuple[str, str]]:
    """All that are wrong, not only the first."""
    for name, script in forms.items():
        try:
            compare(server, name, script, default)
        except (AssertionError, ConnectorError, pymysql.err.MySQLError) as error:
            yield name, f"{type(error).__name__}: {error}"
