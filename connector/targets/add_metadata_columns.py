"""Adds metadata columns to tables that were created before target.metadata_columns named them.

An added column is NULL in existing rows: the transaction that wrote them is not known. A column that is no longer
configured would show wrong transactions after the next change of its rows. The applier does not drop columns that
users may read, so it stops and names the statement that drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from connector.errors import ConfigError
from connector.log.transaction.layout import Column, TableName
from connector.targets.table import Table
from connector.targets.target_schema import Excluded, TargetSchema


@dataclass(frozen=True, slots=True)
class MissingColumns:
    """The metadata columns to add when an applier claims the target.

    Args:
        target_schema: the tables afterwards.
        tables: the tables whose definition in `thl_tables` changes.
        statements: the SQL that adds the columns.
    """

    target_schema: TargetSchema
    tables: tuple[Table, ...]
    statements: tuple[str, ...]


def missing_columns(
    tables: Collection[Table],
    configured: tuple[Column, ...],
    excluded: Mapping[TableName, Excluded],
    *,
    existing_columns: Callable[[TableName], Collection[str]],
    name: Callable[[TableName], str],
    column: Callable[[Column], tuple[str, str]],
) -> MissingColumns:
    """Compare tables with the configured metadata columns.

    Args:
        tables: as `thl_tables` has them.
        configured: the metadata columns of the configuration.
        excluded: the excluded tables; they stay as they are.
        existing_columns: the names of the columns that a table has on the target.
        name: a table's quoted name.
        column: a column's quoted name, and its type.

    Raises:
        ConfigError: a table has a metadata column that is not configured, or another column of a configured name.
    """
    statements, surplus, changed = [], [], []
    for table in tables:
        if table.transaction == configured or table.name in excluded or table.history_of is not None:
            continue
        has = existing_columns(table.name)
        surplus += [
            f"ALTER TABLE {name(table.name)} DROP COLUMN {column(old)[0]}"
            for old in table.transaction
            if old not in configured and old.name in has
        ]
        new = [one for one in configured if one not in table.transaction]
        for one in new:
            if one.name in has and not any(old.name == one.name for old in table.transaction):
                raise ConfigError(
                    f"{table.name} has a column {one.name} on the target that was not made by target.metadata_columns",
                    hint="Give the metadata column another name in target.metadata_columns.",
                    table=table.name,
                    column=one.name,
                )
        statements += [f"ALTER TABLE {name(table.name)} ADD COLUMN {' '.join(column(one))}" for one in new]
        changed.append(replace(table, transaction=configured))
    if surplus:
        raise ConfigError(
            "tables of the target have metadata columns that target.metadata_columns does not name",
            hint=f"Add them to target.metadata_columns, or drop them: {'; '.join(surplus)}",
        )
    after = {table.name: table for table in (*tables, *changed)}
    return MissingColumns(TargetSchema(after.values(), configured, excluded), tuple(changed), tuple(statements))
