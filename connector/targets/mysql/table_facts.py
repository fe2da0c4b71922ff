"""Columns that the server itself computes or updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.errors import Unsupported
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.mysql.catalog_checks import fires_at_inserts
from connector.targets.mysql.connection import ServerSession
from connector.targets.mysql.names import table_condition
from connector.targets.table import Table


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table does by itself.

    Args:
        computed: generated columns: they are not written.
        touched: columns with ON UPDATE CURRENT_TIMESTAMP: an UPDATE without them would change them.
        required: columns that an INSERT has to have: they are NOT NULL, without a default.
        fires: it has triggers that act on inserts.
    """

    computed: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    fires: bool = False


NO_FACTS: Final = TableFacts()


def facts_of(session: ServerSession, name: TableName) -> TableFacts:
    """Read what a table does by itself."""
    query = "SELECT column_name, extra, is_nullable, column_default FROM information_schema.columns"
    found = [
        (str(column), str(extra).upper(), nullable == "NO" and default is None)
        for column, extra, nullable, default in session.rows(f"{query} WHERE {table_condition(name)}")
    ]
    computed = frozenset(name for name, extra, _ in found if "VIRTUAL" in extra or "STORED" in extra)
    return TableFacts(
        computed=computed,
        touched=frozenset(name for name, extra, _ in found if "ON UPDATE" in extra),
        required=frozenset(name for name, extra, needed in found if needed and "AUTO_INCREMENT" not in extra)
        - computed,
        fires=fires_at_inserts(session, name),
    )


class KnownFacts:
    """The facts of the tables to which rows were applied.

    Args:
        session: the applier's.
        of_source: tables have the source's definitions; those that the applier made itself have no facts, unless a user
            has added something, which matters for rows that are loaded.
    """

    def __init__(self, session: ServerSession, *, of_source: bool) -> None:
        self._session = session
        self._of_source = of_source
        self._known: dict[TableName, TableFacts] = {}

    def of(self, net: NetChanges, table: Table) -> TableFacts:
        """The facts of a table, before these changes.

        Raises:
            Unsupported: rows may have NULL in a column that is NOT NULL.
        """
        if self._of_source and (nulls := table.nulls_of(net.layout)):
            raise Unsupported(
                f"rows may have NULL in columns that are NOT NULL: {', '.join(sorted(nulls))}",
                hint="a rule of source.filters.tables publishes it: ALTER TABLE … MODIFY … NULL on the source, or "
                "target.definitions: plain for a new target",
                table=table.name,
            )
        if not self._of_source and not self._session.loads:
            return NO_FACTS
        if table.name not in self._known:
            self._known[table.name] = facts_of(self._session, table.name)
        return self._known[table.name]

    def forget(self) -> None:
        """Forget them: definitions have changed."""
        self._known.clear()
