"""Rows of which the log has only some columns, changed in place: the table has no unique index but its key."""

from __future__ import annotations

from collections.abc import Sequence

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.targets.mysql.rows.table_statements import TOGETHER, TableStatements
from connector.targets.operations import Value


def change_in_place(statements: TableStatements, images: Images) -> None:
    """Set the columns that the log has of each row.

    Args:
        statements: of the table.
        images: partial images that keep their keys.

    Raises:
        TargetDiffers: a row is missing, unless it may have been applied before.
    """
    updates: list[str] = []
    bases: list[tuple[Value, ...]] = []
    for values, absent, base in statements.partial_rows(images):
        present = [index for index in statements.written if index not in absent and index not in statements.key]
        assigned = present or [index for index in statements.key if index in statements.written]
        pairs = [(quoted(statements.columns[index]), statements.literal(index, values[index])) for index in assigned]
        pairs += [(name, name) for name in (quoted(statements.columns[index]) for index in statements.kept(assigned))]
        assignments = ", ".join(f"{name} = {value}" for name, value in pairs)
        update = f"UPDATE {statements.name} SET {assignments} WHERE {statements.matches(base)}"
        if labels := statements.unlabelled({index: values[index] for index in assigned}):
            _check(statements, statements.run_without_labels(update, labels, "updated"), base)
            continue
        updates.append(update)
        bases.append(base)
        if len(updates) == TOGETHER or sum(map(len, updates)) > statements.limit:
            _run(statements, updates, bases)
    _run(statements, updates, bases)


def _run(statements: TableStatements, updates: list[str], bases: list[tuple[Value, ...]]) -> None:
    if not updates:
        return
    for count, base in zip(statements.run_many(updates, "updated"), bases, strict=True):
        _check(statements, count, base)
    updates.clear()
    bases.clear()


def _check(statements: TableStatements, count: int, base: Sequence[Value]) -> None:
    if count != 1 and not statements.again:
        raise statements.missing(base)
