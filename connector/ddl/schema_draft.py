"""The source's tables while a statement changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from connector.errors import Unsupported
from connector.log.transaction.definition import VIEW, Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True)
class Rules:
    """The server's and the configuration's rules for names.

    Args:
        fold: normalises names of schemas and tables as the server compares them.
        captures_schema: true if tables of this schema can be captured; other schemas are not kept.
        old: true for a MySQL before 8.0.
    """

    fold: Callable[[str], str]
    captures_schema: Callable[[str], bool]
    old: bool = False


class SchemaDraft:
    """The tables before a statement, and the changes that it makes to them."""

    def __init__(self, known: Definitions, rules: Rules, why: Callable[[Unsupported], str]) -> None:
        self._known = known
        self._rules = rules
        self._why = why
        self._tables: dict[TableName, TableDefinition | None] = {}
        self._schemas: dict[str, str | None] = {}
        self._renamed: dict[TableName, TableName] = {}

    @property
    def old(self) -> bool:
        """True for a MySQL before 8.0."""
        return self._rules.old

    @property
    def changes(self) -> Redefined:
        """Return the changed tables and schemas."""
        return Redefined(
            {name: table for name, table in self._tables.items() if table != self._known.tables.get(name)},
            {name: charset for name, charset in self._schemas.items() if charset != self._known.schemas.get(name)},
            {new: old for new, old in self._renamed.items() if new != old},
        )

    def named(self, name: TableName) -> TableName:
        """Return a name as the server compares it."""
        return TableName(self._rules.fold(name.schema), self._rules.fold(name.table))

    def find(self, name: TableName) -> TableDefinition | None:
        """Return the table of this name; None if there is none."""
        return self._tables[name] if name in self._tables else self._known.tables.get(name)

    def put(self, table: TableDefinition, name: TableName | None = None) -> None:
        """Define a table, under another name if one is given."""
        name = name or table.name
        if self._rules.captures_schema(name.schema):
            self._tables[name] = replace(table, layout=replace(table.layout, name=name))

    def rename(self, table: TableDefinition, old: TableName, new: TableName) -> None:
        """Rename a table."""
        self.put(table, new)
        self._renamed[new] = self._renamed.pop(old, old)

    def drop(self, name: TableName) -> None:
        """Drop a table."""
        self._tables[name] = None

    def forget(self, name: TableName, error: Unsupported) -> None:
        """Make a table unknown, with the reason."""
        self.put(TableDefinition.without_columns(name, self._why(error)))

    def put_view(self, name: TableName) -> None:
        """Define a view."""
        self.put(TableDefinition.without_columns(name, VIEW))

    def charset(self, schema: str) -> str:
        """Return the character set of a schema; "" for an unknown one."""
        schema = self._rules.fold(schema)
        return (self._schemas[schema] if schema in self._schemas else self._known.schemas.get(schema)) or ""

    def has_schema(self, schema: str) -> bool:
        """True if a schema of this name is known; its character set may not be."""
        schema = self._rules.fold(schema)
        return (self._schemas[schema] if schema in self._schemas else self._known.schemas.get(schema)) is not None

    def put_schema(self, schema: str, charset: str) -> None:
        """Define a schema."""
        if self._rules.captures_schema(schema):
            self._schemas[self._rules.fold(schema)] = charset

    def drop_schema(self, schema: str) -> None:
        """Drop a schema with its tables."""
        schema = self._rules.fold(schema)
        self._schemas[schema] = None
        for name in {*self._known.tables, *self._tables}:
            if name.schema == schema:
                self.drop(name)
