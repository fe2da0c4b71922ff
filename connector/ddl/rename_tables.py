"""A definition with the names under which tables and schemas are published.

Only the names of affected tables are replaced (`affected_tables`), whole and quoted; all else stays to the letter, and
the result is parsed again. What a definition names besides (a foreign key's other table, a view's
text) has no rows of its own in the log, and stays.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName


def rename_tables(
    statement: Statement, table: Callable[[TableName], TableName], schema: Callable[[str], str]
) -> Statement:
    """The statement about the tables and schemas that are published.

    Args:
        statement: the definition, with the source's names.
        table: the name that a table is published under.
        schema: likewise of a schema as a whole.

    Raises:
        Unsupported: it is not understood, or cannot be written so.
    """
    about = affected_tables(statement)
    names = [f"{_quoted(new.schema)}.{_quoted(new.table)}" for new in map(table, _tables(about))]
    renamed = [table(name) != name for name in _tables(about)]
    if about.schema:
        names, renamed = [_quoted(schema(about.schema))], [schema(about.schema) != about.schema]
    if not any(renamed):
        return statement
    if len(about.places) != len(names):
        raise Unsupported("a definition does not say which schema it is about")
    sql = statement.sql
    for (start, end), name in sorted(zip(about.places, names, strict=True), reverse=True):
        sql = f"{sql[:start]}{name}{sql[end:]}"
    result = Statement(statement.schema, sql, statement.options)
    again = affected_tables(result)
    wanted = (tuple(map(table, _tables(about))), schema(about.schema))
    if (_tables(again), again.schema) != wanted:
        raise Unsupported("the names of a definition could not be replaced")
    return result


def _tables(about: AffectedTables) -> tuple[TableName, ...]:
    return (*about.tables, *(name for name in (about.like, about.partner) if name is not None))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
