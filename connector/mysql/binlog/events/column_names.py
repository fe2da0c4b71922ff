"""Column names of tables whose TABLE_MAP has none (MINIMAL metadata, or an old server): the seam and two resolvers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

from connector.errors import Unsupported
from connector.log.rules import NEW_LOG
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Redefined
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.query import Query
from connector.mysql.binlog.events.table_map import TableMap, table_layout
from connector.mysql.values.columns import Spec

HIDDEN_KEY: Final = b"my_row_id"  # the server's only name for it


class ColumnNameResolver(Protocol):
    """Names the columns of a table whose TABLE_MAP does not; called once for each definition of such a table."""

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """The table with names, and the specifications for `RowCodec`.

        Raises:
            Unsupported: the names are not known.
            CorruptBinlog: the TABLE_MAP contradicts the known table.
        """

    def follow(self, query: Query, gtid: str | None, position: SourcePosition) -> bool:
        """Follows a definition; called for each.

        Args:
            query: the statement.
            gtid: GTID of its transaction; None without one.
            position: the position after it.

        Returns:
            True if it changed tables. If so, `drain` is called at the end of its transaction.
        """

    def drain(self) -> Redefined:
        """Returns the changes since the last call."""

    def known(self, name: TableName) -> TableLayout | None:
        """A table after the last definition; None: it is not known."""

    def creation_options(self, statement: Statement) -> Mapping[str, str]:
        """The options of a definition that only the tables before it tell: no server logs them.

        Args:
            statement: the definition; `follow` is called for it afterwards.
        """


class _StaticResolver:
    """A resolver that ignores definitions."""

    def creation_options(self, statement: Statement) -> Mapping[str, str]:
        """Nothing."""
        del statement
        return {}

    def known(self, name: TableName) -> TableLayout | None:
        """Nothing."""
        del name
        return None

    def follow(self, query: Query, gtid: str | None, position: SourcePosition) -> bool:
        """Nothing."""
        del query, gtid, position
        return False

    def drain(self) -> Redefined:
        """Nothing."""
        return Redefined()


class RefusingResolver(_StaticResolver):
    """Refuses tables without column names: publishing needs them."""

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """Raises Unsupported."""
        raise Unsupported(
            f"the binary log does not name the columns of {table.name}",
            hint="SET GLOBAL binlog_row_metadata = FULL; (MySQL before 8.0 has no such variable) then start after the "
            f"rows written before, or {NEW_LOG}, which reads the tables",
            table=table.name,
        )


class NumberingResolver(_StaticResolver):
    """Names columns `@1`, `@2` … as mysqlbinlog does, for inspection. Without a key; ENUM and SET as numbers.

    A generated invisible primary key keeps its name: the log flags it.
    """

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """The table with numbered columns."""
        raws = [replace(raw, name=b"@%d" % number) for number, raw in enumerate(table.raws, 1)]
        if not table.hidden_key:
            return table_layout(replace(table, raws=raws))
        return table_layout(replace(table, raws=[replace(raws[0], name=HIDDEN_KEY), *raws[1:]], key=(0,)))
