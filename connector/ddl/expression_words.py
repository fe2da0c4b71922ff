"""Distinguishes columns from other words in an expression of CHECK, GENERATED ALWAYS AS, DEFAULT or an index.

These expressions have no subqueries, variables or stored functions. An operand is between operators, commas and
parentheses; two operands never follow each other. The only other single words are units and types as arguments:
`TIMESTAMPADD(DAY, 1, a)`, `CONVERT(a, DATE)`. Sources: MySQL's manual, "Expressions", "Date and Time Functions",
"Cast Functions"; the output of SHOW CREATE TABLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from connector.ddl.syntax.tokens import Lexeme, Token

_SIGNS: Final = frozenset("+-*/%<>=!&|^~,")
_BEFORE: Final = frozenset(
    [
        *("AND", "OR", "XOR", "NOT", "LIKE", "BETWEEN", "IN", "DIV", "MOD", "REGEXP", "RLIKE", "BINARY", "INTERVAL"),
        *("CASE", "WHEN", "THEN", "ELSE", "FROM", "BOTH", "LEADING", "TRAILING"),
    ]
)
_UNITS: Final = frozenset(["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])
_AFTER: Final = frozenset(
    [
        *("AND", "OR", "XOR", "NOT", "LIKE", "BETWEEN", "IN", "DIV", "MOD", "REGEXP", "RLIKE", "IS", "SOUNDS"),
        *("MEMBER", "ESCAPE", "WHEN", "THEN", "ELSE", "END", "COLLATE", "FROM", "FOR", "AS", "USING", "AT"),
        *(_UNITS | {f"{long}_{short}" for long in _UNITS for short in _UNITS}),
    ]
)
_TYPES: Final = frozenset(
    [
        *("DATE", "TIME", "DATETIME", "TIMESTAMP", "SIGNED", "UNSIGNED", "CHAR", "NCHAR", "BINARY", "JSON", "DECIMAL"),
        *("DEC", "DOUBLE", "FLOAT", "REAL", "INT", "INTEGER", "VARCHAR", "UUID", "INET4", "INET6", "GEOMETRY", "POINT"),
        *("LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"),
    ]
)
_LITERALS: Final = frozenset(["DATE", "TIME", "TIMESTAMP"])
_OF_UNITS: Final = frozenset(["EXTRACT", "TIMESTAMPADD", "TIMESTAMPDIFF"])
_ENDED: Final = (Lexeme.NUMBER, Lexeme.STRING, Lexeme.NAME)


def is_column(tokens: Sequence[Token], at: int) -> bool | None:
    """Decide if a token with a column's name is that column.

    Args:
        tokens: an expression in its parentheses, and at least one token before it.
        at: the token's index in them.

    Returns:
        None if it may be either.
    """
    token, before, after = tokens[at], tokens[at - 1], tokens[at + 1]
    if token.kind is Lexeme.WORD:
        word = token.text.upper()
        if _is(after, "("):
            return False  # a function
        if word in _LITERALS and after.kind is Lexeme.STRING:
            return False  # DATE '2000-01-01'
        if word in _TYPES and _is(before, "AS"):
            return False  # CAST(… AS DATE)
        if word in _UNITS and (before.kind in _ENDED or _is(before, ")")):
            return False  # INTERVAL 1 DAY
        if word in _UNITS and _is(before, "(") and tokens[at - 2].text.upper() in _OF_UNITS:
            return False
        if (word in _UNITS or word in _TYPES or word.startswith("SQL_TSI_")) and _is_argument(before, after):
            return None
    return True if _precedes_operand(before) and _ends_operand(after) else None


def _is(token: Token, text: str) -> bool:
    return token.kind in (Lexeme.SIGN, Lexeme.WORD) and token.text.upper() == text


def _is_argument(before: Token, after: Token) -> bool:
    """True for one of several arguments: a unit or type is never the only one."""
    first, last = _is(before, "("), _is(after, ")")
    return not (first and last) and (first or _is(before, ",")) and (last or _is(after, ",") or _is(after, "FROM"))


def _precedes_operand(token: Token) -> bool:
    if token.kind is Lexeme.SIGN:
        return token.text in _SIGNS or token.text == "("
    return token.kind is Lexeme.WORD and token.text.upper() in _BEFORE


def _ends_operand(token: Token) -> bool:
    if token.kind is Lexeme.SIGN:
        return token.text in _SIGNS or token.text == ")"
    return token.kind is Lexeme.WORD and token.text.upper() in _AFTER
