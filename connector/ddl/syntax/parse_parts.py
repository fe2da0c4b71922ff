"""Parses parts of several statements: expressions, parts of indexes, the other end of a foreign key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from connector.ddl.syntax.ast_column import (
    Expression,
    IndexColumn,
    IndexPart,
    IndexParts,
    NotUnderstood,
    ReferenceAction,
    References,
)
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.errors import Unsupported

Part = TypeVar("Part")
_ACTIONS: Final = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"), ("RESTRICT",), ("NO", "ACTION"))


def attempt(reader: TokenReader, read: Callable[[TokenReader], Part]) -> Part | NotUnderstood:
    """Parse a part; if the grammar does not know it, skip to the next comma or closing parenthesis.

    Raises:
        Unsupported: the part has no such end.
    """
    mark, start = reader.mark, reader.start
    try:
        return read(reader)
    except Unsupported as error:
        reader.back(mark)
        reader.skip_clause()
        return NotUnderstood(reader.since(start), error.message)


def condition(reader: TokenReader, *words: str) -> bool:
    """Skip IF and these words, and return True if they are there. Stop at another condition: IF is never a name."""
    found = reader.accept("IF", *words)
    if reader.peek("IF"):
        reader.stop(f"another condition than IF {' '.join(words)}")
    return found


def pass_wait(reader: TokenReader) -> None:
    """Skip MariaDB's lock wait after a table's name: WAIT n or NOWAIT."""
    if reader.mariadb and not reader.accept("NOWAIT") and reader.accept("WAIT"):
        reader.take()


def algorithm_or_lock(reader: TokenReader) -> bool:
    """Skip ALGORITHM [=] … or LOCK [=] …; return True if it was there."""
    if not reader.accept_any("ALGORITHM", "LOCK"):
        return False
    reader.accept("=")
    reader.name()
    return True


def parenthesized(reader: TokenReader) -> Expression:
    """Parse `( … )`."""
    start = reader.start
    reader.skip_parentheses()
    return Expression(reader.since(start))


def index_parts(reader: TokenReader) -> IndexParts:
    """Parse `(column[(length)] [ASC | DESC] or (expression), …)`; anything else up to the closing parenthesis."""
    mark, start = reader.mark, reader.start
    try:
        return _index_parts(reader)
    except Unsupported as error:
        reader.back(mark)
        reader.skip_parentheses()
        return NotUnderstood(reader.since(start), error.message)


def _index_parts(reader: TokenReader) -> tuple[IndexPart, ...]:
    reader.expect("(")
    parts: list[IndexPart] = []
    while not reader.accept(")"):
        if reader.peek("("):
            parts.append(parenthesized(reader))
        else:
            parts.append(index_column(reader))
        reader.accept_any("ASC", "DESC")
        if not reader.accept(",") and not reader.peek(")"):
            reader.stop("unknown part of an index")
    return tuple(parts)


def index_column(reader: TokenReader) -> IndexColumn:
    """Read `column[(length)] [ASC | DESC]`."""
    column, length = reader.column(), reader.numbers()
    return IndexColumn(column, length[0] if length else 0, reader.accept_any("ASC", "DESC") == "DESC")


def references(reader: TokenReader) -> References:
    """Parse the text after REFERENCES."""
    start = reader.start
    schema, table = "", reader.name()
    if reader.accept("."):
        schema, table = table, reader.name()
    columns = index_parts(reader) if reader.peek("(") else ()
    actions: list[ReferenceAction] = []
    while word := reader.accept_any("ON", "MATCH"):
        event = reader.accept_any("DELETE", "UPDATE")
        action = next((" ".join(words) for words in _ACTIONS if reader.accept(*words)), "")
        if not action:
            reader.take()
        if word == "ON":
            actions.append(ReferenceAction(event, action))
    return References(reader.since(start), schema, table, columns, tuple(actions))


def references_among(tokens: Sequence[Token]) -> Iterator[tuple[str, References, bool]]:
    """Find the foreign keys in a part of a definition that is not understood.

    Yields:
        The constraint's name ("" without one), the other end, and True if it is in a column's own definition.

    Raises:
        Unsupported: the text after REFERENCES is not understood.
    """
    end = tokens[-1].end if tokens else 0
    reader = TokenReader([*tokens, *2 * [Token(Lexeme.END, "", end, end)]], "")
    name, inline = "", True
    while not reader.at_end:
        if reader.accept("CONSTRAINT"):
            reader.accept("IF", "NOT", "EXISTS")
            name = "" if reader.peek("FOREIGN") or reader.token.kind is Lexeme.SIGN else reader.take().text
        elif reader.accept("FOREIGN", "KEY"):
            inline = False
        elif reader.accept("REFERENCES"):
            yield name, references(reader), inline
            name, inline = "", True
        elif not reader.at_end:
            if reader.peek(","):
                name = ""
            reader.take()


def comment_text(reader: TokenReader) -> str:
    """Parse the value of COMMENT. U+FFFD stands for bytes that mean nothing: no statement stops for its comment.

    Raises:
        Unsupported: it is not a string.
    """
    reader.accept("=")
    if reader.token.kind is not Lexeme.STRING:
        reader.stop("expected a string")
    text = ""
    while reader.token.kind is Lexeme.STRING:
        text += reader.take().text
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
