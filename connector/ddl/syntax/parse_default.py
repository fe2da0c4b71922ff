"""Parses a column's DEFAULT (MySQL's manual, "Data Type Default Values", "Literal Values")."""

from __future__ import annotations

import re
from dataclasses import replace

from connector.ddl.syntax.ast_column import Computed, Default, Literal, Now, Null
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme
from connector.errors import Unsupported

_LITERALS = (Lexeme.STRING, Lexeme.NUMBER, Lexeme.HEX, Lexeme.BITS)
_CONSTANT = re.compile(
    "NULL|TRUE|FALSE|CURRENT_TIMESTAMP|NOW|LOCALTIMESTAMP|LOCALTIME|CURRENT_DATE|CURDATE|_[a-z0-9]+", re.IGNORECASE
)


def read_default(reader: TokenReader) -> Default:
    """Parse the text after DEFAULT.

    Raises:
        Unsupported: the default is not understood.
    """
    if reader.accept("NULL"):
        return Null()
    if (now := _now(reader)) is not None:
        return now
    if reader.peek("("):
        return _expression(reader)
    if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
        reader.take()  # MariaDB allows functions without parentheses
        reader.skip_parentheses()
        return Computed()
    if word := reader.accept_any("TRUE", "FALSE"):
        return Literal(Lexeme.NUMBER, "1" if word == "TRUE" else "0")
    if reader.token.kind is Lexeme.WORD:
        return _introduced(reader)
    negative = reader.accept("-")
    if not negative:
        reader.accept("+")
    if reader.token.kind is Lexeme.STRING and not negative:
        return _string(reader)
    if reader.token.kind in (Lexeme.NUMBER, Lexeme.HEX, Lexeme.BITS):
        token = reader.take()
        return Literal(token.kind, token.text, negative)
    return reader.stop("unknown default")


def _now(reader: TokenReader) -> Now | None:
    if reader.accept_any("CURRENT_TIMESTAMP", "NOW", "LOCALTIMESTAMP", "LOCALTIME"):
        if not reader.accept("(", ")"):
            return Now(digits=next(iter(reader.numbers()), 0))
        return Now()
    if reader.accept_any("CURRENT_DATE", "CURDATE"):
        reader.accept("(", ")")
        return Now(date=True)
    return None


def _expression(reader: TokenReader) -> Default:
    """Parse `( … )`: a single constant or CURRENT_TIMESTAMP in it has its own node; anything else is `Computed`."""
    start = reader.mark
    reader.skip_parentheses()
    end = reader.mark
    reader.back(start)
    reader.take()
    try:
        found = _constant(reader)
    except Unsupported:
        found = Computed()
    if not reader.accept(")") or reader.mark != end:
        found = Computed()
    reader.back(end)
    return replace(found, computed=True) if isinstance(found, Literal) else found


def _constant(reader: TokenReader) -> Default:
    if word := reader.accept_any("JSON_OBJECT", "JSON_ARRAY"):
        reader.expect("(", ")")
        return Literal(Lexeme.STRING, "{}" if word == "JSON_OBJECT" else "[]", charset="utf8mb4")
    if reader.token.kind in _LITERALS or reader.peek("-") or _CONSTANT.fullmatch(reader.token.text):
        return read_default(reader)
    return Computed()


def _introduced(reader: TokenReader) -> Literal:
    """Parse a literal after a word, its character set or its type."""
    word = reader.take().text
    if word.upper() in ("DATE", "TIME", "TIMESTAMP"):
        return _string(reader, type_=word.upper())
    if not (word.startswith("_") or word.upper() == "N"):
        reader.stop("unknown default")
    charset = {"n": "utf8mb3", "_utf8": "utf8mb3"}.get(word.lower(), word[1:].lower())
    if reader.token.kind in (Lexeme.HEX, Lexeme.BITS):
        token = reader.take()
        return Literal(token.kind, token.text, charset=charset)
    return _string(reader, charset)


def _string(reader: TokenReader, charset: str = "", *, type_: str = "") -> Literal:
    start = reader.mark
    text = reader.string()
    return Literal(Lexeme.STRING, text, charset=charset, type=type_, parts=reader.mark - start)
