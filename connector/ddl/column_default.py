"""The syntax tree of a column's DEFAULT."""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.tokens import Lexeme


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant default.

    Args:
        kind: a token's: string, number, hex or bits.
        text: the token's; of a string without quotes and escapes.
        negative: whether a minus stands before it.
        charset: the character set that it is said to be in: _latin1'a'; "" for that of the session.
        type: DATE, TIME or TIMESTAMP of a string with such a word before it, else "".
        parts: of how many adjacent strings it is made.
        computed: whether it stands in parentheses.
    """

    kind: Lexeme
    text: str
    negative: bool = False
    charset: str = ""
    type: str = ""
    parts: int = 1
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """DEFAULT CURRENT_TIMESTAMP, or CURRENT_DATE.

    Args:
        places: how many digits its fraction has.
        date: whether it is the day alone.
    """

    places: int = 0
    date: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """A default, or a column, that the source computes."""


@dataclass(frozen=True, slots=True)
class Null:
    """DEFAULT NULL."""


Default = Literal | Now | Computed | Null
