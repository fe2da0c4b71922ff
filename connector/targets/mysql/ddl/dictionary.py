"""The data dictionary of a MySQL target, for DDL that a user has applied by hand."""

from __future__ import annotations

from connector.ddl.syntax.tokens import quoted
from connector.log.transaction.layout import TableName
from connector.targets.ddl.by_hand import RealTable
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import table_condition, table_name
from connector.targets.mysql.sql.types import declared
from connector.targets.table import Table
from connector.targets.types import family


class MySqlDictionary:
    """The data dictionary of a server (`connector.targets.ddl.by_hand.Dictionary`).

    Types are compared as rows of the log are compared with a table: lengths and character sets of text make no
    difference.

    Args:
        session: with the server.
        computed: true if the target's tables may have the source's generated columns.
    """

    def __init__(self, session: ServerSession, *, computed: bool = False) -> None:
        self._session = session
        self._computed = computed

    def real(self, name: TableName) -> RealTable | None:
        """The table on the server."""
        where = table_condition(name)
        found = self._session.rows(
            "SELECT column_name, column_type, column_key, extra FROM information_schema.columns "
            f"WHERE {where} ORDER BY ordinal_position"
        )
        if not found:
            return None
        columns = {str(column): declared(str(kind)) for column, kind, *_ in found}
        computed = {
            str(column): f"ALTER TABLE {table_name(name)} MODIFY {quoted(str(column))} {kind}"
            for column, kind, _, extra in found
            if " GENERATED" in str(extra).upper() and not self._computed and "DEFAULT_" not in str(extra).upper()
        }
        key = frozenset(str(column) for column, _, part, _ in found if part == "PRI")
        if not self._has_key(where):  # MySQL shows a NOT NULL unique key as PRI where there is no primary key
            key = frozenset()
        return RealTable(columns, key, computed)

    def _has_key(self, where: str) -> bool:
        query = f"SELECT 1 FROM information_schema.statistics WHERE {where} AND index_name = 'PRIMARY' LIMIT 1"
        return bool(self._session.rows(query))

    def expected(self, table: Table) -> RealTable:
        """The table that a definition makes."""
        columns = {column.name: _family(family(column)) for column in table.stored}
        return RealTable(columns, frozenset(table.key))


def _family(kind: str) -> str:
    return kind.split("(", maxsplit=1)[0] if kind.startswith(("enum", "set")) else kind
