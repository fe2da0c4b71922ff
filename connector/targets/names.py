"""What the source's tables and columns are called on a target, and the names that cannot stand beside each other.

PostgreSQL: `schema.table` as it is, always quoted, cut at 63 bytes as the server cuts. SQLite: one table called
`schema.table`, dot included; ASCII letters of either case are the same there. Two names of the source that would be
one on the target are refused with both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from connector.errors import ConfigError, ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.table import Table

POSTGRES_NAME_BYTES = 63
# Each table has these without being told so.
POSTGRES_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})

OTHER_TABLE = (
    "give it another name: RENAME TABLE on the source, or publish_as in a rule of source.filters.tables for what is "
    "published from then on"
)
OTHER_COLUMN = (
    "give it another name: ALTER TABLE … RENAME COLUMN on the source, or rename in a rule of source.filters.tables for "
    "what is published from then on"
)


class Naming(Protocol):
    """How a target names things."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """What a table is called; raises ValueNotRepresentable for a name that the target keeps for itself."""

    def column(self, name: str) -> str:
        """What a column is called."""

    def fold(self, name: str) -> str:
        """What the target takes for the same name."""

    def reserved(self, name: str) -> bool:
        """Whether no column of a table can be called so."""


class SqliteNaming:
    """SQLite's."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """`("schema.table",)`."""
        text = str(name)
        # Cannot be equal to a name of the bookkeeping: those have no dot.
        if self.fold(text).startswith("sqlite_"):
            raise ValueNotRepresentable(f"SQLite reserves names like {text}", hint=OTHER_TABLE)
        return (text,)

    def column(self, name: str) -> str:
        """As it is."""
        return name

    def fold(self, name: str) -> str:
        """ASCII letters have no case."""
        return "".join(letter.lower() if letter.isascii() else letter for letter in name)

    def reserved(self, name: str) -> bool:
        """None is: a table without a key may have a column called rowid (`sqlite_rows.rowid_name`)."""
        del name
        return False


class PostgresNaming:
    """PostgreSQL's."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """`("schema", "table")`."""
        schema, table = self.column(name.schema), self.column(name.table)
        if schema.startswith("pg_") or schema in ("information_schema", "thl"):
            raise ValueNotRepresentable(
                f"schema {schema} is reserved by PostgreSQL or the connector (table {name})", hint=OTHER_TABLE
            )
        return schema, table

    def column(self, name: str) -> str:
        """Cut at 63 bytes, between characters."""
        if "\0" in name:
            raise ValueNotRepresentable(f"PostgreSQL has no name with U+0000: {name!r}")
        return name.encode()[:POSTGRES_NAME_BYTES].decode(errors="ignore")

    def fold(self, name: str) -> str:
        """Quoted names keep their case."""
        return name

    def reserved(self, name: str) -> bool:
        """A table's system columns."""
        return name in POSTGRES_COLUMNS


def check_names(naming: Naming, tables: Iterable[Table]) -> None:
    """Refuse tables, and columns of one table, that would have one name on the target.

    Raises:
        ValueNotRepresentable: with both names.
        ConfigError: a column of the source is called as one of the transaction's.
    """
    taken: dict[tuple[str, ...], TableName] = {}
    for table in tables:
        place = tuple(naming.fold(part) for part in naming.table(table.name))
        other = taken.setdefault(place, table.name)
        if other != table.name:
            raise ValueNotRepresentable(
                f"tables {other} and {table.name} would be one table on the target", hint=OTHER_TABLE
            )
        columns: dict[str, str] = {}
        for column in table.columns:
            if naming.reserved(naming.column(column.name)):
                raise ValueNotRepresentable(
                    f"no column of a target's table can be called {column.name}, as one of {table.name} is",
                    hint=OTHER_COLUMN,
                    table=table.name,
                )
            same = columns.setdefault(naming.fold(naming.column(column.name)), column.name)
            if same != column.name:
                raise ValueNotRepresentable(
                    f"columns {same} and {column.name} of {table.name} would be one column on the target",
                    hint=OTHER_COLUMN,
                    table=table.name,
                )
        for column in table.transaction:
            if (same := columns.get(naming.fold(column.name), "")) != "":
                raise ConfigError(
                    f"column {same} of {table.name} has the name of a column of target.metadata_columns",
                    hint="Give that one another name. Where tables have it already, in the target too: "
                    "ALTER TABLE … DROP COLUMN for each, before the applier begins with the new name.",
                )
