"""A definition with the names under which columns are published.

The rule goes by the name that a column has in the source when a clause is about it: CHANGE and RENAME COLUMN lead to
whatever the rule says for the new name. Only names of the table's own columns are replaced, whole and quoted; the
names of indexes, constraints and partitions stay, and another table's columns behind REFERENCES. The result is read
again and must be, token for token, what was meant. What is ambiguous (is `day` in an expression a column or a unit?)
is `Unsupported`: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from connector.ddl.affected_tables import affected_tables
from connector.ddl.column_mentions import ColumnMentions, ColumnNames, touches
from connector.ddl.mariadb import ServerDialect, of_mariadb
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName


@dataclass(frozen=True, slots=True)
class RenameContext:
    """The names and tables that `rename_columns` needs.

    Args:
        names: of a table's columns; None: they are published under their own.
        after: the table when the statement has been executed; None: it is not known.
        fold: makes names of tables equal that the server takes for the same.
    """

    names: Callable[[TableName], ColumnNames | None]
    after: Callable[[TableName], TableLayout | None]
    fold: Callable[[str], str]


def rename_columns(statement: Statement, wanted: RenameContext) -> Statement:
    """The statement with the names under which columns are published.

    Args:
        statement: it, without the columns that are not published.
        wanted: the names. Where it names two tables, `drop_columns` has seen that one rule counts for both.

    Raises:
        Unsupported: it is not understood, two columns would have one name, or what is a column cannot be told.
    """
    about = affected_tables(statement)
    rules = wanted.names(about.tables[0]) if about.tables and not about.truncates and about.like is None else None
    sql_mode = statement.options.get("sql_mode", "")
    ways = readings(statement.sql, sql_mode)
    if rules is None or not any(touches(token, rules) for tokens in ways for token in tokens):
        return statement
    after = wanted.after(about.tables[-1])
    dialect = ServerDialect(mariadb=of_mariadb(statement))
    found = []
    for parsed in parse(statement):
        found.append(ColumnMentions(parsed, about.tables[0], dialect, rules, wanted.fold))
        found[-1].read(after)
    places = {place: name for way in found for place, name in way.places.items()}
    sql = statement.sql
    for (start, end), name in sorted(places.items(), reverse=True):
        quoted = name.replace("`", "``")
        sql = f"{sql[:start]}`{quoted}`{sql[end:]}"
    if [_said(tokens) for tokens in readings(sql, sql_mode)] != [_said(way.tokens, way.places) for way in found]:
        raise Unsupported("the names of columns could not be replaced")
    return statement if sql == statement.sql else Statement(statement.schema, sql, statement.options)


def _said(tokens: Iterable[Token], places: Mapping[tuple[int, int], str] | None = None) -> list[tuple[Lexeme, str]]:
    """The kinds and texts of tokens, with other names in these places."""
    replaced = places or {}
    return [
        (Lexeme.NAME, replaced[token.at, token.end]) if (token.at, token.end) in replaced else (token.kind, token.text)
        for token in tokens
    ]
