"""DuckDB's names: `schema.table`, always quoted; the case of ASCII letters makes no difference.

Statements name the catalogue, too, which DuckDB calls like the file: a schema of the same name would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable

from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.names import OTHER_TABLE, quoted

_RESERVED = ("information_schema", "pg_catalog", "thl")


class DuckDbNames:
    """DuckDB's rules for names."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """`("schema", "table")`."""
        if self.fold(name.schema) in _RESERVED:
            raise ValueNotRepresentable(
                f"schema {name.schema} is reserved by DuckDB or the connector (table {name})", hint=OTHER_TABLE
            )
        return name.schema, name.table

    def column(self, name: str) -> str:
        """The same name."""
        return name

    def fold(self, name: str) -> str:
        """The name with ASCII letters in lower case."""
        return "".join(letter.lower() if letter.isascii() else letter for letter in name)

    def reserved(self, name: str) -> bool:
        """False: any name can be quoted."""
        del name
        return False


NAMES = DuckDbNames()


def schema_name(catalog: str, schema: str) -> str:
    """A schema's quoted name, with the catalogue."""
    return f"{quoted(catalog)}.{quoted(NAMES.table(TableName(schema, ''))[0])}"


def table_name(catalog: str, name: TableName) -> str:
    """A table's quoted name, with catalogue and schema."""
    return ".".join(quoted(part) for part in (catalog, *NAMES.table(name)))


def column_names(columns: Iterable[str]) -> str:
    """Quoted names of columns, separated by commas."""
    return ", ".join(quoted(name) for name in columns)
