"""The grammar of what stands in several places: expressions, parts of indexes, the other end of a foreign key."""

from __future__ import annotations

from collections.abc import Callable
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
