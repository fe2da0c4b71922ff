"""The grammar of what stands in several places: expressions, parts of indexes, the other end of a foreign key."""

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
from connector.ddl.syntax.reader import Reader
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.errors import Unsupported

Part = TypeVar("Part")
_ACTIONS: Final = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"), ("RESTRICT",), ("NO", "ACTION"))


def attempt(reader: Reader, read: Callable[[Reader], Part]) -> Part | NotUnderstood:
    """Read a part; what the grammar does not have is passed up to the comma or parenthesis behind it.

    Raises:
        Unsupported: it has no such end.
    """
    mark, start = reader.mark, reader.start
    try:
        return read(reader)
    except Unsupported as error:
        reader.back(mark)
        reader.skip_clause()
        return NotUnderstood(reader.since(start), error.message)


def condition(reader: Reader, *words: str) -> bool:
    """Pass IF and these words; whether they are there. Another verb's condition stops: IF is never a name."""
    found = reader.accept("IF", *words)
    if reader.peek("IF"):
        reader.stop(f"another condition than IF {' '.join(words)}")
    return found


def pass_wait(reader: Reader) -> None:
    """Pass MariaDB's WAIT n or NOWAIT behind a table's name: how long to wait for its lock."""
    if reader.mariadb and not reader.accept("NOWAIT") and reader.accept("WAIT"):
        reader.take()


def algorithm_or_lock(reader: Reader) -> bool:
    """Pass ALGORITHM [=] … or LOCK [=] …: how a change is made, whatever it is."""
    if not reader.accept_any("ALGORITHM", "LOCK"):
        return False
    reader.accept("=")
    reader.name()
    return True


def parenthesized(reader: Reader) -> Expression:
    """Read `( … )`."""
    start = reader.start
    reader.skip_parentheses()
    return Expression(reader.since(start))


def index_parts(reader: Reader) -> IndexParts:
    """Read `(column[(length)] [ASC | DESC] or (expression), …)`; what is not that, to its closing parenthesis."""
    mark, start = reader.mark, reader.start
    try:
        return _index_parts(reader)
    except Unsupported as error:
        reader.back(mark)
        reader.skip_parentheses()
        return NotUnderstood(reader.since(start), error.message)


def _index_parts(reader: Reader) -> tuple[IndexPart, ...]:
    reader.expect("(")
    parts: list[IndexPart] = []
    while not reader.accept(")"):
        if reader.peek("("):
            parts.append(parenthesized(reader))
        else:
            parts.append(IndexColumn(reader.column()))
            reader.numbers()
        reader.accept_any("ASC", "DESC")
        if not reader.accept(",") and not reader.peek(")"):
            reader.stop("a part of an index that is not known")
    return tuple(parts)


def references(reader: Reader) -> References:
    """Read what follows REFERENCES. Rows are not changed by it here: the log has what the source's foreign key did,
    or it does not, which `foreign_keys` is about."""
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
    """The foreign keys in a part of a definition that is not understood.

    Yields:
        The constraint's name ("" without one), the other end, and whether it stands in a column's own definition.

    Raises:
        Unsupported: what follows a REFERENCES is not understood.
    """
    end = tokens[-1].end if tokens else 0
    reader = Reader([*tokens, *2 * [Token(Lexeme.END, "", end, end)]], "")
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
