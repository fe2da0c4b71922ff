"""A DDL statement of the source as operations on a target's tables. Pure: what is known is the target schema.

Three classes (docs/types.md, "DDL"): without effect on rows; applied; and everything else, which stops. A statement
is never guessed at: what is not understood to its last token is `Unsupported`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from connector.ddl.affected_tables import affected_tables
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import NotUnderstood, TableReference, stop
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme
from connector.errors import ConnectorError, TargetDiffers, Unsupported
from connector.log.ids import Seqno
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.alter import alter_indexes, alter_table, drop_key
from connector.targets.ddl.create import create_table
from connector.targets.ddl.session import Session, session_of
from connector.targets.operations import (
    CreateSchema,
    CreateTable,
    DropSchema,
    DropTable,
    Operation,
    RenameTable,
    Truncate,
)
from connector.targets.table import Table
from connector.targets.target_schema import Excluded, LoadContent, TargetSchema, go_on_without, is_refusal

WAITING = ("lock_wait_timeout", "innodb_lock_wait_timeout", "max_statement_time", "sort_buffer_size")


@dataclass(frozen=True, slots=True)
class Plan:
    """The effect of a statement on a target.

    Args:
        command: its first words, for the count of those without effect.
        operations: in order; empty if it has no effect on rows.
        target_schema: the tables after.
        histories: the operations that create what histories its tables lack, after the others.
    """

    command: str
    operations: tuple[Operation, ...]
    target_schema: TargetSchema
    histories: tuple[CreateTable, ...] = ()


def plan(statement: Statement, target_schema: TargetSchema, commit_time: int, *, by_hand: bool = False) -> Plan:
    """Plan a statement.

    Args:
        statement: the text, its default schema and its session's options.
        target_schema: the tables before.
        commit_time: µs since 1970 UTC: when it ran, unless its options tell.
        by_hand: rows are changed by hand: of interest are the definitions after it, and the operations only for
            the tables that they name.

    Raises:
        Unsupported: it is not understood, or its effect on rows cannot be known.
        TargetDiffers: the tables are not those it speaks of.
    """
    session = session_of(statement, commit_time)
    plans = [_Planner(parsed, statement, target_schema, session, by_hand=by_hand).plan() for parsed in parse(statement)]
    if any(other.operations != plans[0].operations for other in plans[1:]):
        raise Unsupported("DDL whose effect depends on the version of the server that read its /*! comments */")
    if not by_hand and replay.TEXT in statement.options and plans[0].operations:
        raise Unsupported("DDL with bytes that mean nothing in its session's character set")
    return plans[0]


def located(error: ConnectorError, seqno: int, statement: Statement, target_schema: TargetSchema) -> ConnectorError:
    """The same error with the event and the statement it is about, and the ways out of a refusal.

    Args:
        error: the refusal.
        seqno: the event's.
        statement: the refused statement.
        target_schema: the tables before it.
    """
    hint = error.hint
    tables: tuple[TableName, ...] = ()
    if is_refusal(error):
        ways = [f"do by hand on the target what the statement does, then thl apply --done-seqno {seqno} --reason …"]
        if tables := _dispensable(statement, target_schema):
            ways.append(go_on_without(*tables))
        way_out = "; ".join(ways)
        hint = f"{hint}; or {way_out}" if hint else way_out
    found = type(error)(
        error.message,
        hint=hint,
        **{**error.where, "seqno": seqno, "schema": statement.schema, "sql": statement.sql},
    )
    found.tables = tables
    return found


def _dispensable(statement: Statement, target_schema: TargetSchema) -> tuple[TableName, ...]:
    """The tables without which a statement would not stop, besides those that the applier goes on without.

    Returns:
        None of them where it stops all the same.
    """
    try:
        about = affected_tables(statement)
        names = about.tables[::2] if about.verb == "RENAME" else about.tables
        names = names[:1] if about.verb == "ALTER" else names  # the second is the name that the first gets
        names += () if about.partner is None else (about.partner,)
        left = tuple(dict.fromkeys(name for name in names if name not in target_schema.excluded))
        for name in left:
            target_schema = target_schema.excluding(name, Excluded(since=Seqno(0), at=0, by="", reason=""))
        plan(statement, target_schema, 0)
    except (Unsupported, TargetDiffers):
        return ()
    return left


class _Planner:
    """Plans one reading of a statement.

    Args:
        parsed: the reading.
        statement: the statement as the source executed it.
        target_schema: the tables before.
        session: the statement's.
        by_hand: as of `plan`.
    """

    def __init__(
        self,
        parsed: ast.ParsedStatement,
        statement: Statement,
        target_schema: TargetSchema,
        session: Session,
        *,
        by_hand: bool,
    ) -> None:
        self._parsed = parsed
        self._target_schema = target_schema
        self._session = session
        self._dialect = ServerDialect(session.mariadb, session.implicit and not by_hand)
        self._by_hand = by_hand
        self._failed = statement.options.get("error_code", "0") != "0"  # but had an effect: it is in the log

    def plan(self) -> Plan:
        """The operations, and the tables after."""
        parsed = self._parsed
        command = " ".join(token.text.upper() for token in parsed.tokens[:2] if token.kind is Lexeme.WORD)
        _check_variables(parsed.variables)
        operations, after = self._done(parsed.command)
        return Plan(command, tuple(operations), _with_loads(self._target_schema, after))

    def _done(self, command: ast.Command) -> tuple[list[Operation], TargetSchema]:
        target_schema = self._target_schema
        match command:
            case ast.OtherStatement(doubt):
                if doubt:
                    raise Unsupported(doubt)
                return [], target_schema
            case ast.ViewStatement() | ast.AlterSchemaStatement():
                return [], target_schema
            case ast.CreateIndexStatement(table, _, index, replaces):
                return alter_indexes(target_schema, table.name, lambda found: found.add(index, replaces=replaces))
            case ast.CreateSequenceStatement() | ast.AlterSequenceStatement():
                return stop("a statement that is not known")
            case ast.CreateSchemaStatement(schema, replace, _):
                if replace:
                    stop("CREATE OR REPLACE DATABASE")
                return [CreateSchema(schema.text)], target_schema
            case ast.DropSchemaStatement(schema):
                self._check_end()
                return _drop_schema(target_schema, schema.text)
            case ast.TruncateTableStatement(table):
                self._check_end()
                return [] if table.name in target_schema.excluded else [
                    Truncate(target_schema.get(table.name))
                ], target_schema
            case ast.RenameTablesStatement(pairs, _):
                return _rename(target_schema, pairs)
            case ast.DropIndexStatement(table, primary, index_name):
                if not primary or table.name in target_schema.excluded:
                    return alter_indexes(target_schema, table.name, lambda found: found.drop(index_name))
                self._check_end()
                return drop_key(target_schema, table.name)
            case ast.CreateTableStatement():
                return self._create(command)
            case ast.DropTablesStatement(_, _, sequences):
                return stop("a statement that is not known") if sequences else self._drop(command)
            case ast.AlterTableStatement():
                self._check_whole()
                return alter_table(command, target_schema, self._dialect, self._session, by_hand=self._by_hand)
            case _:
                assert_never(command)

    def _check_end(self) -> None:
        if self._parsed.rest is not None:
            self._parsed.rest.stop()

    def _check_whole(self) -> None:
        if self._failed:
            stop("a statement that failed")

    def _create(self, command: ast.CreateTableStatement) -> tuple[list[Operation], TargetSchema]:
        if self._failed and command.replace:  # MariaDB has dropped the old one
            return _dropped(self._target_schema, command.table.name)
        self._check_whole()
        if command.table.name not in self._target_schema.excluded and not isinstance(command.body, NotUnderstood):
            self._check_end()
        return create_table(command, self._target_schema, self._dialect, self._session)

    def _drop(self, command: ast.DropTablesStatement) -> tuple[list[Operation], TargetSchema]:
        """A MariaDB drops those that are there and fails for the others, and logs all of them without saying so."""
        optional = command.optional or self._dialect.mariadb
        target_schema, operations = self._target_schema, list[Operation]()
        for table in command.tables:
            if not (optional or table.name in target_schema.excluded):
                target_schema.get(table.name)
            dropped, target_schema = _dropped(target_schema, table.name)
            operations += dropped
        return operations, target_schema


def _check_variables(variables: tuple[str, ...] | NotUnderstood) -> None:
    """Make sure that SET STATEMENT … FOR changes nothing but how long something may take."""
    if isinstance(variables, NotUnderstood):
        variables.stop()
    if any(name not in WAITING for name in variables):
        stop("a SET STATEMENT of what may change its meaning")


def _drop_schema(target_schema: TargetSchema, schema: str) -> tuple[list[Operation], TargetSchema]:
    operations: list[Operation] = []
    applied = [table.name for table in target_schema.of_schema(schema)]
    for name in dict.fromkeys([*applied, *(other for other in target_schema.excluded if other.schema == schema)]):
        dropped, target_schema = _dropped(target_schema, name)
        operations += dropped
    return [*operations, DropSchema(schema)], target_schema


def _dropped(target_schema: TargetSchema, name: TableName) -> tuple[list[Operation], TargetSchema]:
    """The end of a table, if we have it; one that the applier goes on without is no longer one of these."""
    excluded, table = name in target_schema.excluded, target_schema.find(name)
    gone: list[Operation] = [] if table is None else [DropTable(table, optional=excluded)]
    after = target_schema if table is None else target_schema.without(name)
    return gone, after.including(name) if excluded else after


def _rename(
    target_schema: TargetSchema, pairs: tuple[tuple[TableReference, TableReference], ...]
) -> tuple[list[Operation], TargetSchema]:
    operations: list[Operation] = []
    for old, new in ((old.name, new.name) for old, new in pairs):
        table = target_schema.find(old)
        if new in target_schema:
            raise TargetDiffers(f"table {old} is to be renamed to {new}, which is there")
        entry = target_schema.excluded.get(old)
        if table is None and entry is None and old.schema != new.schema:
            target_schema.get(old)
        if table is not None:
            operations.append(RenameTable(table, new, optional=entry is not None))
            target_schema = target_schema.renamed(table, new)
        if entry is not None:
            target_schema = target_schema.including(old).excluding(new, entry)
        # Else it is a view, which never leaves its schema; of a table that we lack, the next row stops.
    return operations, target_schema


def _with_loads(before: TargetSchema, after: TargetSchema) -> TargetSchema:
    """The schema after a statement, in which a load has to begin again if it cannot go on with the table's new key."""
    tables = {id(entry): before.find(name) for name, entry in before.loading.items()}
    for name, entry in after.loading.items():
        old, new = tables.get(id(entry)), after.find(name)
        if old is None or new is None or (entry.state is LoadContent.NEW and new.key):
            continue
        if _key_types(old) != _key_types(new):
            after = after.with_loading(name, replace(entry, state=LoadContent.AWAITS_BEGIN, marks=""))
    return after


def _key_types(table: Table) -> list[tuple[object, ...]]:
    columns = (table.columns[index] for index in table.layout.key)
    return [(column.type, column.unsigned, column.charset) for column in columns]
