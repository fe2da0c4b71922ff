"""A DDL statement of the source as operations on a target's tables. Pure: what is known is the catalogue.

Three classes (docs/types.md, "DDL"): without effect on rows; applied; and everything else, which stops. A statement
is never guessed at: what is not understood to its last token is `Unsupported`.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.mariadb import pass_patience
from connector.ddl.reader import Reader
from connector.ddl.statements import ACCOUNTS, MAINTENANCE, ROWLESS, pass_definer
from connector.ddl.subjects import subjects
from connector.ddl.tokens import Lexeme, Token, readings
from connector.errors import ConnectorError, TargetDiffers, Unsupported, ValueNotRepresentable
from connector.log.ids import Seqno
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.alter import alter_table, drop_key
from connector.targets.ddl.create import create_table
from connector.targets.ddl.session import Session, session_of
from connector.targets.operations import CreateSchema, DropSchema, DropTable, Operation, RenameTable, Truncate
from connector.targets.target_schema import Excluded, TargetSchema, go_on_without

WAITING = ("lock_wait_timeout", "innodb_lock_wait_timeout", "max_statement_time", "sort_buffer_size")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a statement does.

    Args:
        command: its first words, for the count of those without effect.
        operations: in order; empty if it has no effect on rows.
        catalog: the tables after.
    """

    command: str
    operations: tuple[Operation, ...]
    catalog: TargetSchema


def plan(statement: Statement, catalog: TargetSchema, commit_time: int, *, by_hand: bool = False) -> Plan:
    """Understand a statement.

    Args:
        statement: the text, its default schema and its session's options.
        catalog: the tables before.
        commit_time: µs since 1970 UTC: when it ran, unless its options tell.
        by_hand: what it does to rows is somebody else's care: of interest are the definitions after it, and the
            operations only for the tables that they name.

    Raises:
        Unsupported: it is not understood, or its effect on rows cannot be known.
        TargetDiffers: the tables are not those it speaks of.
    """
    sql_mode = statement.options.get("sql_mode", "")
    session = session_of(statement, commit_time)
    read = readings(statement.sql, sql_mode)
    plans = [_plan(tokens, statement, catalog, sql_mode, session, by_hand=by_hand) for tokens in read]
    if any(other.operations != plans[0].operations for other in plans[1:]):
        raise Unsupported("DDL whose effect depends on the version of the server that read its /*! comments */")
    if not by_hand and replay.TEXT in statement.options and plans[0].operations:
        raise Unsupported("DDL with bytes that mean nothing in its session's character set")
    return plans[0]


def located(error: ConnectorError, seqno: int, statement: Statement, catalog: TargetSchema) -> ConnectorError:
    """The same error with the event and the statement it is about, and the ways out of a refusal.

    Args:
        error: it.
        seqno: the event's.
        statement: the one that is refused.
        catalog: the tables before it.
    """
    hint = error.hint
    if isinstance(error, Unsupported | TargetDiffers | ValueNotRepresentable):
        ways = [f"do by hand on the target what the statement does, then thl apply --done-seqno {seqno} --reason …"]
        if tables := _dispensable(statement, catalog):
            ways.append(go_on_without(*tables))
        way_out = "; ".join(ways)
        hint = f"{hint}; or {way_out}" if hint else way_out
    return type(error)(
        error.message,
        hint=hint,
        **{**error.where, "seqno": seqno, "schema": statement.schema, "sql": statement.sql},
    )


def _dispensable(statement: Statement, catalog: TargetSchema) -> tuple[TableName, ...]:
    """The tables without which a statement would not stop, besides those that the applier goes on without; none where
    it stops all the same."""
    try:
        about = subjects(statement)
        names = about.tables[::2] if about.verb == "RENAME" else about.tables
        names = names[:1] if about.verb == "ALTER" else names  # the second is the name that the first gets
        names += () if about.partner is None else (about.partner,)
        left = tuple(dict.fromkeys(name for name in names if name not in catalog.excluded))
        for name in left:
            catalog = catalog.excluding(name, Excluded(since=Seqno(0), at=0, by="", because=""))
        plan(statement, catalog, 0)
    except (Unsupported, TargetDiffers):
        return ()
    return left


def _plan(
    tokens: list[Token], statement: Statement, catalog: TargetSchema, sql_mode: str, session: Session, *, by_hand: bool
) -> Plan:
    reader = Reader(tokens, statement.schema, mariadb=session.mariadb, implicit=session.implicit and not by_hand)
    failed = statement.options.get("error_code", "0") != "0"  # but had an effect: it is in the log
    command = " ".join(token.text.upper() for token in tokens[:2] if token.kind is Lexeme.WORD)

    def nothing() -> Plan:
        return Plan(command, (), catalog)

    def doing(operations: list[Operation], after: TargetSchema) -> Plan:
        reader.expect_end()
        return Plan(command, tuple(operations), after)

    if reader.at_end or reader.accept_any(*ACCOUNTS):
        return nothing()
    if reader.accept("SET", "STATEMENT"):
        _pass_waiting(reader)
    if reader.accept_any(*MAINTENANCE):
        reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        return nothing() if reader.accept_any("TABLES", "TABLE") else reader.stop("a command that is not known")
    if reader.accept("TRUNCATE"):
        reader.accept("TABLE")
        name = reader.table()
        return doing([] if name in catalog.excluded else [Truncate(catalog.get(name))], catalog)
    if reader.accept("SET"):
        known = reader.peek("PASSWORD") or reader.peek("DEFAULT", "ROLE") or reader.peek("ROLE")
        return nothing() if known else reader.stop("a SET that is not known")
    if reader.accept("RENAME"):
        if reader.accept("USER"):
            return nothing()
        if not reader.accept_any("TABLES", "TABLE"):
            reader.stop("a RENAME that is not known")
        return doing(*_rename(reader, catalog))
    if verb := reader.accept_any("CREATE", "DROP", "ALTER"):
        replace = reader.accept("OR", "REPLACE")
        pass_definer(reader)
        if reader.accept("TEMPORARY"):
            return nothing() if reader.accept_any("TABLES", "TABLE") else reader.stop("what is temporary is not known")
        if verb == "DROP" and reader.accept("INDEX"):
            if reader.name().upper() != "PRIMARY":
                return nothing()
            reader.expect("ON")
            name = reader.table()
            return nothing() if name in catalog.excluded else doing(*drop_key(catalog, name))
        if reader.accept_any(*ROWLESS):
            return nothing()
        if reader.accept_any("DATABASE", "SCHEMA"):
            if replace:
                reader.stop("CREATE OR REPLACE DATABASE")
            return nothing() if verb == "ALTER" else doing(*_database(reader, catalog, verb))
        reader.accept_any("ONLINE", "OFFLINE")
        reader.accept("IGNORE")
        if reader.accept_any("TABLES", "TABLE"):
            if failed and replace:  # MariaDB has dropped the old one
                name = reader.table()
                return Plan(command, *_dropped(catalog, name))
            if failed and verb != "DROP":
                reader.stop("a statement that failed")
            if verb == "CREATE":
                return doing(*create_table(reader, catalog, sql_mode=sql_mode, replace=replace, session=session))
            if verb == "DROP":
                return doing(*_drop(reader, catalog))
            return doing(*alter_table(reader, catalog, sql_mode=sql_mode, session=session, by_hand=by_hand))
    return reader.stop("a statement that is not known")


def _pass_waiting(reader: Reader) -> None:
    """Pass the variables of MariaDB's SET STATEMENT … FOR, if they change nothing but how long something may take."""
    while True:
        if reader.name().lower() not in WAITING:
            reader.stop("a SET STATEMENT of what may change its meaning")
        reader.expect("=")
        reader.take()
        if not reader.accept(","):
            break
    reader.expect("FOR")


def _database(reader: Reader, catalog: TargetSchema, verb: str) -> tuple[list[Operation], TargetSchema]:
    if verb == "CREATE":
        reader.accept("IF", "NOT", "EXISTS")
        schema = reader.name()
        while not reader.at_end:
            reader.take()
        return [CreateSchema(schema)], catalog
    reader.accept("IF", "EXISTS")
    schema = reader.name()
    operations: list[Operation] = []
    ours = [table.name for table in catalog.of_schema(schema)]
    for name in dict.fromkeys([*ours, *(other for other in catalog.excluded if other.schema == schema)]):
        dropped, catalog = _dropped(catalog, name)
        operations += dropped
    return [*operations, DropSchema(schema)], catalog


def _dropped(catalog: TargetSchema, name: TableName) -> tuple[tuple[Operation, ...], TargetSchema]:
    """The end of a table, if we have it; one that the applier goes on without is no longer one of these."""
    excluded, table = name in catalog.excluded, catalog.find(name)
    gone = () if table is None else (DropTable(table, optional=excluded),)
    after = catalog if table is None else catalog.without(name)
    return gone, after.including(name) if excluded else after


def _drop(reader: Reader, catalog: TargetSchema) -> tuple[list[Operation], TargetSchema]:
    """A MariaDB drops those that are there and fails for the others, and logs all of them without saying so."""
    optional = reader.accept("IF", "EXISTS") or reader.mariadb
    operations: list[Operation] = []
    while True:
        name = reader.table()
        if not (optional or name in catalog.excluded):
            catalog.get(name)
        dropped, catalog = _dropped(catalog, name)
        operations += dropped
        if not reader.accept(","):
            break
    pass_patience(reader)
    reader.accept_any("RESTRICT", "CASCADE")
    return operations, catalog


def _rename(reader: Reader, catalog: TargetSchema) -> tuple[list[Operation], TargetSchema]:
    operations: list[Operation] = []
    reader.accept("IF", "EXISTS")
    while True:
        old = reader.table()
        pass_patience(reader)
        reader.expect("TO")
        new = reader.table()
        table = catalog.find(old)
        if new in catalog:
            raise TargetDiffers(f"table {old} is to be renamed to {new}, which is there")
        entry = catalog.excluded.get(old)
        if table is None and entry is None and old.schema != new.schema:
            catalog.get(old)
        if table is not None:
            operations.append(RenameTable(table, new, optional=entry is not None))
            catalog = catalog.without(old).with_table(table.renamed(new))
        if entry is not None:
            catalog = catalog.including(old).excluding(new, entry)
        # Else it is a view, which never leaves its schema; of a table that we lack, the next row stops.
        if not reader.accept(","):
            break
    return operations, catalog
