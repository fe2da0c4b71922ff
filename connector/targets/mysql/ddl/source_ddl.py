"""The source's DDL as the source executed it: its text, under the settings of its session (`target.definitions`).

What the applier's plan of a statement (`targets.ddl.plan`) has no operations for is executed, too, if it changes a
table of the target: indexes, foreign keys, checks, comments. DROP, RENAME and TRUNCATE are generated from the plan,
without tables that a user has dropped. `statement_text` changes what a text says of storage engines and algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from connector.ddl.mariadb import implicit_timestamps
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_table import LikeTable
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Token, quoted
from connector.errors import Unsupported
from connector.log.compact.net_changes import Ddl
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.mysql.values.session_names import sql_mode_names
from connector.targets.ddl.plan import plan
from connector.targets.ddl.session import zone_of
from connector.targets.mysql.ddl.operations import (
    DdlStep,
    Effect,
    check_charset,
    check_values,
    effect_of,
    has_schema,
    refuse_foreign,
    schema_step,
    steps_of,
)
from connector.targets.mysql.ddl.other_statement import TriggerStatement, temporary_table_of, trigger_of
from connector.targets.mysql.ddl.statement_text import executed_text
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import table_name, text_literal
from connector.targets.mysql.sql.types import mysql_type
from connector.targets.operations import AlterTable, CreateTable, DropTable, Operation, RenameTable
from connector.targets.target_schema import TargetSchema

# Modes that change what a text means, what a definition may have, or what a change does. Servers refuse the names of
# modes that are gone.
MODES: Final = frozenset(
    (
        *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "NO_UNSIGNED_SUBTRACTION"),
        *("NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE"),
        *("ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "HIGH_NOT_PRECEDENCE", "PAD_CHAR_TO_FULL_LENGTH"),
        *("TIME_TRUNCATE_FRACTIONAL", "NO_AUTO_VALUE_ON_ZERO"),
    )
)
_COLLATIONS: Final = ("collation_connection", "collation_server")
_UTF8MB4: Final = "default_collation_for_utf8mb4"
_BEFORE_8: Final = "45"  # utf8mb4_general_ci
_BARE_UTF8MB4: Final = re.compile(r"(?:CHARSET|CHARACTER SET)\s*=?\s*utf8mb4\b(?!\s*COLLATE)", re.IGNORECASE)
Needed = Callable[[ServerSession], bool]


@dataclass(frozen=True, slots=True)
class PlannedDdl:
    """A statement with its plan.

    Args:
        operations: of the plan.
        statement: as the source executed it; None: the target has the operations alone.
        before: the tables before.
        commit_time: µs since 1970 UTC: when it ran, unless its options tell.
    """

    operations: tuple[Operation, ...]
    statement: Statement | None
    before: TargetSchema
    commit_time: int = 0


def definition(name: TableName, ddl: Ddl, schema: TargetSchema) -> Iterator[PlannedDdl]:
    """The statements that make a table whose load begins, each with its plan; one that is there is dropped.

    Args:
        name: the table.
        ddl: the event with its definition.
        schema: the tables before.
    """
    known = schema.find(name)
    if known is not None:
        yield PlannedDdl((DropTable(known, optional=True),), None, schema)
    schema = schema.without(name).including(name)
    for statement in ddl.statements:
        found = plan(statement, schema, ddl.commit_time)
        yield PlannedDdl(found.operations, statement, schema, ddl.commit_time)
        schema = found.target_schema


def source_steps(
    planned: PlannedDdl,
    session: ServerSession,
    existed: Callable[[TableName], bool] | None = None,
    *,
    executes_statements: bool = False,
) -> list[DdlStep]:
    """The statements to execute for a statement of the source.

    Args:
        planned: the statement, and its plan.
        session: the applier's.
        existed: as of `steps_of`.
        executes_statements: true: the target executes changes that were logged as statements, and so needs the
            source's triggers.

    Raises:
        Unsupported: a temporary table of the source hides a table, so changes of the one cannot be told from those of
            the other.
    """
    statement = planned.statement
    if statement is None:
        return steps_of(planned.operations, session, existed)
    parsed = parse(statement)[0]
    match parsed.command:
        case ast.CreateTableStatement():
            return _create(parsed, planned, session)
        case ast.AlterTableStatement(table) | ast.CreateIndexStatement(table) | ast.DropIndexStatement(table):
            if table.name in planned.before.excluded or planned.before.find(table.name) is None:
                return steps_of(planned.operations, session, existed)
            return [_alter(parsed, planned, statement, table.name, session)]
        case ast.CreateSchemaStatement(schema):
            name = schema.text  # the first of its tables may have brought it
            return [_of_schema(parsed, planned, statement, session, lambda server: not has_schema(server, name))]
        case ast.AlterSchemaStatement(schema, ast.SchemaOptions(charset)) if charset:
            altered = statement.schema if schema is None else schema.text
            return [_of_schema(parsed, planned, statement, session, lambda server: has_schema(server, altered))]
        case ast.OtherStatement() | ast.ViewStatement() if executes_statements:
            return _other(parsed.tokens, planned, statement, session)
        case _:
            return steps_of(planned.operations, session, existed)


def _other(tokens: Sequence[Token], planned: PlannedDdl, statement: Statement, session: ServerSession) -> list[DdlStep]:
    hidden = temporary_table_of(tokens, statement.schema)
    if hidden is not None and planned.before.find(hidden) is not None:
        raise Unsupported(
            f"a temporary table of the source has the name of the table {hidden}: which of them changes is not known",
            hint="give it another name, or SET binlog_format = 'ROW' in the sessions that create it",
        )
    found = trigger_of(tokens, statement.schema)
    return [] if found is None else [_of_trigger(found, planned, statement, session)]


def _of_trigger(found: TriggerStatement, planned: PlannedDdl, statement: Statement, session: ServerSession) -> DdlStep:
    name = found.name
    where = f"trigger_schema = {text_literal(name.schema)} AND trigger_name = {text_literal(name.table)}"

    def needed(server: ServerSession) -> bool:
        exists = bool(server.rows(f"SELECT 1 FROM information_schema.triggers WHERE {where}"))
        known = found.on is None or planned.before.find(found.on) is not None
        return known and exists is not found.creates

    return DdlStep(
        executed_text(statement),
        Effect.REPEATABLE,
        needed=needed,
        settings=_settings(statement, planned.commit_time, session),
        database=statement.schema,
    )


def _create(parsed: ast.ParsedStatement, planned: PlannedDdl, session: ServerSession) -> list[DdlStep]:
    created = [operation.table for operation in planned.operations if isinstance(operation, CreateTable)]
    if not created or planned.statement is None or not isinstance(parsed.command, ast.CreateTableStatement):
        return steps_of(planned.operations, session)
    (table,) = created
    name = table.name
    replaced = any(isinstance(operation, DropTable) for operation in planned.operations)
    charset = planned.statement.options.get(replay.SCHEMA_CHARSET, "")

    def check(server: ServerSession) -> None:
        check_charset(server, name.schema, charset)
        if not replaced:
            refuse_foreign(server, name)

    step = DdlStep(
        executed_text(planned.statement, parsed),
        Effect.ALTER if replaced else Effect.CREATE,
        (name,),
        check,
        settings=_settings(planned.statement, planned.commit_time, session),
        database=planned.statement.schema,
    )
    schemas = dict.fromkeys(filter(None, (planned.statement.schema, name.schema)))
    found = [schema_step(one, charset if one == name.schema else "") for one in schemas]
    found.append(step)
    if table.transaction and not isinstance(parsed.command.body, LikeTable):
        added = ", ".join(
            f"ADD COLUMN {quoted(column.name)} {mysql_type(column, mariadb=session.mariadb)} NULL"
            for column in table.transaction
        )
        found.append(DdlStep(f"ALTER TABLE {table_name(name)} {added}", Effect.ALTER, (name,)))
    return found


def _alter(
    parsed: ast.ParsedStatement, planned: PlannedDdl, statement: Statement, name: TableName, session: ServerSession
) -> DdlStep:
    changes = [operation for operation in planned.operations if isinstance(operation, AlterTable)]
    renamed = [operation.name for operation in planned.operations if isinstance(operation, RenameTable)]
    effect = Effect.MOVE if renamed else effect_of(changes[0]) if changes else Effect.ALTER

    def check(server: ServerSession) -> None:
        for change in changes:
            check_values(server, change)

    return DdlStep(
        executed_text(statement, parsed),
        effect,
        (name, *renamed),
        check,
        settings=_settings(statement, planned.commit_time, session),
        database=statement.schema,
    )


def _of_schema(
    parsed: ast.ParsedStatement, planned: PlannedDdl, statement: Statement, session: ServerSession, needed: Needed
) -> DdlStep:
    return DdlStep(
        executed_text(statement, parsed),
        Effect.REPEATABLE,
        needed=needed,
        settings=_settings(statement, planned.commit_time, session),
        database=statement.schema,
    )


def _settings(statement: Statement, commit_time: int, session: ServerSession) -> tuple[str, ...]:
    """The assignments that make a session that of the statement."""
    options = statement.options
    logged = options.get("sql_mode", "")
    named = sql_mode_names(int(logged)) if logged.isdecimal() else logged.upper()
    modes = [mode for mode in named.split(",") if mode in MODES]
    found = [f"sql_mode = {text_literal(','.join(['NO_ENGINE_SUBSTITUTION', *modes]))}"]
    zone = options.get("time_zone", "")
    if zone_of(zone) is not None:
        found.append(f"time_zone = {text_literal(zone)}")
    found.append(f"timestamp = {options.get('timestamp') or f'{commit_time // 10**6}.{commit_time % 10**6:06}'}")
    charset = options.get(replay.CHARSET, "")
    if charset and isinstance(executed_text(statement), bytes):
        found.append(f"character_set_client = {charset}")
    found += [f"{name} = {int(options[name])}" for name in _COLLATIONS if options.get(name, "").isdigit()]
    return (*found, *_of_target(statement, session))


def _of_target(statement: Statement, session: ServerSession) -> Iterator[str]:
    """Assignments that need a privilege, of what the target has otherwise and the statement depends on."""
    explicit = not implicit_timestamps(statement)
    if session.explicit_timestamps != explicit and "TIMESTAMP" in statement.sql.upper():
        yield f"explicit_defaults_for_timestamp = {int(explicit)}"
    collation = statement.options.get(_UTF8MB4, "")
    if not collation.isdigit() and _BARE_UTF8MB4.search(statement.sql):
        collation = _BEFORE_8  # later sources log the variable, and their definitions name each collation
    if session.utf8mb4_collation is not None and collation.isdigit() and int(collation) != session.utf8mb4_collation:
        yield f"{_UTF8MB4} = {int(collation)}"
