"""The privileges of the target's user, as the server lists them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.mysql_grants import ALL, grants_of, matches, rank

EVERYWHERE: Final = "*"
OWN: Final = "`thl`"

Granted = Mapping[str, set[str]]
"""The privileges of a user and its active roles: `*`, or the quoted name of a database → their names."""


def granted_by_scope(lines: Sequence[str]) -> dict[str, set[str]]:
    """Read the lines of SHOW GRANTS.

    `information_schema.user_privileges` knows no roles, and shows who may read `mysql` everybody's privileges.
    """
    found: dict[str, set[str]] = {}
    for one in grants_of(lines):
        if one.table is None and not one.revoked:
            found.setdefault(EVERYWHERE if one.schema is None else quoted(one.schema), set()).update(one.names)
    return found


def has(granted: Granted, privilege: str, schema: str) -> bool:
    """True if a user has a privilege on all of a database."""
    return bool(_on(granted, schema) & {privilege, ALL})


def _on(granted: Granted, schema: str) -> set[str]:
    """The privileges on a database: those everywhere, and those of the one grant that the server takes."""
    patterns = [scope[1:-1].replace("``", "`") for scope in granted if scope != EVERYWHERE]
    taken = max((one for one in patterns if matches(one, schema)), key=rank, default="")
    return granted.get(EVERYWHERE, set()) | granted.get(quoted(taken), set())


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
        scopes = [scope for scope, names in granted.items() if scope != EVERYWHERE and names & {"INSERT", ALL}]
        for scope in scopes if set(scopes) - {OWN} else [EVERYWHERE]:
            found[scope] = [name for name in needed if not (everywhere | granted.get(scope, set())) & {name, ALL}]
        if EVERYWHERE not in found:
            found = {OWN: [name for name in needed if not has(granted, name, "thl")]} | found
    else:
        for schema in ("thl", *sorted(databases)):
            found[quoted(schema)] = [name for name in needed if not has(granted, name, schema)]
    return {scope: names for scope, names in found.items() if names}
