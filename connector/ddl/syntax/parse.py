"""The grammar of MySQL's DDL: a statement's text becomes its syntax tree, once, for everything that looks at it.

Every statement has a tree, or it is `Unsupported`: that is where its first words, or the tables it is about, are not
known. What is not understood beyond that stands in the tree as `NotUnderstood`.
"""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import NotUnderstood, SourceSpan, TableReference
from connector.ddl.syntax.ast_table import LikeTable, TableBody
from connector.ddl.syntax.parse_alter import alter_parts
from connector.ddl.syntax.parse_parts import algorithm_or_lock, condition, index_parts, pass_wait
from connector.ddl.syntax.parse_table import like_table, table_body
from connector.ddl.syntax.reader import Reader
from connector.ddl.syntax.tokens import Token, check_spaces, readings, sql_modes
from connector.ddl.syntax.type_names import charset_name, charset_of
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT

ACCOUNTS: Final = ("GRANT", "REVOKE", "INSTALL", "UNINSTALL", "FLUSH")
MAINTENANCE: Final = ("ANALYZE", "OPTIMIZE", "CHECK", "REPAIR")
# Kinds of objects that hold no rows of tables.
ROWLESS: Final = (
    *("USER", "ROLE", "INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SERVER", "TABLESPACE", "UNDO"),
    *("LOGFILE", "LIBRARY", "RESOURCE", "SPATIAL", "UNIQUE", "FULLTEXT", "AGGREGATE", "INSTANCE"),
    *("JSON", "MATERIALIZED"),  # kinds of views
    *("PACKAGE", "VECTOR"),  # MariaDB's; VECTOR INDEX
)
# What may come behind ALTER DATABASE where that means the default schema.
SCHEMA_OPTIONS: Final = ("DEFAULT", "CHARACTER", "CHARSET", "CHAR", "COLLATE", "ENCRYPTION", "READ", "COMMENT")


def parse(statement: Statement, *, whole: bool = True) -> list[ast.ParsedStatement]:
    """The ways that servers may read a statement: one, or two where an executable comment is in doubt.

    Args:
        statement: the text, and the session options that it was executed under.
        whole: whether its text must be words, names and literals to the end; otherwise it may end in what is not.

    Raises:
        Unsupported: it is not understood, or not which tables it is about.
    """
    check_spaces(statement)
    sql_mode = statement.options.get("sql_mode", "")
    modes = sql_modes(sql_mode)
    mariadb = statement.options.get(DIALECT) == MARIADB_DIALECT
    found = []
    for tokens in readings(statement.sql, sql_mode, whole=whole):
        found.append(_parsed(statement, tokens, Reader(tokens, statement.schema, modes, mariadb=mariadb)))
    return found


def _parsed(statement: Statement, tokens: list[Token], reader: Reader) -> ast.ParsedStatement:
    variables = _variables(reader)
    command = _command(reader, prefixed=variables != ())
    rest = None
    if not (reader.at_end or isinstance(command, ast.OtherStatement)):
        span = SourceSpan(reader.start, len(statement.sql))
        rest = NotUnderstood(span, f"DDL not understood: expected the end at {reader.token.text!r}")
    return ast.ParsedStatement(statement.sql, tuple(tokens), command, variables, rest)


def _variables(reader: Reader) -> tuple[str, ...] | NotUnderstood:
    """MariaDB's SET STATEMENT … FOR: variables that are set for the one statement that follows."""
    start = reader.start
    if not reader.accept("SET", "STATEMENT"):
        return ()
    mark, names = reader.mark, list[str]()
    try:
        while True:
            names.append(reader.name().lower())
            reader.expect("=")
            reader.take()
            if not reader.accept(","):
                break
        reader.expect("FOR")
        return tuple(names)
    except Unsupported as error:
        reader.back(mark)
        while not reader.accept("FOR"):
            reader.take()
        return NotUnderstood(reader.since(start), error.message)


def _command(reader: Reader, *, prefixed: bool) -> ast.Command:
    if reader.at_end or reader.accept_any(*ACCOUNTS):
        return ast.OtherStatement("a statement that is not known" if prefixed else "")
    if reader.accept_any(*MAINTENANCE):
        reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        return _other(reader, "a command that is not known", ("TABLES",), ("TABLE",))
    if reader.accept("SET"):
        return _other(reader, "a SET that is not known", ("PASSWORD",), ("DEFAULT", "ROLE"), ("ROLE",))
    if reader.accept("TRUNCATE"):
        return _truncate(reader)
    if reader.accept("RENAME"):
        if reader.accept("USER"):
            return ast.OtherStatement()
        if not reader.accept_any("TABLES", "TABLE"):
            reader.stop("a RENAME that is not known")
        return _rename(reader)
    verb = reader.accept_any("CREATE", "DROP", "ALTER")
    if not verb:
        reader.stop("a statement that is not known")
    replace = reader.accept("OR", "REPLACE")
    _pass_definer(reader)
    if reader.accept("TEMPORARY"):
        return _other(reader, "what is temporary is not known", ("TABLES",), ("TABLE",))
    if verb != "ALTER" and _accept_index(reader):
        return _create_index(reader) if verb == "CREATE" else _drop_index(reader)
    if reader.accept_any(*ROWLESS):
        return ast.OtherStatement()
    if reader.accept_any("DATABASE", "SCHEMA"):
        return _schema(reader, verb, replace=replace)
    reader.accept_any("ONLINE", "OFFLINE")
    reader.accept("IGNORE")
    kind = reader.accept_any("TABLES", "TABLE", "SEQUENCE")
    if not kind:
        reader.stop("a statement that is not known")
    optional = _condition(reader, verb)
    if verb == "DROP":
        return _drop(reader, optional=optional, sequences=kind == "SEQUENCE")
    table = reader.table()
    if kind == "SEQUENCE":
        return ast.CreateSequenceStatement(table, optional) if verb == "CREATE" else ast.AlterSequenceStatement(table)
    if verb == "CREATE":
        return ast.CreateTableStatement(table, optional, replace, _body(reader))
    pass_wait(reader)
    return ast.AlterTableStatement(table, alter_parts(reader))


def _condition(reader: Reader, verb: str) -> bool:
    return condition(reader, "NOT", "EXISTS") if verb == "CREATE" else condition(reader, "EXISTS")


def _other(reader: Reader, doubt: str, *known: tuple[str, ...]) -> ast.OtherStatement:
    """A statement about no rows, if it goes on in one of these ways; otherwise that is in doubt."""
    if any(reader.accept(*words) for words in known):
        return ast.OtherStatement()
    return ast.OtherStatement(f"DDL not understood: {doubt} at {reader.token.text!r}")


def _truncate(reader: Reader) -> ast.TruncateTableStatement:
    reader.accept("TABLE")
    table = reader.table()
    pass_wait(reader)
    if reader.mariadb and not reader.accept("DROP", "STORAGE"):  # for Oracle's sake; without effect
        reader.accept("REUSE", "STORAGE")
    return ast.TruncateTableStatement(table)


def _rename(reader: Reader) -> ast.RenameTablesStatement:
    optional = _condition(reader, "RENAME")
    pairs: list[tuple[TableReference, TableReference]] = []
    while True:
        old = reader.table()
        pass_wait(reader)
        reader.expect("TO")
        pairs.append((old, reader.table()))
        if not reader.accept(","):
            reader.expect_end()
            return ast.RenameTablesStatement(tuple(pairs), optional)


def _drop(reader: Reader, *, optional: bool, sequences: bool) -> ast.DropTablesStatement:
    """Nothing but how to wait may follow the names: no table is overlooked."""
    tables = [reader.table()]
    while reader.accept(","):
        tables.append(reader.table())
    pass_wait(reader)
    reader.accept_any("RESTRICT", "CASCADE")
    reader.expect_end()
    return ast.DropTablesStatement(tuple(tables), optional, sequences)


def _accept_index(reader: Reader) -> bool:
    mark = reader.mark
    while reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE"):
        pass
    if reader.accept("INDEX"):
        return True
    reader.back(mark)
    return False


def _create_index(reader: Reader) -> ast.CreateIndexStatement:
    """The table stands behind the first ON."""
    _condition(reader, "CREATE")
    while not reader.accept("ON"):
        reader.take()
    table = reader.table()
    pass_wait(reader)
    start = reader.start
    try:
        parts = index_parts(reader)
    except Unsupported as error:
        parts = NotUnderstood(reader.since(start), error.message)
    return ast.CreateIndexStatement(table, parts)


def _drop_index(reader: Reader) -> ast.DropIndexStatement:
    _condition(reader, "DROP")
    primary = reader.name().upper() == "PRIMARY"
    while not reader.accept("ON"):
        reader.take()
    table = reader.table()
    pass_wait(reader)
    while algorithm_or_lock(reader):
        pass
    return ast.DropIndexStatement(table, primary)


def _body(reader: Reader) -> TableBody | LikeTable | NotUnderstood:
    if (like := like_table(reader)) is not None:
        return like
    start = reader.start
    try:
        return table_body(reader)
    except Unsupported as error:
        return NotUnderstood(reader.until_end(start), error.message)


def _schema(reader: Reader, verb: str, *, replace: bool) -> ast.Command:
    _condition(reader, verb)
    unnamed = verb == "ALTER" and any(map(reader.peek, SCHEMA_OPTIONS))
    schema = None if unnamed else reader.column()
    if schema is None or verb == "ALTER":
        return ast.AlterSchemaStatement(schema, _schema_options(reader))
    if verb == "DROP":
        return ast.DropSchemaStatement(schema)
    return ast.CreateSchemaStatement(schema, replace, _schema_options(reader))


def _schema_options(reader: Reader) -> ast.SchemaOptions | NotUnderstood:
    start, charset = reader.start, ""
    try:
        while not reader.at_end:
            reader.accept("DEFAULT")
            if reader.accept("CHARACTER", "SET") or reader.accept("CHARSET") or reader.accept("CHAR", "SET"):
                charset = charset_name(_value(reader))
            elif reader.accept("COLLATE"):
                charset = charset_of(_value(reader)) or charset
            elif reader.accept_any("ENCRYPTION", "COMMENT") or reader.accept("READ", "ONLY"):
                _value(reader)
            else:
                reader.stop("an option of a schema that is not known")
    except Unsupported as error:
        return NotUnderstood(reader.until_end(start), error.message)
    return ast.SchemaOptions(charset)


def _value(reader: Reader) -> str:
    reader.accept("=")
    return reader.take().text


def _pass_definer(reader: Reader) -> None:
    """Pass what may stand before VIEW, TRIGGER, PROCEDURE, FUNCTION and EVENT."""
    while True:
        if reader.accept("DEFINER", "="):
            reader.take()
            if reader.peek("("):
                reader.skip_parentheses()
            if reader.accept("@"):
                reader.take()
                while reader.token.at == reader.passed and not reader.at_end:  # a host's dots
                    reader.take()
        elif reader.accept("ALGORITHM", "=") or reader.accept("SQL", "SECURITY"):
            reader.name()
        else:
            return
