"""Foreign keys of a definition whose actions change rows: found by its tokens, whatever else the definition says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.ddl.reader import Reader
from connector.ddl.tokens import Lexeme

_ACTIONS: Final = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"), ("RESTRICT",), ("NO", "ACTION"))
_IDLE: Final = frozenset({"RESTRICT", "NO ACTION"})


@dataclass(frozen=True, slots=True)
class CascadingReference:
    """A foreign key with such an action.

    Args:
        name: the constraint's; "" where the definition gives none.
        actions: as the definition has them: `ON DELETE CASCADE, ON UPDATE SET NULL`.
        inline: it stands in a column's own definition, where a MySQL before 9.0 takes no notice of it.
    """

    name: str
    actions: str
    inline: bool


def cascading_references(reader: Reader) -> list[CascadingReference]:
    """The foreign keys from here to the statement's end whose actions change rows of the table that is defined."""
    found = []
    name, inline = "", True
    while not reader.at_end:
        if reader.accept("CONSTRAINT"):
            reader.accept("IF", "NOT", "EXISTS")
            name = "" if reader.peek("FOREIGN") or reader.token.kind is Lexeme.SIGN else reader.take().text
        elif reader.accept("FOREIGN", "KEY"):
            inline = False
        elif reader.accept("REFERENCES"):
            actions = _actions(reader)
            if actions:
                found.append(CascadingReference(name, ", ".join(actions), inline))
            name, inline = "", True
        elif not reader.at_end:
            if reader.peek(","):
                name = ""
            reader.take()
    return found


def _actions(reader: Reader) -> list[str]:
    """What stands behind REFERENCES: the table, its columns, MATCH, and the actions."""
    reader.name()
    if reader.accept("."):
        reader.name()
    if reader.peek("("):
        reader.skip_parentheses()
    if reader.accept("MATCH"):
        reader.take()
    found = []
    while event := next((word for word in ("DELETE", "UPDATE") if reader.accept("ON", word)), ""):
        action = next((" ".join(words) for words in _ACTIONS if reader.accept(*words)), "")
        if not action:
            reader.stop("an action of a foreign key that is not known")
        if action not in _IDLE:
            found.append(f"ON {event} {action}")
    return found
