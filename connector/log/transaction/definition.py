"""Table definitions of the source, for binary logs without column names; kept in the control topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.xa import Logged

VIEW: Final = "it is a view"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition of a table at one position of the source's log.

    Args:
        layout: its columns and key.
        charset: the default character set of its text columns.
        unknown: the reason why the definition is not known, and since which event; then it has no columns. `VIEW`: no
            table can have the name.
    """

    layout: TableLayout
    charset: str
    unknown: str = ""

    @classmethod
    def without_columns(cls, name: TableName, why: str) -> TableDefinition:
        """The definition of a table that is not known, for a reason."""
        return cls(TableLayout(name, ()), "", why)

    @property
    def name(self) -> TableName:
        """The table's name, in the case that the server compares."""
        return self.layout.name


@dataclass(frozen=True, slots=True)
class Redefined:
    """The definitions that a transaction changed. Comes after its last batch, or after the position advance.

    Args:
        tables: name → definition; None for a dropped table.
        schemas: schema → default character set; None for a dropped schema.
        renamed: new name → the name before, for tables that were renamed; not stored.
    """

    tables: Mapping[TableName, TableDefinition | None] = field(default_factory=dict)
    schemas: Mapping[str, str | None] = field(default_factory=dict)
    renamed: Mapping[TableName, TableName] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of all tables that may be captured, at one position of the source's log.

    Args:
        tables: name → definition.
        schemas: schema → default character set of its tables.
    """

    tables: Mapping[TableName, TableDefinition] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)

    def after(self, change: Redefined) -> Definitions:
        """Return the definitions after a change."""
        tables = {**self.tables, **change.tables}
        schemas = {**self.schemas, **change.schemas}
        return Definitions(
            {name: table for name, table in tables.items() if table is not None},
            {name: charset for name, charset in schemas.items() if charset is not None},
        )

    @property
    def everything(self) -> Redefined:
        """All definitions as a change."""
        return Redefined(self.tables, self.schemas)


Item = Logged | Redefined
"""An item that a reader of the source's log returns."""
