"""A MySQL or MariaDB server as the place of the contract: its databases are dropped before each test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal
from urllib.parse import quote

import pymysql
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.ddl.syntax.type_names import FLOATS, INTEGERS
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.mysql.bookkeeping import ensure_bookkeeping
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.signal_table import MySqlSignalSession
from connector.targets.mysql.target import MySqlTarget
from connector.targets.signal_table import SignalTable
from connector.targets.types import BYTES, parse
from tests.contract.target_suite import KILLS
from tests.support.net import Row, in_order
from tests.support.servers.environment import SqlServer

MADE: dict[str, list[Row]] = {}
"""Server → the bookkeeping as a claim makes it."""
SYSTEM = ("mysql", "sys", "performance_schema", "information_schema")


class MySqlPlace:
    schemaless = False
    kinds = ("int", "smallint")
    way_out = "MODIFY `n` smallint"
    indexes = True
    computed = "STORED"
    early = True
    kills = KILLS

    def __init__(
        self,
        server: SqlServer,
        lacks: Sequence[str] = (),
        *,
        definitions: Literal["source", "plain"] = "plain",
        keeps: bool = False,
    ) -> None:
        """Connect, and drop all databases; `keeps`: not that of the bookkeeping, if it is as a claim makes it."""
        self.definitions: Literal["source", "plain"] = definitions
        self.server = server
        self.lacks = frozenset(lacks)
        self.url = f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"
        self.opened: list[MySqlTarget] = []
        self.reader = self.connect()
        kept = ("thl",) if keeps and self._emptied() else ()
        self.drop_all(kept)

    def drop_all(self, kept: Sequence[str] = ()) -> None:
        for (name,) in self.query("SHOW DATABASES"):
            if name not in (*SYSTEM, *kept):
                self.run(f"DROP DATABASE `{name}`")

    def _emptied(self) -> bool:
        """Empty the tables of the bookkeeping; making them takes longer than most tests. False if they are changed."""
        key = f"{self.server.host}:{self.server.port}"
        if key not in MADE:
            self.drop_all()
            with closing(ServerSession(self.url, "thl")) as session:
                ensure_bookkeeping(session)
            MADE[key] = self._bookkeeping()
        if self._bookkeeping() != MADE[key]:
            return False
        for table in {table for table, kind, *_ in MADE[key] if kind == "BASE TABLE"}:
            self.query(f"DELETE FROM thl.{table}")
        return True

    def _bookkeeping(self) -> list[Row]:
        """The columns of all tables and views of the bookkeeping."""
        return self.query(
            "SELECT table_name, table_type, column_name, column_type, is_nullable, column_default, column_key "
            "FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) "
            "WHERE table_schema = 'thl' ORDER BY table_name, ordinal_position"
        )

    def connect(self) -> Any:
        return pymysql.connect(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            charset="utf8mb4",
            autocommit=True,
            ssl_disabled=True,  # a session with TLS takes 70 ms to begin
            init_command="SET time_zone = '+00:00', foreign_key_checks = 0, sql_mode = 'STRICT_ALL_TABLES'",
        )

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> MySqlTarget:
        made = MySqlTarget(
            SecretStr(self.url),
            SystemClock(),
            audit=audit,
            columns=columns,
            history=history,
            definitions=self.definitions,
        )
        self.opened.append(made)
        return self.opened[-1]

    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.url, "definitions": self.definitions}

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> MySqlTarget:
        return self.open(audit=True, columns=columns)

    def query(self, sql: str) -> list[Row]:
        with self.reader.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def read(self, table: TableLayout) -> list[Row] | None:
        name = ".".join(quoted(part) for part in table.name)
        columns = ", ".join(readable(column) for column in table.columns)
        connection = self.connect()
        connection.decoders, connection.use_unicode = {}, False
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {columns} FROM {name}")
                found = cursor.fetchall()
        except pymysql.MySQLError as error:
            assert error.args[0] in (1146, 1049), error
            return None
        finally:
            connection.close()
        return in_order(
            tuple(
                None if item is None else as_logged(item, column)
                for item, column in zip(row, table.columns, strict=True)
            )
            for row in found
        )

    def applied(self) -> list[tuple[int, int]]:
        found = self.query("SELECT seqno, `rows` FROM thl.thl_applied ORDER BY 1")
        return [(int(str(seqno)), int(str(rows))) for seqno, rows in found]

    def drop(self, table: TableLayout) -> None:
        self.run(f"DROP TABLE {'.'.join(quoted(part) for part in table.name)}")

    def run(self, sql: str) -> None:
        if self.query("SELECT 1 FROM information_schema.schemata WHERE schema_name = 'shop'"):
            self.reader.select_db("shop")
        self.query(sql)

    def indexed(self, table: TableLayout) -> list[str]:
        return [
            str(columns)
            for (columns,) in self.query(
                "SELECT group_concat(column_name ORDER BY seq_in_index) FROM information_schema.statistics "
                f"WHERE table_schema = '{table.name.schema}' AND table_name = '{table.name.table}' "
                "GROUP BY index_name ORDER BY 1"
            )
        ]

    def marks(self) -> int:
        where = "table_schema = 'thl' AND table_name LIKE 'thl\\_marks\\_%'"
        return int(str(self.query(f"SELECT count(*) FROM information_schema.tables WHERE {where}")[0][0]))

    def note_deletes(self, name: str, body: str) -> None:
        self.run(f"CREATE TRIGGER by_user AFTER DELETE ON {name} FOR EACH ROW {body}")

    def forget_deletes(self, name: str) -> None:
        self.run("DROP TRIGGER by_user")

    def signals(self) -> SignalTable:
        return SignalTable(MySqlSignalSession(self.url))

    def staging(self) -> int:
        system = ", ".join(f"'{name}'" for name in (*SYSTEM, "thl"))
        known = "SELECT target_name FROM thl.thl_tables"
        found = self.query(
            f"SELECT count(*) FROM information_schema.tables WHERE table_schema NOT IN ({system}) AND "
            f"BINARY concat(table_schema, '.', table_name) NOT IN (SELECT BINARY target_name FROM ({known}) AS k)"
        )
        return int(str(found[0][0]))

    def close(self) -> None:
        for target in self.opened:
            target.close()
        self.reader.close()


@contextmanager
def taking_files(server: SqlServer, *, keeps: bool = False) -> Iterator[MySqlPlace]:
    """A place whose server takes LOAD DATA LOCAL meanwhile."""
    place = MySqlPlace(server, keeps=keeps)
    ((before,),) = place.query("SELECT @@GLOBAL.local_infile")
    place.query("SET GLOBAL local_infile = ON")
    try:
        yield place
    finally:
        place.query(f"SET GLOBAL local_infile = {before}")
        place.close()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def readable(column: Column) -> str:
    """The expression whose text is the column's value: as a DOUBLE, a FLOAT has all its digits."""
    return f"{quoted(column.name)} * 1e0" if column.type in FLOATS else quoted(column.name)


def as_logged(raw: bytes, column: Column) -> int | float | str | bytes:
    base = parse(column.type).base
    if base in BYTES or base in ("bit", "geometry", "vector"):
        return raw
    if base in FLOATS:
        return float(raw)
    if base in INTEGERS or base == "year":
        number = int(raw)
        return number if number < 1 << 63 else str(number)
    return raw.decode()
