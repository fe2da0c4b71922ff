"""The rules of targets for names of tables and columns, as an interface, and the check that names stay different.

Two names of the source that become one name on the target are an error that names both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from connector.errors import ConfigError, ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.table import Table

OTHER_TABLE = (
    "give it another name: RENAME TABLE on the source, or publish_as in a rule of source.filters.tables for what is "
    "published from then on"
)
OTHER_COLUMN = (
    "give it another name: ALTER TABLE … RENAME COLUMN on the source, or rename in a rule of source.filters.tables for "
    "what is published from then on"
)


class TargetNames(Protocol):
    """The rules of a target for names."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """The name of a table, in its parts; raises ValueNotRepresentable for a name that the target reserves."""

    def column(self, name: str) -> str:
        """The name of a column."""

    def fold(self, name: str) -> str:
        """A form of a name that is equal for all names that the target does not distinguish."""

    def reserved(self, name: str) -> bool:
        """True if no column can have this name."""


def quoted(name: str) -> str:
    """A name in double quotes, as standard SQL has them."""
    return '"' + name.replace('"', '""') + '"'


def check_names(rules: TargetNames, tables: Iterable[Table]) -> None:
    """Check that tables, and the columns of each table, have different names on the target.

    Raises:
        ValueNotRepresentable: two names become one on the target; the error has both.
        ConfigError: a column of the source has the name of a metadata column.
    """
    taken: dict[tuple[str, ...], Table] = {}
    for table in tables:
        try:
            folded = tuple(rules.fold(part) for part in rules.table(table.name))
        except ValueNotRepresentable as error:
            error.hint = _another_name(table)
            raise
        other = taken.setdefault(folded, table)
        if other.name != table.name:
            raise ValueNotRepresentable(
                f"tables {other.name} and {table.name} have the same name on the target",
                hint=_another_name(table, other),
                table=table.name,
                other=other.name,
            )
        columns: dict[str, str] = {}
        for column in table.columns:
            if rules.reserved(rules.column(column.name)):
                raise ValueNotRepresentable(
                    "a column has a name that the target reserves",
                    hint=OTHER_COLUMN,
                    table=table.name,
                    column=column.name,
                )
            same = columns.setdefault(rules.fold(rules.column(column.name)), column.name)
            if same != column.name:
                raise ValueNotRepresentable(
                    f"columns {same} and {column.name} of {table.name} have the same name on the target",
                    hint=OTHER_COLUMN,
                    table=table.name,
                    column=column.name,
                    other=same,
                )
        for column in table.transaction:
            if (same := columns.get(rules.fold(column.name), "")) != "":
                raise ConfigError(
                    f"column {same} of {table.name} has the name of a column of target.metadata_columns",
                    hint="Give the metadata column another name in target.metadata_columns. If tables of the target "
                    "have it already: ALTER TABLE … DROP COLUMN for each, before the applier starts again.",
                    table=table.name,
                    column=column.name,
                )


def _another_name(*tables: Table) -> str:
    """The hint for names that a target cannot have."""
    without = [f"leave {table.history_of} out of target.history" for table in tables if table.history_of is not None]
    return " or ".join(without) or OTHER_TABLE
