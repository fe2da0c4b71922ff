"""What a table of the server does with rows by itself: columns that it computes, and times that it sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.log.transaction.layout import TableName
from connector.targets.mysql.connection import ServerSession
from connector.targets.mysql.names import text_literal


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
    where = f"table_schema = {text_literal(name.schema)} AND table_name = {text_literal(name.table)}"
    found = [
        (str(column), str(extra).upper())
        for column, extra in session.rows(f"SELECT column_name, extra FROM information_schema.columns WHERE {where}")
    ]
    return TableFacts(
        computed=frozenset(name for name, extra in found if "VIRTUAL" in extra or "STORED" in extra),
        touched=frozenset(name for name, extra in found if "ON UPDATE" in extra),
    )
