"""Splits a statement into tokens: words, names, literals, and executable comments.

The rules are those of MySQL's manual, "Language Structure". The session's `sql_mode` changes some: ANSI_QUOTES makes
"x" a name, NO_BACKSLASH_ESCAPES makes a backslash an ordinary character.

Servers from 8.0.23 on execute `/*!80023 INVISIBLE */`; for older ones it is a comment. The server's version is not
known here, so `readings` returns both readings, and the caller must get the same result from either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from connector.errors import Unsupported
from connector.log.transaction.batch import Statement

# Every supported server executes comments up to this version.
ALWAYS_EXECUTED = 50500

SPACES = r" \t\n\v\f\r"
"""The characters that are space to a server, for a character class of a regular expression."""
CONTROLS = r"\x00-\x20\x7f"
"""The characters after two minus signs that make them a comment."""

_SPACE = re.compile(rf"[{SPACES}]+")
_COMMENT = re.compile(rf"(?:#|--(?=[{CONTROLS}]|$))[^\n]*")
_EXECUTABLE = re.compile(r"/\*M?!(\d{5,6})?")
_LETTER = r"[0-9A-Za-z_$\u0080-\U0010ffff]"
_NUMBER = re.compile(rf"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!{_LETTER})", re.ASCII)
_HEX = re.compile(rf"(?:0x([0-9A-Fa-f]+)|[xX]'((?:[0-9A-Fa-f]{{2}})*)')(?!{_LETTER})")
_BITS = re.compile(rf"(?:0b([01]+)|[bB]'([01]*)')(?!{_LETTER})")
_WORD = re.compile(rf"{_LETTER}+")
_NO_BREAK = "\u00a0"  # the only space beyond ASCII in single-byte character sets
_MODES = {
    "REAL_AS_FLOAT": 1,
    "ANSI_QUOTES": 4,
    "ORACLE": 512,
    "MAXDB": 4096,
    "NO_BACKSLASH_ESCAPES": 1 << 20,
    "NO_ZERO_IN_DATE": 1 << 23,
    "ALLOW_INVALID_DATES": 1 << 25,
    "TIME_TRUNCATE_FRACTIONAL": 1 << 32,  # a MySQL's
    "EMPTY_STRING_IS_NULL": 1 << 32,  # a MariaDB's
    "TIME_ROUND_FRACTIONAL": 1 << 34,  # a MariaDB's
}
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def quoted(name: str) -> str:
    """A name in backticks, which each sql_mode reads as a name."""
    return f"`{name.replace('`', '``')}`"


class Lexeme(Enum):
    """The kind of a token."""

    WORD = auto()  # a keyword or an unquoted name
    NAME = auto()  # a quoted name
    STRING = auto()
    NUMBER = auto()
    HEX = auto()  # text: the digits
    BITS = auto()  # text: the digits
    SIGN = auto()  # one character
    UNREAD = auto()  # the rest of the text is not understood
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text (of strings and quoted names without quotes and escapes), its start and its end."""

    kind: Lexeme
    text: str
    at: int
    end: int = 0


def readings(sql: str, sql_mode: str = "", *, whole: bool = True) -> list[list[Token]]:
    """The ways that servers may read a statement: one, or two where an executable comment is in doubt.

    Args:
        sql: one statement.
        sql_mode: the session's modes, comma-separated, or as the number in the binary log.
        whole: True: all text must be understood. False: an UNREAD token before END represents the rest, for callers
            that need only the first words.

    Returns:
        Each reading's tokens, ended by an END token.

    Raises:
        Unsupported: a string, name or comment does not end.
    """
    modes = sql_modes(sql_mode)
    every = _tokens(sql, modes, None, whole)
    sure = _tokens(sql, modes, ALWAYS_EXECUTED, whole)
    return [every] if every == sure else [every, sure]


def check_spaces(statement: Statement) -> None:
    """Refuse a statement with a character that is space only in the session's character set.

    U+00A0 is a letter in UTF-8; in a single-byte character set it is space, outside of quotes and comments.

    Raises:
        Unsupported: the statement has such a character.
    """
    charset = statement.options.get("character_set_client", "")
    if _NO_BREAK not in statement.sql or charset in ("", "binary") or charset.startswith("utf8"):
        return
    for tokens in readings(statement.sql, statement.options.get("sql_mode", ""), whole=False):
        if any(token.kind is Lexeme.WORD and _NO_BREAK in token.text for token in tokens):
            raise Unsupported(f"a no-break space (U+00A0) outside of quotes, which is space in {charset}")


def in_tokens(statement: Statement, found: Callable[[str], bool]) -> bool:
    """True if `found` accepts a token of the statement; comments are not searched."""
    sql = statement.sql
    ways = readings(sql, statement.options.get("sql_mode", ""), whole=False)
    return any(found(sql[token.at : token.end]) for tokens in ways for token in tokens)


def sql_modes(sql_mode: str) -> set[str]:
    """Return the session's modes that change the grammar. A bit may mean two modes: servers differ.

    Args:
        sql_mode: names, separated by commas, or the number in a QUERY event (MySQL's `sql/query_options.h` and
            `MODE_…` of `sql/sql_const.h`).
    """
    if sql_mode.isdecimal():
        return {name for name, bit in _MODES.items() if int(sql_mode) & bit}
    return set(sql_mode.upper().split(","))


def _tokens(sql: str, modes: set[str], newest: int | None, whole: bool) -> list[Token]:
    found: list[Token] = []
    try:
        _lex(sql, modes, newest, found)
    except Unsupported:
        if whole:
            raise
        end = found[-1].end if found else 0
        found.append(Token(Lexeme.UNREAD, sql[end : end + 20], end, len(sql)))
    found.append(Token(Lexeme.END, "", len(sql), len(sql)))
    return found


def _lex(sql: str, modes: set[str], newest: int | None, found: list[Token]) -> None:
    ansi = bool(modes & {"ANSI_QUOTES", "ANSI"})
    backslash = "NO_BACKSLASH_ESCAPES" not in modes
    at, executing = 0, False
    while at < len(sql):
        character = sql[at]
        if (match := _SPACE.match(sql, at)) or (match := _COMMENT.match(sql, at)):
            at = match.end()
        elif executing and sql.startswith("*/", at):
            at, executing = at + 2, False
        elif (match := _EXECUTABLE.match(sql, at)) and _executed(match, newest):
            at, executing = match.end(), True
        elif sql.startswith("/*", at):
            at = _comment_end(sql, at)
        elif character == "." and _follows(found, at, Lexeme.WORD, Lexeme.NAME):
            found.append(Token(Lexeme.SIGN, ".", at, at + 1))  # not the decimal point of a number
            at += 1
        elif _follows(found, at, Lexeme.SIGN) and sql[at - 1] == "." and (match := _WORD.match(sql, at)):
            found.append(Token(Lexeme.WORD, match[0], at, match.end()))
            at = match.end()
        elif match := _HEX.match(sql, at):
            found.append(Token(Lexeme.HEX, match[1] or match[2] or "", at, match.end()))
            at = match.end()
        elif match := _BITS.match(sql, at):
            found.append(Token(Lexeme.BITS, match[1] or match[2] or "", at, match.end()))
            at = match.end()
        elif match := _NUMBER.match(sql, at):
            found.append(Token(Lexeme.NUMBER, match[0], at, match.end()))
            at = match.end()
        elif match := _WORD.match(sql, at):
            found.append(Token(Lexeme.WORD, match[0], at, match.end()))
            at = match.end()
        elif character in "`'\"":
            name = character == "`" or (character == '"' and ansi)
            text, end = _quoted(sql, at, backslash and not name)
            found.append(Token(Lexeme.NAME if name else Lexeme.STRING, text, at, end))
            at = end
        else:
            found.append(Token(Lexeme.SIGN, character, at, at + 1))
            at += 1
    if executing:
        raise Unsupported("a comment does not end", sql=sql)


def _follows(found: list[Token], at: int, *kinds: Lexeme) -> bool:
    """True if a token of one of these kinds ends here: after a dot a name may be only digits, `shop.2024`."""
    return bool(found) and found[-1].end == at and found[-1].kind in kinds


def _executed(match: re.Match[str], newest: int | None) -> bool:
    if newest is None:
        return True
    return not match[0].startswith("/*M") and int(match[1] or 0) <= newest


def _comment_end(sql: str, at: int) -> int:
    """Return the offset after a comment; a comment inside an executable comment that is not executed is part of it."""
    nested = sql.startswith(("/*!", "/*M!"), at)
    at += 2
    depth = 1
    while depth:
        close = sql.find("*/", at)
        if close < 0:
            raise Unsupported("a comment does not end", sql=sql)
        inner = sql.find("/*", at, close) if nested else -1
        depth += 1 if inner >= 0 else -1
        at = (inner if inner >= 0 else close) + 2
    return at


def _quoted(sql: str, at: int, backslash: bool) -> tuple[str, int]:
    quote = sql[at]
    parts: list[str] = []
    at += 1
    while at < len(sql):
        character = sql[at]
        if character == quote:
            if not sql.startswith(quote, at + 1):
                return "".join(parts), at + 1
            parts.append(quote)
            at += 2
        elif character == "\\" and backslash and at + 1 < len(sql):
            escaped = sql[at + 1]
            # \% and \_ keep their backslash outside of LIKE patterns.
            parts.append("\\" + escaped if escaped in "%_" else _ESCAPES.get(escaped, escaped))
            at += 2
        else:
            parts.append(character)
            at += 1
    raise Unsupported("a quoted string or name does not end", sql=sql)
