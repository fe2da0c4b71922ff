"""What a table's columns are called where its TABLE_MAP does not name them: MINIMAL metadata, or an old server."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from connector.errors import Unsupported
from connector.log.transaction.definition import Redefined
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.query import Query
from connector.mysql.binlog.events.table_map import TableMap, table_layout
from connector.mysql.values.columns import Spec

HIDDEN_KEY: Final = b"my_row_id"  # the server has no other name for it


class ColumnNameResolver(Protocol):
    """Says what the event leaves out. Asked once for each table definition, and only where names are missing."""

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """The table with names, and what `RowCodec` wants to know.

        Raises:
            Unsupported: it is not known.
            CorruptBinlog: it is known to be another.
        """

    def follow(self, query: Query, gtid: str | None, place: SourcePosition) -> bool:
        """Told of every definition: the statement, its transaction's GTID, and where it ends.

        Returns:
            Whether a table has other columns now. If so, `taken` is asked when its transaction has ended.
        """

    def drain(self) -> Redefined:
        """What has changed since the last call."""

    def known(self, name: TableName) -> TableLayout | None:
        """A table as it is behind the newest definition; None: that is not known."""


class _StaticResolver:
    """Names that no definition changes."""

    def known(self, name: TableName) -> TableLayout | None:
        """Nothing."""
        del name
        return None

    def follow(self, query: Query, gtid: str | None, place: SourcePosition) -> bool:
        """Nothing."""
        del query, gtid, place
        return False

    def drain(self) -> Redefined:
        """Nothing."""
        return Redefined()


class RefusingResolver(_StaticResolver):
    """Whoever copies rows must know their columns' names."""

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """Never."""
        raise Unsupported(
            f"the binary log does not name the columns of {table.name}",
            hint="SET GLOBAL binlog_row_metadata = FULL; (MySQL before 8.0 has no such variable) then start where rows "
            "written since then begin, or begin a new log (another `service`) with a snapshot, from which the tables "
            "are followed",
            table=table.name,
        )


class NumberingResolver(_StaticResolver):
    """Whoever only looks calls them `@1`, `@2` … as mysqlbinlog does. No key, and of ENUM and SET the number.

    A key that the server made is called as it calls it: that there is one, the log tells.
    """

    def layout(self, table: TableMap) -> tuple[TableLayout, list[Spec]]:
        """The table with numbered columns."""
        raws = [replace(raw, name=b"@%d" % number) for number, raw in enumerate(table.raws, 1)]
        if not table.hidden_key:
            return table_layout(replace(table, raws=raws))
        return table_layout(replace(table, raws=[replace(raws[0], name=HIDDEN_KEY), *raws[1:]], key=(0,)))
