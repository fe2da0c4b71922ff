"""Replaces the names of tables and schemas in a definition by their published names.

Only the names of affected tables are replaced (`affected_tables`), each as a whole and quoted; the rest stays
unchanged, and the result is parsed again. Other names (a foreign key's other table, a view's text) have no rows of
their own in the log, and stay.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.ddl.syntax.tokens import quoted
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName


def rename_tables(
    statement: Statement, table: Callable[[TableName], TableName], schema: Callable[[str], str]
) -> Statement:
    """Return the statement with the published names of tables and schemas.

    Args:
        statement: the definition, with the source's names.
        table: returns the published name of a table.
        schema: returns the published name of a schema.

    Raises:
        Unsupported: the statement is not understood, or its names cannot be replaced.
    """
    about = affected_tables(statement)
    names = [f"{quoted(new.schema)}.{quoted(new.table)}" for new in map(table, _tables(about))]
    renamed = [table(name) != name for name in _tables(about)]
    if about.schema:
        names, renamed = [quoted(schema(about.schema))], [schema(about.schema) != about.schema]
    if not any(renamed):
        return statement
    if len(about.spans) != len(names):
        raise Unsupported("a definition does not name its schema")
    sql = statement.sql
    for (start, end), name in sorted(zip(about.spans, names, strict=True), reverse=True):
        sql = f"{sql[:start]}{name}{sql[end:]}"
    result = Statement(statement.schema, sql, statement.options)
    again = affected_tables(result)
    expected = (tuple(map(table, _tables(about))), schema(about.schema))
    if (_tables(again), again.schema) != expected:
        raise Unsupported("the names of a definition could not be replaced")
    return result


def _tables(about: AffectedTables) -> tuple[TableName, ...]:
    return (*about.tables, *(name for name in (about.like, about.partner) if name is not None))
