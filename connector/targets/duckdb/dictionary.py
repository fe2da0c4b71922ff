"""Tables and columns as a DuckDB file has them."""

from __future__ import annotations

from typing import Final

from connector.log.transaction.layout import TableName
from connector.targets.ddl.by_hand import RealTable
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.names import NAMES
from connector.targets.duckdb.types import duckdb_type
from connector.targets.names import quoted
from connector.targets.table import Table

OF_TABLE: Final = "database_name = current_catalog() AND schema_name = ? AND table_name = ?"
_COLUMNS: Final = f"SELECT column_name, data_type FROM duckdb_columns() WHERE {OF_TABLE} ORDER BY column_index"
_SQL: Final = f"SELECT sql FROM duckdb_tables() WHERE {OF_TABLE}"
_REMADE: Final = "DuckDB cannot change {} to an ordinary column: create a new table with it and copy the rows"


def column_names_of(session: FileSession, name: TableName) -> set[str]:
    """The names of a table's columns in the file."""
    return {str(column) for column, _ in session.run(_COLUMNS, NAMES.table(name))}


class DuckDbDictionary:
    """The data dictionary of the file (`connector.targets.ddl.by_hand.Dictionary`).

    Args:
        session: with the file.
    """

    def __init__(self, session: FileSession) -> None:
        self._session = session

    def real(self, name: TableName) -> RealTable | None:
        """The table in the file. Whether it has a primary key does not matter."""
        found = self._session.run(_COLUMNS, NAMES.table(name))
        if not found:
            return None
        columns = {str(column): str(kind) for column, kind in found}
        ((sql,),) = self._session.run(_SQL, NAMES.table(name)) or (("",),)
        computed = {
            column: _REMADE.format(column)
            for column, kind in columns.items()
            if any(f"{form} {kind} GENERATED ALWAYS AS" in str(sql) for form in (column, quoted(column)))
        }
        return RealTable(columns, frozenset(), computed)

    def expected(self, table: Table) -> RealTable:
        """The table that `ddl` makes."""
        return RealTable({column.name: duckdb_type(column) for column in table.stored}, frozenset())
