"""The privileges of the target's user, as the server lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    """True if a user has a privilege on all of a database; the names of databases in grants are patterns of LIKE."""
    return any(
        names & {privilege, _ALL} and (scope == EVERYWHERE or _regex(scope).fullmatch(schema))
        for scope, names in granted.items()
    )


def _regex(scope: str) -> re.Pattern[str]:
    parts = _PATTERN.findall(scope[1:-1].replace("``", "`"))
    written = ({"%": ".*", "_": "."}.get(wildcard) or re.escape(escaped or plain) for escaped, wildcard, plain in parts)
    return re.compile("".join(written), re.DOTALL)


def lacking(granted: Granted, needed: Sequence[str]) -> dict[str, list[str]]:
    """The privileges that a user lacks: `*`, or the quoted name of a database → their names.

    A user who may write to databases needs all of them on each, and on `thl`; any other user needs them on `*.*`.
    Which databases the log has is not known here: the applier says so where it comes to another one.
    """
    everywhere = granted.get(EVERYWHERE, set())
    databases = [scope for scope, names in granted.items() if scope != EVERYWHERE and names & {"INSERT", _ALL}]
    scopes = dict.fromkeys((OWN, *databases)) if set(databases) - {OWN} else {EVERYWHERE: None}
    found = {
        scope: [name for name in needed if not (everywhere | granted.get(scope, set())) & {name, _ALL}]
        for scope in scopes
    }
    return {scope: names for scope, names in found.items() if names}
