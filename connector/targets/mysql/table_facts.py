"""Columns that the server itself computes or updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.errors import Unsupported
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.mysql.connection import ServerSession
from connector.targets.mysql.names import table_condition
from connector.targets.table import Table


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table does by itself.

    Args:
        computed: generated columns: they are not written.
        touched: columns with ON UPDATE CURRENT_TIMESTAMP: an UPDATE without them would change them.
    """

    computed: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()


NO_FACTS: Final = TableFacts()


def facts_of(session: ServerSession, name: TableName) -> TableFacts:
    """Read what a table does by itself."""
    where = table_condition(name)
    found = [
        (str(column), str(extra).upper())
        for column, extra in session.rows(f"SELECT column_name, extra FROM information_schema.columns WHERE {where}")
    ]
    return TableFacts(
        computed=frozenset(name for name, extra in found if "VIRTUAL" in extra or "STORED" in extra),
        touched=frozenset(name for name, extra in found if "ON UPDATE" in extra),
    )


class KnownFacts:
    """The facts of the tables to which rows were applied.

    Args:
        session: the applier's.
        of_source: tables have the source's definitions; those that the applier made itself have no facts.
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
        if not self._of_source:
            return NO_FACTS
        if nulls := table.nulls_of(net.layout):
            raise Unsupported(
                f"rows may have NULL in columns that are NOT NULL: {', '.join(sorted(nulls))}",
                hint="a rule of source.filters.tables publishes it: ALTER TABLE … MODIFY … NULL on the source, or "
                "target.definitions: plain for a new target",
                table=table.name,
            )
        if table.name not in self._known:
            self._known[table.name] = facts_of(self._session, table.name)
        return self._known[table.name]

    def forget(self) -> None:
        """Forget them: definitions have changed."""
        self._known.clear()
