"""The text of a statement of the source as the target executes it.

What changes of it has no effect on rows: a table's storage engine, because only InnoDB's tables take part in a commit;
ALGORITHM and LOCK of ALTER TABLE, which refuse what this server would do in another way; and START TRANSACTION, with
which CREATE TABLE … SELECT is logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import SourceSpan
from connector.ddl.syntax.ast_table import OtherOption, Partitioning, TableBody
from connector.ddl.syntax.clauses import NoEffect, PartitionClause
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.targets.ddl.characters import encoded

_INSTEAD: Final = {"ENGINE": "InnoDB", "ALGORITHM": "DEFAULT", "LOCK": "DEFAULT"}
_NAMED: Final = ("PARTITION", "SUBPARTITION", ",", "(")
"""What comes before a partition's name."""


def executed_text(statement: Statement, parsed: ast.ParsedStatement | None = None) -> str | bytes:
    """The text to execute, in the character set of its session if that has a text of other letters than ASCII.

    Args:
        statement: the statement.
        parsed: its reading; None: nothing of it changes.
    """
    sql = statement.sql if parsed is None else _for_innodb(statement.sql, parsed)
    charset = statement.options.get(replay.CHARSET, "")
    if sql.isascii() or charset in ("", "utf8mb4", "utf8mb3"):
        return sql
    return encoded(sql, charset) or sql


def _for_innodb(sql: str, parsed: ast.ParsedStatement) -> str:
    words = [token for token in parsed.tokens if token.kind is not Lexeme.END]
    if [token.text.upper() for token in words[-2:]] == ["START", "TRANSACTION"]:
        sql = sql[: words[-2].at]
    for token, instead in sorted(_replaced(parsed.command, words), key=lambda found: found[0].at, reverse=True):
        sql = sql[: token.at] + instead + sql[token.end :]
    return sql


def _replaced(command: ast.Command, words: list[Token]) -> Iterator[tuple[Token, str]]:
    """The tokens that get another text, each with this."""
    match command:
        case ast.CreateTableStatement(_, _, _, TableBody() as body):
            parts: Iterable[object] = body.options
        case ast.AlterTableStatement():
            parts = command.clauses
        case _:
            return
    for part in parts:
        match part:
            case OtherOption(span) | NoEffect(span):
                option, *value = _within(words, span)
                if value and option.text.upper() in _INSTEAD:
                    yield value[-1], _INSTEAD[option.text.upper()]
            case Partitioning(span) | PartitionClause(span):
                for engine in _engines(_within(words, span)):
                    yield engine, _INSTEAD["ENGINE"]
            case _:
                pass


def _within(words: Iterable[Token], span: SourceSpan) -> list[Token]:
    return [token for token in words if span.start <= token.at and token.end <= span.end]


def _engines(tokens: list[Token]) -> Iterator[Token]:
    """The storage engines in the definitions of partitions, one of which may have the name `engine`."""
    for number, token in enumerate(tokens):
        if token.kind is not Lexeme.WORD or token.text.upper() != "ENGINE":
            continue
        value = tokens[number + 1 : number + 3]
        if value and value[0].text == "=":
            value = value[1:]
        is_name = not number or tokens[number - 1].text.upper() in _NAMED
        if value and not is_name and value[0].kind in (Lexeme.WORD, Lexeme.STRING, Lexeme.NAME):
            yield value[0]
