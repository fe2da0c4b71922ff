"""The behaviour of a table that its rows do not show: columns that the server computes or updates, its engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.errors import TargetDiffers, Unsupported
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import table_condition, table_name
from connector.targets.table import Table


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The columns of a table that the server writes by itself.

    Args:
        computed: generated columns: they are not written.
        touched: columns with ON UPDATE CURRENT_TIMESTAMP: an UPDATE without them would change them.
        by_session: those of `computed` that are STORED, and depend on the session that writes the row.
    """

    computed: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()
    by_session: frozenset[str] = frozenset()


NO_FACTS: Final = TableFacts()
# What depends on time_zone, lc_time_names, default_week_format, div_precision_increment or block_encryption_mode.
_SESSION: Final = re.compile(
    r"/|\b(?:from_unixtime|unix_timestamp|date_format|time_format|str_to_date|dayname|monthname|week|aes_\w+)\(",
    re.IGNORECASE,
)


def check_engine(session: ServerSession, name: TableName) -> None:
    """Check that a table takes part in commits: others may have given it another storage engine.

    Raises:
        TargetDiffers: it does not.
    """
    where = f"{table_condition(name)} AND engine <> 'InnoDB'"
    if found := session.rows(f"SELECT engine FROM information_schema.tables WHERE {where}"):
        raise TargetDiffers(
            f"table {name} has the storage engine {found[0][0]}: its rows would not be committed with the position, "
            "and a crash may have left some",
            hint=f"ALTER TABLE {table_name(name)} ENGINE = InnoDB, then thl load {name}",
            table=name,
        )


def facts_of(session: ServerSession, name: TableName) -> TableFacts:
    """Read what a table does by itself."""
    found = [
        (str(column), str(kind), str(extra).upper(), str(expression))
        for column, kind, extra, expression in session.rows(
            "SELECT column_name, data_type, extra, generation_expression FROM information_schema.columns WHERE "
            f"{table_condition(name)} ORDER BY ordinal_position"
        )
    ]
    stored = {column for column, _, extra, _ in found if "STORED" in extra}
    return TableFacts(
        computed=frozenset(column for column, _, extra, _ in found if "VIRTUAL" in extra or column in stored),
        touched=frozenset(column for column, _, extra, _ in found if "ON UPDATE" in extra),
        by_session=frozenset(stored & _by_session(found)),
    )


def _by_session(columns: Sequence[tuple[str, str, str, str]]) -> set[str]:
    """The columns that depend on the session, by name, type and expression: also by one before them."""
    found: set[str] = set()
    for column, kind, _, expression in columns:
        if kind == "timestamp" or _SESSION.search(expression) or any(quoted(name) in expression for name in found):
            found.add(column)
    return found


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
            TargetDiffers: the table has no transactions.
        """
        if self._of_source and (nulls := table.nulls_of(net.layout)):
            raise Unsupported(
                f"rows may have NULL in columns that are NOT NULL: {', '.join(sorted(nulls))}",
                hint="a rule of source.filters.tables publishes it: ALTER TABLE … MODIFY … NULL on the source, or "
                "target.definitions: plain for a new target",
                table=table.name,
            )
        if table.name not in self._known:
            check_engine(self._session, table.name)
            self._known[table.name] = facts_of(self._session, table.name) if self._of_source else NO_FACTS
        return self._known[table.name]

    def forget(self) -> None:
        """Forget them: definitions have changed."""
        self._known.clear()
