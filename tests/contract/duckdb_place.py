"""A DuckDB file as the place of the contract. Sessions of this process, which share one instance, read it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from connector.clock import SystemClock
from connector.ddl.syntax.type_names import FLOATS
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.duckdb.signal_table import DuckDbSignalSession
from connector.targets.duckdb.target import DuckDbTarget
from connector.targets.signal_table import SignalTable
from connector.targets.types import fraction, parse
from tests.contract.target_suite import KILLS
from tests.support.net import Row, in_order


class DuckDbPlace:
    schemaless = False
    kinds = ("INTEGER", "SMALLINT")
    way_out = "copy the rows"
    lacks = frozenset[str]()
    early = False
    kills = KILLS
    indexes = False
    computed = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened: list[DuckDbTarget] = []

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> DuckDbTarget:
        made = DuckDbTarget(self.path, SystemClock(), audit=audit, wait=0.2, columns=columns, history=history)
        self.opened.append(made)
        return made

    @property
    def options(self) -> dict[str, Any]:
        return {"url": f"duckdb:///{self.path}"}

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> DuckDbTarget:
        return self.open(audit=True, columns=columns)

    def query(self, sql: str) -> list[Row]:
        with duckdb.connect(str(self.path.resolve())) as connection:
            return connection.execute(sql).fetchall()

    def read(self, table: TableLayout) -> list[Row] | None:
        columns = ", ".join(readable(column) for column in table.columns)
        try:
            found = self.query(f"SELECT {columns} FROM {'.'.join(map(quoted, table.name))}")
        except duckdb.CatalogException as error:
            assert "does not exist" in str(error)
            return None
        return in_order(tuple(map(as_logged, row, table.columns)) for row in found)

    def applied(self) -> list[tuple[int, int]]:
        found = self.query("SELECT seqno, rows FROM thl.thl_applied ORDER BY 1")
        return [(int(str(seqno)), int(str(rows))) for seqno, rows in found]

    def drop(self, table: TableLayout) -> None:
        self.run(f"DROP TABLE {'.'.join(map(quoted, table.name))}")

    def run(self, sql: str) -> None:
        self.query(sql)

    def indexed(self, table: TableLayout) -> list[str]:
        found = self.query(f"SELECT expressions FROM duckdb_indexes() WHERE table_name = '{table.name.table}'")
        return sorted(str(text) for (text,) in found)

    def marks(self) -> int:
        found = self.query("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'thl_marks_%'")
        return int(str(found[0][0]))

    def note_deletes(self, name: str, body: str) -> None:
        self.run(f"CREATE TRIGGER by_user AFTER DELETE ON {name} FOR EACH ROW {body}")

    def forget_deletes(self, name: str) -> None:
        self.run(f"DROP TRIGGER by_user ON {name}")

    def signals(self) -> SignalTable:
        return SignalTable(DuckDbSignalSession(self.path))

    def staging(self) -> int:
        found = self.query(
            "SELECT count(*) FROM duckdb_tables() WHERE schema_name <> 'thl' AND schema_name || '.' || table_name "
            "NOT IN (SELECT target_name FROM thl.thl_tables)"
        )
        return int(str(found[0][0]))

    def close(self) -> None:
        for target in self.opened:
            target.close()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def readable(column: Column) -> str:
    """The expression whose value tells the column's value, without the code of the target."""
    name, base = quoted(column.name), parse(column.type).base
    if base in ("datetime", "timestamp"):
        return f"epoch_us({name})"
    if base in ("decimal", "date", "time", "json"):
        return f"CAST({name} AS VARCHAR)"
    if base == "bit":
        return f"CAST({name} AS VARCHAR)"
    return f"CAST({name} AS DOUBLE)" if column.type in FLOATS else name


def as_logged(value: int | float | str | bytes | None, column: Column) -> int | float | str | bytes | None:
    base, places = parse(column.type).base, fraction(column) if column.type.startswith(("date", "time")) else 0
    if value is None:
        return None
    if base == "bit":
        return int(str(value), 2).to_bytes((len(str(value)) + 7) // 8, "big")
    if base in ("datetime", "timestamp"):
        return moment(int(str(value)), places)
    if base == "decimal" and str(value).lstrip("-").startswith("."):
        return str(value).replace(".", "0.")
    if base == "time" and places:
        whole, _, rest = str(value).partition(".")
        return f"{whole}.{rest.ljust(places, '0')}"
    return str(value) if isinstance(value, int) and value >= 1 << 63 else value


def moment(micros: int, places: int) -> str:
    text = (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat(" ", "microseconds")
    return text[: 20 + places] if places else text[:19]
