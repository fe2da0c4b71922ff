r"""The grants of a MySQL or MariaDB user, on a source or a target: the lines of SHOW GRANTS, and which of them count.

The name of a schema in a grant is a pattern of LIKE. Of the grants whose patterns match a schema the server takes one,
that of the highest `rank`; what the others give is void there. With partial_revokes=ON nothing is wild in a name, and
`\` is an ordinary character (asked of MySQL 9.7 and MariaDB 11.4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

ALL: Final = "ALL PRIVILEGES"
_NAME: Final = r"(?:[^`]|``)+"
_LINE: Final = re.compile(
    rf"(?P<verb>GRANT|REVOKE) (?P<names>.+?) ON (?:\*|`(?P<schema>{_NAME})`)\.(?:\*|`(?P<table>{_NAME})`) (?:TO|FROM) ",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Grant:
    """A line of SHOW GRANTS.

    Args:
        revoked: true: it takes privileges away, from those on `*.*`: partial_revokes=ON.
        names: of the privileges, in upper case.
        schema: the pattern, not quoted; None: `*.*`.
        table: its name, not quoted; None: every table.
    """

    revoked: bool
    names: frozenset[str]
    schema: str | None
    table: str | None


def grants_of(lines: Iterable[str], *, folds: bool = False) -> Iterator[Grant]:
    """Read the lines of SHOW GRANTS; those of roles, proxies and routines are left out.

    Args:
        lines: the lines.
        folds: true if the case of names does not matter: they are returned in lower case.
    """
    for found in filter(None, map(_LINE.match, lines)):
        names = frozenset(name.strip().upper() for name in found["names"].split(","))
        parts = (part and part.replace("``", "`") for part in (found["schema"], found["table"]))
        schema, table = (part and (part.lower() if folds else part) for part in parts)
        yield Grant(found["verb"] == "REVOKE", names, schema, table)


def matches(pattern: str, name: str, *, literal: bool = False) -> bool:
    """True if a grant's pattern matches a schema.

    Args:
        pattern: the pattern.
        name: the schema's; with `*` and `?`, which no name has, it stands for all names that it matches.
        literal: true if `_` and `%` are not wild: partial_revokes=ON.
    """
    if literal:
        return pattern == name
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "[^*]"}
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None


def taken(patterns: Iterable[str], name: str, *, literal: bool = False) -> str | None:
    """The pattern of the one grant that counts for a schema, as of `matches`; None: none matches it."""
    matching = [pattern for pattern in patterns if matches(pattern, name, literal=literal)]
    return max(matching, key=lambda pattern: rank(pattern, literal=literal), default=None)


def rank(pattern: str, *, literal: bool = False) -> float:
    """The length of a pattern before its first wildcard; infinite without one."""
    begin = prefix(pattern, literal=literal)
    return len(begin) if len(begin) < len(_ESCAPED.sub(r"\1", pattern)) else math.inf


def prefix(pattern: str, *, literal: bool = False) -> str:
    """The part of a pattern before its first wildcard, without escapes."""
    return pattern if literal else _ESCAPED.sub(r"\1", before(pattern, "%_"))


def before(pattern: str, wild: str) -> str:
    """The part of a pattern before the first character of `wild` that is not escaped."""
    found = re.match(rf"(?:\\.|[^{wild}\\])*", pattern, re.DOTALL)
    return found[0] if found else ""
