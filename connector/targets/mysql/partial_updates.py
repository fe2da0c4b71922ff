"""Rows of which the log has only some columns, changed in place: the table has no unique index but its key."""

from __future__ import annotations

from connector.log.compact.net_changes import Images
from connector.targets.mysql.names import quoted
from connector.targets.mysql.table_statements import TOGETHER, TableStatements
from connector.targets.operations import Value


def change_in_place(on: TableStatements, images: Images) -> None:
    """Set the columns that the log has of each row.

    Args:
        on: the statements of the table.
        images: partial images that keep their keys.

    Raises:
        TargetDiffers: a row is missing, unless it may have been applied before.
    """
    statements: list[str] = []
    bases: list[tuple[Value, ...]] = []
    for values, absent, base in on.partial_rows(images):
        present = [index for index in on.written if index not in absent and index not in on.key]
        assigned = present or [index for index in on.key if index in on.written]
        pairs = [(quoted(on.columns[index]), on.literal(index, values[index])) for index in assigned]
        pairs += [(name, name) for name in (quoted(on.columns[index]) for index in on.kept(absent))]
        assignments = ", ".join(f"{name} = {value}" for name, value in pairs)
        statements.append(f"UPDATE {on.name} SET {assignments} WHERE {on.matches(base)}")
        bases.append(base)
        if len(statements) == TOGETHER or sum(map(len, statements)) > on.limit:
            _run(on, statements, bases)
    _run(on, statements, bases)


def _run(on: TableStatements, statements: list[str], bases: list[tuple[Value, ...]]) -> None:
    if not statements:
        return
    for count, base in zip(on.run_many(statements, "updated"), bases, strict=True):
        if count != 1 and not on.again:
            raise on.missing(base)
    statements.clear()
    bases.clear()
