"""The privileges of the target's user, as the server lists them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

EVERYWHERE: Final = "*"
OWN: Final = "`thl`"
_ALL: Final = "ALL PRIVILEGES"
_GRANT: Final = re.compile(r"GRANT (.+?) ON (\*|`(?:[^`]|``)+`)\.\* TO ", re.DOTALL)
_PATTERN: Final = re.compile(r"\\(.)|([%_])|(.)", re.DOTALL)

Granted = Mapping[str, set[str]]
"""The privileges of a user and its active roles: `*`, or the quoted name of a database → their names."""


def granted_by_scope(lines: Sequence[str]) -> dict[str, set[str]]:
    """Read the lines of SHOW GRANTS.

    `information_schema.user_privileges` knows no roles, and shows who may read `mysql` everybody's privileges.
    """
    found: dict[str, set[str]] = {}
    for line in lines:
        if grant := _GRANT.match(line):
            found.setdefault(grant[2], set()).update(name.strip().upper() for name in grant[1].split(","))
    return found


def has(granted: Granted, privilege: str, schema: str) -> bool:
    """True if a user has a privilege on all of a database."""
    return bool(_on(granted, schema) & {privilege, _ALL})


def _on(granted: Granted, schema: str) -> set[str]:
    """The privileges on a database.

    The names of databases in grants are patterns of LIKE. Of those that match, the server takes one, that whose first
    wildcard comes last: what the others give is void there.
    """
    scopes = [scope for scope in granted if scope != EVERYWHERE and _regex(scope).fullmatch(schema)]
    taken = max(scopes, key=_first_wildcard, default="")
    return granted.get(EVERYWHERE, set()) | granted.get(taken, set())


def _first_wildcard(scope: str) -> float:
    parts = _PATTERN.findall(scope[1:-1].replace("``", "`"))
    return next((at for at, (_, wildcard, _) in enumerate(parts) if wildcard), math.inf)


def _regex(scope: str) -> re.Pattern[str]:
    parts = _PATTERN.findall(scope[1:-1].replace("``", "`"))
    written = ({"%": ".*", "_": "."}.get(wildcard) or re.escape(escaped or plain) for escaped, wildcard, plain in parts)
    return re.compile("".join(written), re.DOTALL)


def lacking(granted: Granted, needed: Sequence[str], databases: Collection[str] | None = None) -> dict[str, list[str]]:
    """The privileges that a user lacks: `*`, or the quoted name of a database → their names.

    Args:
        granted: what the user has.
        needed: the privileges that an applier needs on each database of the log, and on its own.
        databases: the databases of the log; the applier refuses a later one. None: they are not known. Then a user who
            may write to databases needs all privileges on each of them, and any other user needs them on `*.*`.
    """
    found: dict[str, list[str]] = {}
    if databases is None:
        everywhere = granted.get(EVERYWHERE, set())
        scopes = [scope for scope, names in granted.items() if scope != EVERYWHERE and names & {"INSERT", _ALL}]
        for scope in scopes if set(scopes) - {OWN} else [EVERYWHERE]:
            found[scope] = [name for name in needed if not (everywhere | granted.get(scope, set())) & {name, _ALL}]
        if EVERYWHERE not in found:
            found = {OWN: [name for name in needed if not has(granted, name, "thl")]} | found
    else:
        for schema in ("thl", *sorted(databases)):
            found[f"`{schema.replace('`', '``')}`"] = [name for name in needed if not has(granted, name, schema)]
    return {scope: names for scope, names in found.items() if names}
