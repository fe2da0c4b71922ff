"""Tables that were made before target.metadata_columns became what it is: they get what they lack.

A column that is added is NULL in the rows that are there: which transaction wrote them, nobody noted. One that is
configured no longer would keep telling old transactions of rows that others have changed since, and to drop it is not
for us: so it stops the applier until somebody has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from connector.errors import ConfigError
from connector.log.transaction.layout import Column, TableName
from connector.targets.table import Table
from connector.targets.target_schema import Excluded, TargetSchema


@dataclass(frozen=True, slots=True)
class Adopted:
    """What is to be done when the target is claimed.

    Args:
        catalog: the tables afterwards.
        tables: those whose record changes.
        statements: what adds columns to them.
    """

    catalog: TargetSchema
    tables: tuple[Table, ...]
    statements: tuple[str, ...]


def adopted(
    tables: Collection[Table],
    wanted: tuple[Column, ...],
    excluded: Mapping[TableName, Excluded],
    *,
    there: Callable[[TableName], Collection[str]],
    name: Callable[[TableName], str],
    column: Callable[[Column], tuple[str, str]],
) -> Adopted:
    """Compare tables with the columns of the transaction that they are to have.

    Args:
        tables: as the target's record has them.
        wanted: what is configured.
        excluded: those that the applier goes on without: they stay as they are.
        there: the names of the columns that a table of the target has.
        name: a table's quoted name.
        column: a column's quoted name, and its type.

    Raises:
        ConfigError: a table has such a column that is not configured, or has one of that name that we did not make.
    """
    statements, surplus, changed = [], [], []
    for table in tables:
        if table.transaction == wanted or table.name in excluded:
            continue
        has = there(table.name)
        surplus += [
            f"ALTER TABLE {name(table.name)} DROP COLUMN {column(old)[0]}"
            for old in table.transaction
            if old not in wanted and old.name in has
        ]
        new = [one for one in wanted if one not in table.transaction]
        for one in new:
            if one.name in has and not any(old.name == one.name for old in table.transaction):
                raise ConfigError(
                    f"{table.name} has a column {one.name} on the target that was not made by target.metadata_columns",
                    hint="Give the transaction's column another name.",
                )
        statements += [f"ALTER TABLE {name(table.name)} ADD COLUMN {' '.join(column(one))}" for one in new]
        changed.append(replace(table, transaction=wanted))
    if surplus:
        raise ConfigError(
            "tables of the target have columns of the transaction that target.metadata_columns does not name",
            hint=f"Name them there, or drop them: {'; '.join(surplus)}",
        )
    after = {table.name: table for table in (*tables, *changed)}
    return Adopted(TargetSchema(after.values(), wanted, excluded), tuple(changed), tuple(statements))
