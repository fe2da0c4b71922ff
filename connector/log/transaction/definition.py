"""The source's tables, for a log that does not name its columns: kept by the producer, in the control topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.xa import Logged


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as it is at some place of the source's log.

    Args:
        layout: its columns and key.
        charset: what text columns get that name none.
        unknown: why it is not known what the table is, and since where; then it has no columns.
    """

    layout: TableLayout
    charset: str
    unknown: str = ""

    @property
    def name(self) -> TableName:
        """Its name, as the server compares names."""
        return self.layout.name


@dataclass(frozen=True, slots=True)
class Redefined:
    """The definitions that the transaction before it has changed; follows its last batch, or the position advance.

    Args:
        tables: by name; None: there is no such table.
        schemas: their character sets; None: there is no such schema.
    """

    tables: Mapping[TableName, TableDefinition | None] = field(default_factory=dict)
    schemas: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definitions:
    """Every table that can be for us, at one place of the source's log.

    Args:
        tables: by name.
        schemas: what their tables get as character set that name none.
    """

    tables: Mapping[TableName, TableDefinition] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)

    def after(self, change: Redefined) -> Definitions:
        """With what has changed."""
        tables = {**self.tables, **change.tables}
        schemas = {**self.schemas, **change.schemas}
        return Definitions(
            {name: table for name, table in tables.items() if table is not None},
            {name: charset for name, charset in schemas.items() if charset is not None},
        )

    @property
    def everything(self) -> Redefined:
        """All of it as a change."""
        return Redefined(self.tables, self.schemas)


Item = Logged | Redefined
"""What a source's log is read as."""
