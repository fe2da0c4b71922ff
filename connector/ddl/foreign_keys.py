"""Finds the foreign keys of a definition whose actions change rows, even if other parts are not understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from connector.ddl.syntax.ast import ParsedStatement, defined_items
from connector.ddl.syntax.ast_column import DefinedColumn, InlineReferences, NotUnderstood, References, stop
from connector.ddl.syntax.ast_table import CheckConstraint, ForeignKey, Index, PrimaryKey, TableItem
from connector.ddl.syntax.clauses import UnknownClause
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.parse_parts import references_among
from connector.ddl.syntax.tokens import Token
from connector.log.transaction.batch import Statement

_IDLE: Final = frozenset({"RESTRICT", "NO ACTION"})


@dataclass(frozen=True, slots=True)
class CascadingReference:
    """A foreign key with such an action.

    Args:
        name: the constraint's name; "" if the definition has none.
        actions: the actions in the definition: `ON DELETE CASCADE, ON UPDATE SET NULL`.
        inline: true for REFERENCES in a column's own definition, which MySQL before 9.0 ignores.
    """

    name: str
    actions: str
    inline: bool


def cascading_references(statement: Statement) -> list[CascadingReference]:
    """Return the foreign keys of a statement whose actions change rows of the defined table.

    Raises:
        Unsupported: a foreign key is not understood.
    """
    found = [
        key for parsed in parse(statement) for item in defined_items(parsed.command) for key in _of_item(item, parsed)
    ]
    return list(dict.fromkeys(key for key in found if key.actions))


def _of_item(item: TableItem | UnknownClause, parsed: ParsedStatement) -> Iterator[CascadingReference]:
    match item:
        case NotUnderstood(span, _) | UnknownClause(span, _):
            yield from _among(parsed.within(span))
        case DefinedColumn(_, _, definition, _):
            if isinstance(definition, NotUnderstood):
                yield from _among(parsed.within(definition.span))
                return
            for one in definition.attributes:
                if isinstance(one, InlineReferences):
                    yield CascadingReference("", _actions(one.references), inline=True)
        case ForeignKey(span, name, _, end):
            if isinstance(end, NotUnderstood):
                yield from _among(parsed.within(span))
            else:
                yield CascadingReference(name, _actions(end), inline=False)
        case PrimaryKey() | Index() | CheckConstraint():
            pass
        case _:
            assert_never(item)


def _actions(end: References) -> str:
    """Return the actions that change rows."""
    found = []
    for one in end.actions:
        if one.event and not one.action:
            stop("unknown action of a foreign key")
        if one.event and one.action not in _IDLE:
            found.append(f"ON {one.event} {one.action}")
    return ", ".join(found)


def _among(tokens: Sequence[Token]) -> Iterator[CascadingReference]:
    """Yield the foreign keys in a part of a definition that is not understood."""
    for name, end, inline in references_among(tokens):
        yield CascadingReference(name, _actions(end), inline)
