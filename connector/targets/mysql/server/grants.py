"""The privileges of the target's user, as the server lists them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.mysql_grants import ALL, grants_of, taken

EVERYWHERE: Final = "*"
OWN: Final = "`thl`"


@dataclass(frozen=True, slots=True)
class Granted:
    """The privileges of a user and its active roles on everything and on databases.

    Args:
        everywhere: the names of those on `*.*`.
        databases: pattern of a database → the names of those on it.
        revoked: database → the names of those that `*.*` does not give there: partial_revokes=ON.
        literal: true if no pattern has wildcards: partial_revokes=ON.
        folds: true if the case of names does not matter: lower_case_table_names. Those here are in lower case then.
    """

    everywhere: set[str] = field(default_factory=set)
    databases: Mapping[str, set[str]] = field(default_factory=dict)
    revoked: Mapping[str, set[str]] = field(default_factory=dict)
    literal: bool = False
    folds: bool = False

    def has(self, privilege: str, schema: str) -> bool:
        """True if the user has a privilege on all of a database: of its grants the server takes one."""
        name = schema.lower() if self.folds else schema
        return self._gives(privilege, name, taken(self.databases, name, literal=self.literal) or "")

    def _gives(self, privilege: str, name: str, pattern: str) -> bool:
        """True if a privilege on a database is given everywhere, or by the grants of a pattern."""
        either = {privilege, ALL}
        everywhere = self.everywhere & either and not self.revoked.get(name, set()) & either
        return bool(everywhere or self.databases.get(pattern, set()) & either)

    def lacking(self, needed: Sequence[str], databases: Collection[str] | None = None) -> dict[str, list[str]]:
        """The privileges that the user lacks: `*`, or the quoted name of a database → their names.

        Args:
            needed: the privileges that an applier needs on each database of the log, and on its own.
            databases: the databases of the log; the applier refuses a later one. None: they are not known. Then a user
                who may write to databases needs all privileges on each of them, and any other user needs them on `*.*`.
        """
        found = {OWN: [name for name in needed if not self.has(name, "thl")]}
        written = [pattern for pattern, names in self.databases.items() if names & {"INSERT", ALL}]
        if databases is not None:
            found |= {quoted(one): [name for name in needed if not self.has(name, one)] for one in sorted(databases)}
        elif set(written) - {"thl"}:
            found |= {quoted(one): [name for name in needed if not self._gives(name, one, one)] for one in written}
        elif everywhere := [name for name in needed if not self.everywhere & {name, ALL}]:
            found = {EVERYWHERE: everywhere}
        return {scope: names for scope, names in found.items() if names}

    def kept_from(self, needed: Sequence[str]) -> dict[str, list[str]]:
        """The databases from which partial revokes keep a user: the quoted name → the needed privileges it lacks there.

        Without known databases `lacking` leaves them out: a log need not have a database of which they are taken.
        """
        found = {
            quoted(schema): [name for name in needed if not self.has(name, schema)] for schema in sorted(self.revoked)
        }
        return {scope: names for scope, names in found.items() if names}


def granted_to(lines: Sequence[str], *, literal: bool = False, folds: bool = False) -> Granted:
    """Read the lines of SHOW GRANTS.

    `information_schema.user_privileges` knows no roles, and shows who may read `mysql` everybody's privileges.

    Args:
        lines: the lines.
        literal, folds: of the server.
    """
    everywhere: set[str] = set()
    databases: dict[str, set[str]] = {}
    revoked: dict[str, set[str]] = {}
    for one in grants_of(lines, folds=folds):
        if one.schema is None:
            everywhere |= one.names
        elif one.table is None:
            (revoked if one.revoked else databases).setdefault(one.schema, set()).update(one.names)
    return Granted(everywhere, databases, revoked, literal, folds)
