"""SQLite's names: one table named `schema.table`, with the dot; the case of ASCII letters makes no difference."""

from __future__ import annotations

from collections.abc import Sequence

from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.names import OTHER_TABLE, quoted


class SqliteNames:
    """SQLite's rules for names."""

    def table(self, name: TableName) -> tuple[str, ...]:
        """`("schema.table",)`."""
        text = str(name)
        # The bookkeeping's tables have no dot in their names, so there is no collision.
        if self.fold(text).startswith("sqlite_"):
            raise ValueNotRepresentable(f"SQLite reserves names like {text}", hint=OTHER_TABLE)
        return (text,)

    def column(self, name: str) -> str:
        """The same name."""
        return name

    def fold(self, name: str) -> str:
        """The name with ASCII letters in lower case."""
        return "".join(letter.lower() if letter.isascii() else letter for letter in name)

    def reserved(self, name: str) -> bool:
        """False: even a table without a key may have a column named rowid (see `sqlite.rows.rowid_name`)."""
        del name
        return False


def table_name(name: TableName) -> str:
    """A table's quoted name."""
    return quoted(*SqliteNames().table(name))


def column_names(columns: Sequence[str]) -> str:
    """Quoted names of columns, separated by commas."""
    return ", ".join(quoted(name) for name in columns)
