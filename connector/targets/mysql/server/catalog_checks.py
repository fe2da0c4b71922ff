"""Reads from information_schema what tables have besides their columns.

It can keep rows from being replaced by upserts, or from being deleted. Others have made it.
"""

from __future__ import annotations

from collections.abc import Iterable

from connector.log.transaction.layout import TableName
from connector.targets.ddl.loads import refuse_deletes
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import table_condition, table_name, text_literal
from connector.targets.table import Table


def unique_key_parts(session: ServerSession, name: TableName) -> dict[str, list[tuple[str | None, int | None]]]:
    """The parts of each unique index of a table: the column in lower case, None for an expression; and its prefix."""
    where = table_condition(name)
    query = (
        f"SELECT index_name, column_name, sub_part FROM information_schema.statistics WHERE {where} AND NOT non_unique "
        "ORDER BY index_name, seq_in_index"
    )
    found: dict[str, list[tuple[str | None, int | None]]] = {}
    for index, column, prefix in session.rows(query):
        part = (None if column is None else str(column).lower(), None if prefix is None else int(prefix))
        found.setdefault(str(index), []).append(part)
    return found


def unique_indexes(session: ServerSession, name: TableName) -> list[list[str | None]]:
    """The columns, in lower case, of each unique index of a table but its primary key; None for an expression."""
    found = unique_key_parts(session, name)
    return [[column for column, _ in parts] for index, parts in found.items() if index != "PRIMARY"]


def takes_upserts(session: ServerSession, name: TableName, key: Iterable[str]) -> bool:
    """True if rows can be replaced in place: the table's only unique index is a primary key over these columns.

    The answer holds until the end of the transaction, for reading the table keeps others from altering it.
    """
    session.query(f"SELECT 1 FROM {table_name(name)} LIMIT 0")
    return unique_key_parts(session, name) == {"PRIMARY": [(column.lower(), None) for column in key]}


def check_deletes(session: ServerSession, table: Table, in_place: bool = False) -> None:
    """Check that no trigger of others acts on deletes of a table's rows. Foreign keys are off in our session.

    Args:
        session: with the server.
        table: the table.
        in_place: it is no error if rows can be replaced without deletes.

    Raises:
        TargetDiffers: one does.
    """
    if in_place and not unique_indexes(session, table.name):
        return
    refuse_deletes(table, [f"trigger {name}" for name in triggers_of(session, table.name, "DELETE")])


def fires_at_inserts(session: ServerSession, name: TableName) -> bool:
    """True if triggers of a table act on inserts."""
    return bool(triggers_of(session, name, "INSERT"))


def triggers_of(session: ServerSession, name: TableName, event: str = "") -> list[str]:
    """The names of a table's triggers.

    Args:
        session: with the server.
        name: the table.
        event: INSERT, UPDATE or DELETE: those that act on it; "": all.
    """
    where = f"event_object_schema = {text_literal(name.schema)} AND event_object_table = {text_literal(name.table)}"
    if event:
        where += f" AND event_manipulation = '{event}'"
    found = session.rows(f"SELECT trigger_name FROM information_schema.triggers WHERE {where} ORDER BY 1")
    return [str(trigger) for (trigger,) in found]
