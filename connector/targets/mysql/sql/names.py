"""MySQL's names: a schema is a database, a table a table; names of columns have no case."""

from __future__ import annotations

from collections.abc import Iterable

from connector.ddl.syntax.tokens import quoted
from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import TableName
from connector.targets.names import OTHER_TABLE

BOOKKEEPING = "thl"
NAME_CHARACTERS = 64


class MySqlNames:
    """MySQL's rules for names.

    Args:
        folds: true if the server's tables have no case: lower_case_table_names is not 0.
    """

    def __init__(self, *, folds: bool = False) -> None:
        self._folds = folds

    def table(self, name: TableName) -> tuple[str, ...]:
        """Database and table."""
        if name.schema.lower() == BOOKKEEPING:
            raise ValueNotRepresentable(f"the database {BOOKKEEPING} is the applier's", hint=OTHER_TABLE, table=name)
        if max(map(len, name)) > NAME_CHARACTERS:  # a history's: its database has a longer name than the source's
            raise ValueNotRepresentable(
                f"MySQL has no names of more than {NAME_CHARACTERS} characters", hint=OTHER_TABLE, table=name
            )
        # Folded here, because `fold` does not know whether a name is a table's.
        return tuple(part.lower() for part in name) if self._folds else tuple(name)

    def column(self, name: str) -> str:
        """The same name."""
        return name

    def fold(self, name: str) -> str:
        """The same name: MySQL names that the source distinguishes are distinguished here, too."""
        return name

    def reserved(self, name: str) -> bool:
        """False: every name can be quoted."""
        del name
        return False


def table_name(name: TableName) -> str:
    """A table's quoted name, with its database."""
    return f"{quoted(name.schema)}.{quoted(name.table)}"


def table_condition(name: TableName) -> str:
    """The condition on rows of information_schema that are about a table."""
    return f"table_schema = {text_literal(name.schema)} AND table_name = {text_literal(name.table)}"


def own(name: str) -> str:
    """The quoted name of a table of the applier."""
    return f"{BOOKKEEPING}.{quoted(name)}"


def column_names(columns: Iterable[str]) -> str:
    """Quoted names of columns, separated by commas."""
    return ", ".join(quoted(name) for name in columns)


def text_literal(text: str) -> str:
    """A text as a literal of a session of the applier, whose sql_mode lacks NO_BACKSLASH_ESCAPES."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
