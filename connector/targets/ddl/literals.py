"""Literals of a statement as the server reads them, before conversion to a column's type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from connector.ddl.syntax.ast_column import Literal
from connector.ddl.syntax.tokens import Lexeme
from connector.mysql.values.charsets import BINARY, UTF8, WIDE
from connector.targets.ddl.characters import decoded, encoded, representable
from connector.targets.ddl.session import Session

_ASCII = "ascii"
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Text:
    """Characters.

    Args:
        text: the characters.
        raw: their bytes in the literal's character set; None if not known.
        type: DATE, TIME or TIMESTAMP of a typed literal, otherwise "".
    """

    text: str
    raw: bytes | None
    type: str = ""


@dataclass(frozen=True, slots=True)
class Bytes:
    """A binary string.

    Args:
        raw: the literal's bytes.
        numeric: true if a numeric column reads it as a number: x'41', b'101'.
    """

    raw: bytes
    numeric: bool


@dataclass(frozen=True, slots=True)
class Number:
    """A number: exact, or a double if written with an exponent."""

    value: Decimal | float


LiteralValue = Text | Bytes | Number


def literal_value(literal: Literal, session: Session) -> LiteralValue | None:
    """The value of a literal in a session; None if not known."""
    if literal.kind is Lexeme.NUMBER:
        return _number(literal)
    if literal.kind is Lexeme.STRING:
        return _string(literal, session)
    if literal.negative:
        return None
    raw = _raw(literal)
    if literal.charset in ("", BINARY):
        return Bytes(raw, numeric=not literal.charset)
    text = decoded(raw, literal.charset)
    return None if text is None else Text(text, encoded(text, literal.charset) if literal.charset in WIDE else raw)


def number_in(text: str) -> str | None:
    """The number in a string, without blanks around it; None if it is no number."""
    text = text.strip(" ")
    return text if _NUMBER.fullmatch(text) else None


def _number(literal: Literal) -> Number | None:
    if not _NUMBER.fullmatch(literal.text):
        return None
    text = ("-" if literal.negative else "") + literal.text
    if "e" in text.lower():
        return Number(float(text))
    exact = Decimal(text)
    return Number(exact if exact else abs(exact))


def _string(literal: Literal, session: Session) -> LiteralValue | None:
    return _introduced(literal, session) if literal.charset else _plain(literal, session)


def _introduced(literal: Literal, session: Session) -> LiteralValue | None:
    """The statement's bytes, read in the literal's character set."""
    text, charset = literal.text, literal.charset
    raw = encoded(text, session.client or _ASCII)
    if literal.parts > 1 and not text.isascii():
        return None
    if charset == session.client or (charset in UTF8 and not session.client):
        return Text(text, encoded(text, charset))
    if raw is None:
        return None
    if charset == BINARY:
        return Bytes(raw, numeric=False)
    meant = decoded(raw, charset)
    return None if meant is None else Text(meant, raw)


def _plain(literal: Literal, session: Session) -> LiteralValue | None:
    """The statement's characters, in the connection's character set."""
    text, charset = literal.text, session.connection
    if charset == BINARY:
        raw = encoded(text, session.client or _ASCII)
        return None if raw is None else Bytes(raw, numeric=False)
    if charset not in ("", session.client):
        if not representable(text, charset):
            return None  # the server mostly stores question marks
        if literal.parts > 1 and (charset in WIDE or not text.isascii()):
            return None  # a server joins the parts as bytes
    return Text(text, encoded(text, charset or _ASCII), literal.type)


def _raw(literal: Literal) -> bytes:
    if literal.kind is Lexeme.HEX:
        return bytes.fromhex(literal.text.rjust(len(literal.text) + len(literal.text) % 2, "0"))
    return int(literal.text or "0", 2).to_bytes((len(literal.text) + 7) // 8, "big")
