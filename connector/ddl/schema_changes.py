"""Computes the changes of a statement to the source's tables: columns, keys and character sets. Pure.

Nothing is guessed. A statement that is not understood makes its table unknown, or all tables of its schemas if even
the table is unclear. A table is known again once it was dropped and created.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from connector.ddl.alteration import Alteration, Altered, alter
from connector.ddl.column_spec import ColumnSpec
from connector.ddl.mariadb import ServerDialect, dialect_of
from connector.ddl.schema_draft import Rules, SchemaDraft
from connector.ddl.syntax import ast, clauses
from connector.ddl.syntax.ast_column import NotUnderstood, TableReference, stop
from connector.ddl.syntax.ast_table import LikeTable, TableCharset
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.type_names import TEXTS, width
from connector.ddl.table_spec import table_spec
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName

_UNITS = ("ucs2", "utf16", "utf16le", "utf32")
_WITH_CHARSET = ("char", "varchar", "enum", "set", *TEXTS)


def schema_changes(
    statement: Statement,
    known: Definitions,
    rules: Rules,
    *,
    schemas: Iterable[str],
    server_charset: str,
    position: str,
) -> Redefined:
    """Return the tables and schemas that a statement changes, as they are afterwards.

    Args:
        statement: the definition, as the source executed it.
        known: the tables before the statement.
        rules: the rules for names.
        schemas: the schemas that the statement may affect.
        server_charset: the server's default character set of schemas; "" if it is not known.
        position: file and offset of the statement, for errors.
    """
    drafts = []

    def why(error: Unsupported) -> str:
        return f"{error.message}, in {statement.sql[:500]!r} at {position}"

    try:
        for parsed in parse(statement):
            draft = SchemaDraft(known, rules, why)
            _Changes(draft, statement, server_charset).make(parsed)
            drafts.append(draft)
    except Unsupported as error:
        draft = SchemaDraft(known, rules, why)
        touched = {rules.fold(schema) for schema in schemas}
        for name in known.tables:
            if name.schema in touched:
                draft.forget(name, error)
        return draft.changes
    changes = [draft.changes for draft in drafts]
    if any(other != changes[0] for other in changes[1:]):
        unsure = Unsupported("DDL whose effect depends on the version of the server that read its /*! comments */")
        for other in changes:
            for name in other.tables:
                drafts[0].forget(name, unsure)
            for schema in other.schemas:
                drafts[0].put_schema(schema, "")
    return drafts[0].changes


class _Structure:
    """The effect of ALTER TABLE's clauses on columns alone: a `Meaning` without rows."""

    def __init__(self, dialect: ServerDialect) -> None:
        self._dialect = dialect

    def added(self, spec: ColumnSpec) -> None:
        _check(spec)

    def changed(self, item: Altered[None], spec: ColumnSpec) -> None:
        del item
        _check(spec)

    def converted(self, texts: list[Altered[None]], charset: str) -> None:
        """Convert columns; a TEXT grows so that it still holds as many characters."""
        if charset == "binary":
            stop("a conversion of text to bytes")
        for item in texts:
            kind = item.column.type
            labels = item.column.labels
            strange = item.column.charset in _UNITS or (self._dialect.mariadb and charset in _UNITS)
            if labels and (strange or not all(label.isascii() for label in labels)):
                stop("a conversion of ENUM or SET labels that MySQL changes")
            if kind in TEXTS:
                room = TEXTS[kind] // width(item.column.charset) * width(charset)
                grown = next((name for name, size in TEXTS.items() if room <= size), "longtext")
                item.column = replace(item.column, type=grown)

    def partition_dropped(self) -> None:
        pass


class _Changes:
    """Applies one reading of a statement to a draft."""

    def __init__(self, draft: SchemaDraft, statement: Statement, server_charset: str) -> None:
        self._draft = draft
        self._dialect = dialect_of(statement)
        self._schema = statement.schema
        self._server_charset = server_charset
        self._failed = statement.options.get("error_code", "0") != "0"  # it is in the log, so it had an effect

    def make(self, parsed: ast.ParsedStatement) -> None:
        """Apply the statement to the draft.

        Raises:
            Unsupported: the changed tables are not known.
        """
        command = parsed.command
        match command:
            case (
                ast.OtherStatement()
                | ast.TruncateTableStatement()
                | ast.CreateIndexStatement()
                | ast.AlterSequenceStatement()
            ):
                pass
            case ast.ViewStatement(views, dropped):
                for view in views:
                    self._follow_view(self._name(view), dropped=dropped)
            case ast.CreateSchemaStatement():
                self._create_schema(command)
            case ast.AlterSchemaStatement(schema, options):
                name = self._schema if schema is None else schema.text
                self._put_schema(name, options, self._draft.charset(name))
            case ast.DropSchemaStatement(schema):
                self._draft.drop_schema(schema.text)
            case ast.CreateTableStatement():
                self._create(command, parsed.rest)
            case ast.AlterTableStatement():
                self._alter(command)
            case ast.DropTablesStatement(tables, _, _):
                for table in tables:
                    if self._draft.find(self._name(table)) is not None:
                        self._draft.drop(self._name(table))
            case ast.RenameTablesStatement():
                self._rename(command)
            case ast.DropIndexStatement(table, primary):
                self._drop_index(table, primary=primary)
            case ast.CreateSequenceStatement(table, optional):
                name_ = self._name(table)
                if not (optional and self._draft.find(name_) is not None):
                    self._draft.forget(name_, Unsupported("a sequence"))
            case _:
                assert_never(command)

    def _name(self, table: TableReference) -> TableName:
        return self._draft.named(table.name)

    def _whole(self) -> None:
        """Stop if the statement failed: it may have been executed in part."""
        if self._failed:
            stop("a statement that failed")

    def _rename(self, command: ast.RenameTablesStatement) -> None:
        self._whole()
        for old, new in command.pairs:
            name = self._name(old)
            if not command.optional or self._draft.find(name) is not None:
                self._move(name, self._name(new))

    def _move(self, old: TableName, new: TableName) -> None:
        """Rename a table; one that is not known is not captured."""
        table = self._draft.find(old)
        if table is None:
            if self._draft.find(new) is not None:
                self._draft.drop(new)
            return
        if self._dialect.mariadb and self._draft.find(new) is not None:
            # MariaDB also logs the RENAME of a temporary table, which may have the name of another table.
            ambiguous = Unsupported("RENAME to the name of an existing table")
            self._draft.forget(old, ambiguous)
            self._draft.forget(new, ambiguous)
            return
        self._draft.drop(old)
        self._draft.rename(table, old, new)

    def _follow_view(self, name: TableName, *, dropped: bool) -> None:
        """Follow a view that is made or changed, or dropped."""
        found = self._draft.find(name)
        if found is None and not dropped:
            self._draft.put_view(name)
        elif found is not None and found.unknown and dropped:  # before 8.0 a DROP VIEW may fail at the name of a table
            self._draft.drop(name)

    def _drop_index(self, name: TableReference, *, primary: bool) -> None:
        table = self._draft.find(self._name(name))
        if primary and table is not None:
            self._draft.put(replace(table, layout=replace(table.layout, key=())))

    def _create_schema(self, command: ast.CreateSchemaStatement) -> None:
        schema = command.schema.text
        if command.replace:
            self._draft.drop_schema(schema)
        if not self._draft.has_schema(schema):  # else IF NOT EXISTS has no effect
            self._put_schema(schema, command.options, self._server_charset)

    def _put_schema(self, schema: str, options: ast.SchemaOptions | NotUnderstood, charset: str) -> None:
        """Define a schema; its character set is unknown from here on if the statement is not understood, or failed."""
        charset = "" if isinstance(options, NotUnderstood) or self._failed else options.charset or charset
        self._draft.put_schema(schema, charset)

    def _create(self, command: ast.CreateTableStatement, rest: NotUnderstood | None) -> None:
        draft, name, body = self._draft, self._name(command.table), command.body
        if command.replace and self._failed:  # MariaDB has dropped the old one
            draft.drop(name)
            return
        if command.optional and draft.find(name) is not None:
            return
        try:
            self._whole()
            if isinstance(body, LikeTable):
                if rest is not None:
                    rest.stop()
                table = draft.find(self._name(body.table))
                if table is None:
                    stop(f"table {self._name(body.table)} is not known")
                draft.put(table, name)
                return
            found = table_spec(body, self._dialect, draft.charset(name.schema))
            for spec in found.specs:
                _check(spec)
            draft.put(_definition(name, [spec.column for spec in found.specs], found.key, found.charset))
        except Unsupported as error:
            draft.forget(name, error)

    def _alter(self, command: ast.AlterTableStatement) -> None:
        draft, name = self._draft, self._name(command.table)
        table = draft.find(name)
        if table is None or table.unknown:
            return
        state = Alteration[None](
            name=name,
            columns=[Altered(column, column.name, None) for column in table.layout.columns],
            charset=table.charset,
            dialect=self._dialect,
            meaning=_Structure(self._dialect),
        )
        try:
            self._whole()
            if self._dialect.mariadb:
                _check_conversion(command, "MariaDB")
            elif draft.old:
                _check_conversion(command, "a MySQL before 8.0")
            alter(command, state, lambda: None)
            if draft.old and _conversions(command) and state.charset != table.charset:
                _check_converted(table, state.charset)
            columns = table.layout.columns
            key = state.key_after(columns[index].name for index in table.layout.key)
            draft.put(_definition(name, [item.column for item in state.columns], key, state.charset))
        except Unsupported as error:
            draft.forget(name, error)
            return
        if state.rename is not None:
            new = draft.named(state.rename)
            if new != name:
                self._move(name, new)


def _conversions(command: ast.AlterTableStatement) -> int:
    return sum(isinstance(clause, clauses.ConvertCharset) for clause in command.clauses)


def _check_conversion(command: ast.AlterTableStatement, server: str) -> None:
    """Refuse CONVERT TO beside column definitions or table options for the character set.

    CONVERT TO also converts columns that the same ALTER TABLE defines, even with a character set of their own; and
    either of the two character sets can become the table's. MySQL before 8.0 and MariaDB do this.
    """
    if not _conversions(command):
        return
    if any(map(clauses.items_of, command.clauses)):
        stop(f"CONVERT TO beside definitions of columns, which {server} converts, too")
    if _conversions(command) > 1 or any(isinstance(clause, TableCharset) for clause in command.clauses):
        stop("CONVERT TO beside another character set of the table")


def _check(spec: ColumnSpec) -> None:
    column = spec.column
    if column.base in _WITH_CHARSET and not column.charset:
        raise Unsupported(f"the character set of column {column.name} is unknown")


def _check_converted(table: TableDefinition, charset: str) -> None:
    """Refuse a conversion without effect on columns: MySQL before 8.0 then keeps the table's own character set, too."""
    if all(column.charset in {"", "binary", charset} for column in table.layout.columns):
        stop("CONVERT TO that changes no column, which MySQL before 8.0 may ignore")


def _definition(name: TableName, columns: list[Column], key: Iterable[str], charset: str) -> TableDefinition:
    """Return a table's definition; the columns of its key are NOT NULL."""
    index_of = {column.name.casefold(): index for index, column in enumerate(columns)}
    indexes = tuple(index_of[part.casefold()] for part in key)
    whole = tuple(replace(c, nullable=False) if index in indexes else c for index, c in enumerate(columns))
    return TableDefinition(TableLayout(name, whole, indexes), charset)
