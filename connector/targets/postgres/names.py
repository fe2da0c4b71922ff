"""PostgreSQL's names of tables and columns: `schema.table`, always quoted, cut at 63 bytes as the server does."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.names import OTHER_TABLE, quoted

POSTGRES_NAME_BYTES = 63
# The system columns of every table.
POSTGRES_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})


class PostgresNames:
    """PostgreSQL's rules for names."""

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
            raise ValueNotRepresentable(f"PostgreSQL cannot store U+0000 in a name: {name!r}")
        return name.encode()[:POSTGRES_NAME_BYTES].decode(errors="ignore")

    def index(self, table: TableName, index: str) -> str:
        """The name of a table's index, which is one of its schema: shortened with a digest if it is too long."""
        name = f"{table.table}_{index}"
        if len(name.encode()) <= POSTGRES_NAME_BYTES:
            return self.column(name)
        digest = sha256(name.encode()).hexdigest()[:8]
        return f"{name.encode()[: POSTGRES_NAME_BYTES - 9].decode(errors='ignore')}_{digest}"

    def fold(self, name: str) -> str:
        """The same name: quoted names are case-sensitive."""
        return name

    def reserved(self, name: str) -> bool:
        """True for a table's system columns."""
        return name in POSTGRES_COLUMNS


NAMES = PostgresNames()


def column_name(name: str) -> str:
    """A column's quoted name."""
    return quoted(NAMES.column(name))


def table_name(name: TableName) -> str:
    """A table's quoted name, with its schema."""
    return ".".join(quoted(part) for part in NAMES.table(name))


def column_names(names: Iterable[str]) -> str:
    """Quoted names of columns, separated by commas."""
    return ", ".join(column_name(name) for name in names)
