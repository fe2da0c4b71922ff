"""Parses a DDL statement of MySQL into its syntax tree.

A statement is `Unsupported` if its first words or its tables are not known. Every other part that is not understood is
a `NotUnderstood` node of the tree.
"""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import NotUnderstood, SourceSpan, TableReference
from connector.ddl.syntax.ast_table import Index, LikeTable, TableBody
from connector.ddl.syntax.parse_alter import alter_parts
from connector.ddl.syntax.parse_parts import algorithm_or_lock, condition, index_parts, pass_wait
from connector.ddl.syntax.parse_table import like_table, table_body
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme, Token, check_spaces, readings, sql_modes
from connector.ddl.syntax.type_names import charset_name, charset_of
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT

ACCOUNTS: Final = ("GRANT", "REVOKE", "INSTALL", "UNINSTALL", "FLUSH")
MAINTENANCE: Final = ("ANALYZE", "OPTIMIZE", "CHECK", "REPAIR")
# Kinds of objects that have no rows of tables.
ROWLESS: Final = (
    *("USER", "ROLE", "INDEX", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SERVER", "TABLESPACE", "UNDO"),
    *("LOGFILE", "LIBRARY", "RESOURCE", "SPATIAL", "UNIQUE", "FULLTEXT", "AGGREGATE", "INSTANCE"),
    *("PACKAGE", "VECTOR"),  # MariaDB's; VECTOR INDEX
)
VIEWS: Final = (
    ("VIEW",),
    ("MATERIALIZED", "VIEW"),
    ("JSON", "DUALITY", "VIEW"),
    ("JSON", "RELATIONAL", "DUALITY", "VIEW"),
)
# The reserved words that may follow ALTER DATABASE without a name, which means the default schema. CHARSET, ENCRYPTION
# and COMMENT are names there (asked of MySQL 5.6 and 9.7 and of MariaDB 11.4).
SCHEMA_OPTIONS: Final = ("DEFAULT", "CHARACTER", "CHAR", "COLLATE", "READ")


def parse(statement: Statement, *, whole: bool = True) -> list[ast.ParsedStatement]:
    """Return the ways in which servers may read a statement: one, or two if an executable comment may be executed.

    Args:
        statement: the text, and the session's options at its execution.
        whole: True: the text must consist of tokens to its end; False: it may end in text that is not understood.

    Raises:
        Unsupported: the statement or its tables are not understood.
    """
    check_spaces(statement)
    sql_mode = statement.options.get("sql_mode", "")
    modes = sql_modes(sql_mode)
    mariadb = statement.options.get(DIALECT) == MARIADB_DIALECT
    found = []
    for tokens in readings(statement.sql, sql_mode, whole=whole):
        found.append(_parsed(statement, tokens, TokenReader(tokens, statement.schema, modes, mariadb=mariadb)))
    return found


def _parsed(statement: Statement, tokens: list[Token], reader: TokenReader) -> ast.ParsedStatement:
    variables = _variables(reader)
    command = _command(reader, prefixed=variables != ())
    rest = None
    if not (reader.at_end or isinstance(command, ast.OtherStatement | ast.ViewStatement)):
        span = SourceSpan(reader.start, len(statement.sql))
        rest = NotUnderstood(span, f"DDL not understood: expected the end at {reader.token.text!r}")
    return ast.ParsedStatement(statement.sql, tuple(tokens), command, variables, rest)


def _variables(reader: TokenReader) -> tuple[str, ...] | NotUnderstood:
    """Parse MariaDB's SET STATEMENT … FOR: variables that are set for the following statement only."""
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


def _command(reader: TokenReader, *, prefixed: bool) -> ast.Command:
    if reader.at_end or reader.accept_any(*ACCOUNTS):
        return ast.OtherStatement("unknown statement" if prefixed else "")
    if reader.accept_any(*MAINTENANCE):
        reader.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
        return _other(reader, "unknown command", ("TABLES",), ("TABLE",))
    if reader.accept("SET"):
        return _other(reader, "unknown SET", ("PASSWORD",), ("DEFAULT", "ROLE"), ("ROLE",))
    if reader.accept("TRUNCATE"):
        return _truncate(reader)
    if reader.accept("RENAME"):
        if reader.accept("USER"):
            return ast.OtherStatement()
        if not reader.accept_any("TABLES", "TABLE"):
            reader.stop("unknown RENAME")
        return _rename(reader)
    verb = reader.accept_any("CREATE", "DROP", "ALTER")
    if not verb:
        reader.stop("unknown statement")
    replace = reader.accept("OR", "REPLACE")
    _pass_definer(reader)
    if reader.accept("TEMPORARY"):
        return _other(reader, "unknown temporary object", ("TABLES",), ("TABLE",))
    if verb != "ALTER" and (kinds := _accept_index(reader)) is not None:
        return _create_index(reader, kinds, replace=replace) if verb == "CREATE" else _drop_index(reader)
    if any(reader.accept(*words) for words in VIEWS):
        return _views(reader, verb)
    if reader.accept_any(*ROWLESS):
        return ast.OtherStatement()
    if reader.accept_any("DATABASE", "SCHEMA"):
        return _schema(reader, verb, replace=replace)
    reader.accept_any("ONLINE", "OFFLINE")
    reader.accept("IGNORE")
    kind = reader.accept_any("TABLES", "TABLE", "SEQUENCE")
    if not kind:
        reader.stop("unknown statement")
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


def _condition(reader: TokenReader, verb: str) -> bool:
    return condition(reader, "NOT", "EXISTS") if verb == "CREATE" else condition(reader, "EXISTS")


def _other(reader: TokenReader, doubt: str, *known: tuple[str, ...]) -> ast.OtherStatement:
    """Parse a statement without rows, if it continues with one of these word sequences; else set `doubt`."""
    if any(reader.accept(*words) for words in known):
        return ast.OtherStatement()
    return ast.OtherStatement(f"DDL not understood: {doubt} at {reader.token.text!r}")


def _truncate(reader: TokenReader) -> ast.TruncateTableStatement:
    reader.accept("TABLE")
    table = reader.table()
    pass_wait(reader)
    if reader.mariadb and not reader.accept("DROP", "STORAGE"):  # Oracle's syntax, without effect
        reader.accept("REUSE", "STORAGE")
    return ast.TruncateTableStatement(table)


def _rename(reader: TokenReader) -> ast.RenameTablesStatement:
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


def _drop(reader: TokenReader, *, optional: bool, sequences: bool) -> ast.DropTablesStatement:
    """Parse DROP TABLE; only a lock wait may follow the names, so no table is overlooked."""
    tables = [reader.table()]
    while reader.accept(","):
        tables.append(reader.table())
    pass_wait(reader)
    reader.accept_any("RESTRICT", "CASCADE")
    reader.expect_end()
    return ast.DropTablesStatement(tuple(tables), optional, sequences)


def _views(reader: TokenReader, verb: str) -> ast.ViewStatement:
    """Parse CREATE, ALTER or DROP VIEW up to the names."""
    _condition(reader, verb)
    views = [reader.table()]
    while verb == "DROP" and reader.accept(","):
        views.append(reader.table())
    return ast.ViewStatement(tuple(views), dropped=verb == "DROP")


def _accept_index(reader: TokenReader) -> tuple[str, ...] | None:
    """The words before INDEX; None: it is not about one."""
    mark, kinds = reader.mark, list[str]()
    while word := reader.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE"):
        kinds.append(word)
    if reader.accept("INDEX"):
        return tuple(kinds)
    reader.back(mark)
    return None


def _create_index(reader: TokenReader, kinds: tuple[str, ...], *, replace: bool) -> ast.CreateIndexStatement:
    """Parse CREATE INDEX; the table's name follows the first ON."""
    begin = reader.start
    optional = _condition(reader, "CREATE")
    name = reader.take().text
    while not reader.accept("ON"):
        reader.take()
    table = reader.table()
    pass_wait(reader)
    start = reader.start
    try:
        parts = index_parts(reader)
    except Unsupported as error:
        parts = NotUnderstood(reader.since(start), error.message)
    kind = next((word for word in kinds if word in ("FULLTEXT", "SPATIAL", "VECTOR")), "")
    index = Index(reader.since(begin), parts, name, "UNIQUE" in kinds, kind, optional)
    return ast.CreateIndexStatement(table, parts, index, replace)


def _drop_index(reader: TokenReader) -> ast.DropIndexStatement:
    _condition(reader, "DROP")
    name = reader.name()
    while not reader.accept("ON"):
        reader.take()
    table = reader.table()
    pass_wait(reader)
    while algorithm_or_lock(reader):
        pass
    return ast.DropIndexStatement(table, name.upper() == "PRIMARY", name)


def _body(reader: TokenReader) -> TableBody | LikeTable | NotUnderstood:
    if (like := like_table(reader)) is not None:
        return like
    start = reader.start
    try:
        return table_body(reader)
    except Unsupported as error:
        return NotUnderstood(reader.until_end(start), error.message)


def _schema(reader: TokenReader, verb: str, *, replace: bool) -> ast.Command:
    _condition(reader, verb)
    unnamed = verb == "ALTER" and (any(map(reader.peek, SCHEMA_OPTIONS)) or _is_comment(reader))
    schema = None if unnamed else reader.column()
    if schema is None or verb == "ALTER":
        return ast.AlterSchemaStatement(schema, _schema_options(reader))
    if verb == "DROP":
        return ast.DropSchemaStatement(schema)
    return ast.CreateSchemaStatement(schema, replace, _schema_options(reader))


def _is_comment(reader: TokenReader) -> bool:
    """True if MariaDB's option COMMENT comes next: the word and a text. Otherwise the word is a name."""
    mark = reader.mark
    found = reader.accept("COMMENT", "=") or (reader.accept("COMMENT") and reader.token.kind is Lexeme.STRING)
    reader.back(mark)
    return found


def _schema_options(reader: TokenReader) -> ast.SchemaOptions | NotUnderstood:
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
                reader.stop("unknown schema option")
    except Unsupported as error:
        return NotUnderstood(reader.until_end(start), error.message)
    return ast.SchemaOptions(charset)


def _value(reader: TokenReader) -> str:
    reader.accept("=")
    return reader.take().text


def _pass_definer(reader: TokenReader) -> None:
    """Skip the options that may precede VIEW, TRIGGER, PROCEDURE, FUNCTION and EVENT."""
    while True:
        if reader.accept("DEFINER", "="):
            reader.take()
            if reader.peek("("):
                reader.skip_parentheses()
            if reader.accept("@"):
                reader.take()
                while reader.token.at == reader.passed and not reader.at_end:  # the dots of a host name
                    reader.take()
        elif reader.accept("ALGORITHM", "=") or reader.accept("SQL", "SECURITY"):
            reader.name()
        else:
            return
