"""The privileges of a MySQL user, from SHOW GRANTS.

Without SELECT, `information_schema` leaves a table out and reports no error. So the grants must show that the initial
load sees every captured table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from connector.mysql.server.connection import Connection, query
from connector.mysql_grants import ALL, before, grants_of, prefix, rank, taken
from connector.patterns import glob

_ROLES = re.compile(r"GRANT (?P<roles>`(?:(?! ON ).)+?) TO ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Privileges:
    """Privileges by scope.

    Args:
        everywhere: granted on `*.*`, static and dynamic ones, in upper case.
        schemas: `(pattern, privileges)` granted on a schema; `_` and `%` are wild in the pattern.
        tables: `(schema, table)` → privileges granted on the whole table.
        without: schemas whose SELECT is taken from that on `*.*`: partial_revokes=ON.
        literal: true if `_` and `%` are not wild: partial_revokes=ON.
        folds: true if the case of names does not matter: lower_case_table_names. Those here are in lower case then.
        inactive: roles that the user has, as in SET DEFAULT ROLE, and that are not active.
    """

    everywhere: frozenset[str] = frozenset()
    schemas: tuple[tuple[str, frozenset[str]], ...] = ()
    tables: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    literal: bool = False
    folds: bool = False
    inactive: tuple[str, ...] = ()

    def has(self, *any_of: str) -> bool:
        """True if one of these is granted on `*.*`."""
        return ALL in self.everywhere or any(name in self.everywhere for name in any_of)

    def may_select(self, schema: str, table: str = "*") -> bool:
        """True if a table can be read.

        Args:
            schema: its schema; with `*` and `?`: every schema that matches.
            table: its name; `*`: every table of the schema.
        """
        if self.folds:
            schema, table = schema.lower(), table.lower()
        everywhere = self.has("SELECT") and not any(map(glob(schema).fullmatch, self.without))
        if everywhere or self._selects_schema(schema):
            return True
        return table != "*" and _selects(self.tables.get((schema, table), frozenset()))

    def _selects_schema(self, schema: str) -> bool:
        """True if SELECT is granted on a schema, or on every one that a pattern with `*` and `?` matches.

        Of the grants that match a schema the server takes one (`rank`). A pattern is taken for uncovered if a grant
        without SELECT may be taken for some of it.
        """
        granted: dict[str, frozenset[str]] = {}
        for pattern, names in self.schemas:
            granted[pattern] = granted.get(pattern, frozenset()) | names
        first = taken(granted, schema, literal=self.literal)
        return (
            first is not None
            and _selects(granted[first])
            and all(_selects(names) or not self._may_precede(one, first, schema) for one, names in granted.items())
        )

    def _may_precede(self, pattern: str, taken: str, schema: str) -> bool:
        """True if the server may take a grant's pattern before another one, for a schema that a third one matches."""
        if pattern == taken or self._rank(pattern) < self._rank(taken):
            return False
        if not _is_glob(schema):
            return False  # `taken` is the first of those that match it
        ours, theirs = before(schema, "*?"), prefix(pattern, literal=self.literal)
        return ours.startswith(theirs) or theirs.startswith(ours)

    def _rank(self, pattern: str) -> float:
        return rank(pattern, literal=self.literal)


def unreadable(privileges: Privileges, patterns: Sequence[str]) -> Iterator[str]:
    """The scopes (as in GRANT) that may have captured tables and that the user may not read.

    Args:
        privileges: the user's.
        patterns: the patterns of `source.filters.do`; empty: everything.
    """
    for pattern in patterns or ("*.*",):
        schema, _, table = pattern.strip().partition(".")
        table = "*" if not table or _is_glob(table) or _is_glob(schema) else table
        if not privileges.may_select(schema, table):
            yield f"{_scope(schema, literal=privileges.literal)}.{table if table == '*' else f'`{table}`'}"


def read_privileges(connection: Connection) -> Privileges:
    """Reads the privileges of the connection's user, with its active roles."""
    found = query(
        connection,
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('partial_revokes', 'lower_case_table_names')",  # 8.0.16+, all
    )
    value = {str(row["Variable_name"]): str(row["Value"]).upper() for row in found}
    lines = [str(next(iter(row.values()))) for row in query(connection, "SHOW GRANTS")]
    read = parse_grants(
        lines, literal=value.get("partial_revokes") in {"ON", "1"}, folds=value["lower_case_table_names"] != "0"
    )
    if roles := granted_roles(lines):
        active = str(query(connection, "SELECT CURRENT_ROLE() AS r")[0]["r"] or "NONE")
        # A MariaDB has one active role, which brings those that it has; MySQL shows all active ones, quoted.
        kept = roles if active == "NONE" else [one for one in roles if "@" in active and one not in active]
        return replace(read, inactive=tuple(kept))
    return read


def granted_roles(lines: Sequence[str]) -> list[str]:
    """The roles in lines of SHOW GRANTS, quoted as they are there."""
    matched = filter(None, map(_ROLES.match, lines))
    return [role for found in matched for role in re.findall(r"`(?:[^`]|``)+`(?:@`(?:[^`]|``)+`)?", found["roles"])]


def parse_grants(lines: Sequence[str], *, literal: bool = False, folds: bool = False) -> Privileges:
    """Parses the lines of SHOW GRANTS; grants of roles, proxies and routines are ignored.

    Args:
        lines: the lines.
        literal: true if schema names have no wildcards: partial_revokes=ON.
        folds: true if the case of names does not matter.
    """
    everywhere: set[str] = set()
    schemas: list[tuple[str, frozenset[str]]] = []
    tables: dict[tuple[str, str], frozenset[str]] = {}
    without: set[str] = set()
    for one in grants_of(lines, folds=folds):
        if one.schema is None:
            everywhere |= one.names
        elif one.revoked:
            without |= {one.schema} if _selects(one.names) else set()
        elif one.table is None:
            schemas.append((one.schema, one.names))
        else:
            name = (one.schema, one.table)
            tables[name] = tables.get(name, frozenset()) | one.names
    return Privileges(frozenset(everywhere), tuple(schemas), tables, frozenset(without), literal, folds)


def _selects(names: frozenset[str]) -> bool:
    return bool(names & {"SELECT", ALL})


def _is_glob(name: str) -> bool:
    return "*" in name or "?" in name


def _scope(schema: str, *, literal: bool) -> str:
    """The schemas of a pattern as in GRANT."""
    if not _is_glob(schema):
        return f"`{schema}`"
    if literal or schema == "*":
        return "*"
    return "`" + re.sub(r"([_%])", r"\\\1", schema).replace("*", "%").replace("?", "_") + "`"
