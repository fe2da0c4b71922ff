"""A definition in which columns have other names: those that they are published under.

The rule goes by the name that a column has in the source when a clause is about it: CHANGE and RENAME COLUMN lead to
whatever the rule says for the new name. Only names of the table's own columns are written anew, whole and quoted; the
names of indexes, constraints and partitions stay, and another table's columns behind REFERENCES. The result is read
again and must be, token for token, what was meant. What cannot be told (is `day` in an expression a column or a unit?)
is `Unsupported`: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connector.ddl.column_places import ColumnNames, ColumnPlaces, touches
from connector.ddl.mariadb import of_mariadb
from connector.ddl.reader import Reader
from connector.ddl.subjects import subjects
from connector.ddl.tokens import Lexeme, Token, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reading of a statement wants to know.

    Args:
        names: of a table's columns; None: they are published under their own.
        after: the table when the statement has been executed; None: it is not known.
        fold: makes names of tables equal that the server takes for the same.
    """

    names: Callable[[TableName], ColumnNames | None]
    after: Callable[[TableName], TableLayout | None]
    fold: Callable[[str], str]


def with_columns(statement: Statement, wanted: Wanted) -> Statement:
    """The statement with the names under which columns are published.

    Args:
        statement: it, without the columns that are not published.
        wanted: the names. Where it names two tables, `without_columns` has seen that one rule counts for both.

    Raises:
        Unsupported: it is not understood, two columns would have one name, or what is a column cannot be told.
    """
    about = subjects(statement)
    rules = wanted.names(about.tables[0]) if about.tables and not about.truncates and about.like is None else None
    sql_mode = statement.options.get("sql_mode", "")
    ways = readings(statement.sql, sql_mode)
    if rules is None or not any(touches(token, rules) for tokens in ways for token in tokens):
        return statement
    after = wanted.after(about.tables[-1])
    found = []
    for tokens in ways:
        reader = Reader(tokens, statement.schema, mariadb=of_mariadb(statement))
        found.append(ColumnPlaces(reader, tokens, sql_mode, rules, wanted.fold))
        found[-1].read(about.tables[0], after)
    places = {place: name for way in found for place, name in way.places.items()}
    sql = statement.sql
    for (start, end), name in sorted(places.items(), reverse=True):
        quoted = name.replace("`", "``")
        sql = f"{sql[:start]}`{quoted}`{sql[end:]}"
    if [_said(tokens) for tokens in readings(sql, sql_mode)] != [_said(way.tokens, way.places) for way in found]:
        raise Unsupported("the names of columns could not be written anew")
    return statement if sql == statement.sql else Statement(statement.schema, sql, statement.options)


def _said(tokens: list[Token], places: Mapping[tuple[int, int], str] | None = None) -> list[tuple[Lexeme, str]]:
    """What tokens say, with other names in these places."""
    anew = places or {}
    return [
        (Lexeme.NAME, anew[token.at, token.end]) if (token.at, token.end) in anew else (token.kind, token.text)
        for token in tokens
    ]
