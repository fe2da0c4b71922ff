"""Statements about triggers and temporary tables, as far as a target must know them that executes changes.

Changes fire the triggers of their tables, so such a target needs the source's. It does not have the source's temporary
tables, one of which may hide a table of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from connector.ddl.syntax.tokens import Lexeme, Token
from connector.log.transaction.layout import TableName

_OTHERS: Final = frozenset({"VIEW", "EVENT", "PROCEDURE", "FUNCTION", "USER", "ROLE", "SERVER", "TABLE"})


@dataclass(frozen=True, slots=True)
class TriggerStatement:
    """A statement that creates or drops a trigger.

    Args:
        creates: true: CREATE; false: DROP.
        name: the trigger; its schema is its table's.
        on: its table; None: DROP does not tell.
    """

    creates: bool
    name: TableName
    on: TableName | None


def trigger_of(tokens: Sequence[Token], schema: str) -> TriggerStatement | None:
    """Parse a statement.

    Args:
        tokens: the statement's.
        schema: the default schema of its session.

    Returns:
        None if it is no statement about a trigger.
    """
    words = [token.text.upper() if token.kind is Lexeme.WORD else "" for token in tokens]
    if not words or words[0] not in ("CREATE", "DROP") or "TRIGGER" not in words:
        return None
    at = words.index("TRIGGER") + 1
    if not _OTHERS.isdisjoint(words[:at]):
        return None
    while words[at] in ("IF", "NOT", "EXISTS"):
        at += 1
    name, at = _name(tokens, at, schema)
    if words[0] == "DROP":
        return TriggerStatement(creates=False, name=name, on=None)
    on, _ = _name(tokens, words.index("ON", at) + 1, schema)
    return TriggerStatement(creates=True, name=TableName(on.schema, name.table), on=on)


def temporary_table_of(tokens: Sequence[Token], schema: str) -> TableName | None:
    """The table that CREATE TEMPORARY TABLE creates; None if it is another statement.

    Args:
        tokens: the statement's.
        schema: the default schema of its session.
    """
    words = [token.text.upper() if token.kind is Lexeme.WORD else "" for token in tokens]
    found = next((at for at in range(len(words)) if words[at : at + 2] == ["TEMPORARY", "TABLE"]), None)
    if not words or words[0] != "CREATE" or found is None:
        return None
    at = found + 2
    while words[at] in ("IF", "NOT", "EXISTS"):
        at += 1
    return _name(tokens, at, schema)[0]


def _name(tokens: Sequence[Token], at: int, schema: str) -> tuple[TableName, int]:
    """A name, and the index of the token after it."""
    if tokens[at + 1].text == "." and tokens[at + 1].kind is Lexeme.SIGN:
        return TableName(tokens[at].text, tokens[at + 2].text), at + 3
    return TableName(schema, tokens[at].text), at + 1
