"""The privileges of a MySQL user, from SHOW GRANTS.

Without SELECT, `information_schema` leaves a table out and reports no error. So the grants must show that the initial
load sees every captured table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from connector.mysql.server.connection import Connection, query
from connector.patterns import glob

_LINE = re.compile(r"(?P<verb>GRANT|REVOKE) (?P<what>.+?) ON (?P<object>\S.*?) (?:TO|FROM) ", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ROLES = re.compile(r"GRANT (?P<roles>`(?:(?! ON ).)+?) TO ", re.DOTALL)
_OBJECT = re.compile(r"(?P<schema>\*|`(?:[^`]|``)+`)\.(?P<table>\*|`(?:[^`]|``)+`)")


@dataclass(frozen=True, slots=True)
class Privileges:
    """Privileges by scope.

    Args:
        everywhere: granted on `*.*`, static and dynamic ones, in upper case.
        schemas: `(pattern, privileges)` granted on a schema; `_` and `%` are wild in the pattern.
        tables: `(schema, table)` → privileges granted on the whole table.
        without: schemas whose SELECT is partially revoked.
        literal: true if `_` and `%` are not wild: partial_revokes=ON.
        folds: true if the case of names does not matter: lower_case_table_names.
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
        return "ALL PRIVILEGES" in self.everywhere or any(name in self.everywhere for name in any_of)

    def may_select(self, schema: str, table: str = "*") -> bool:
        """True if a table can be read.

        Args:
            schema: its schema; with `*` and `?`: every schema that matches.
            table: its name; `*`: every table of the schema.
        """
        schema, table = self._fold(schema), self._fold(table)
        if any(glob(schema).fullmatch(self._fold(name)) for name in self.without):
            return False
        if self.has("SELECT") or self._selects_schema(schema):
            return True
        return table != "*" and _selects(self.tables.get((schema, table), frozenset()))

    def _selects_schema(self, schema: str) -> bool:
        """True if SELECT is granted on a schema, or on every one that a pattern with `*` and `?` matches.

        Of the grants that match a schema the server takes one, that whose first wildcard comes last; what the others
        give is void there. A pattern is taken for uncovered if a grant without SELECT may be taken for some of it.
        """
        granted: dict[str, frozenset[str]] = {}
        for pattern, names in self.schemas:
            folded = self._fold(pattern)
            granted[folded] = granted.get(folded, frozenset()) | names
        means = [pattern for pattern in granted if self._covers(pattern, schema)]
        if not means:
            return False
        taken = max(means, key=self._prefix_length)
        return _selects(granted[taken]) and all(
            _selects(names) or not self._may_precede(pattern, taken, schema) for pattern, names in granted.items()
        )

    def _covers(self, pattern: str, schema: str) -> bool:
        return pattern == schema if self.literal else _like(pattern, schema)

    def _may_precede(self, pattern: str, taken: str, schema: str) -> bool:
        """True if the server may take a grant's pattern before another one, for a schema that a third one matches."""
        if pattern == taken or self._prefix_length(pattern) < self._prefix_length(taken):
            return False
        if not _is_glob(schema):
            return False  # `taken` is the first of those that match it
        ours, theirs = _literal_prefix(schema, "*?"), self._prefix(pattern)
        return ours.startswith(theirs) or theirs.startswith(ours)

    def _prefix_length(self, pattern: str) -> float:
        prefix = self._prefix(pattern)
        return len(prefix) if len(prefix) < len(_ESCAPED.sub(r"\1", pattern)) else math.inf

    def _prefix(self, pattern: str) -> str:
        """The part of a grant's pattern before its first wildcard."""
        return pattern if self.literal else _ESCAPED.sub(r"\1", _literal_prefix(pattern, "%_"))

    def _fold(self, name: str) -> str:
        return name.lower() if self.folds else name


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
    for line in lines:
        grant = _LINE.match(line)
        scope = _OBJECT.fullmatch(grant["object"]) if grant else None
        if not grant or not scope:
            continue
        names = frozenset(name.strip().upper() for name in grant["what"].split(","))
        schema, table = _name(scope["schema"]), _name(scope["table"])
        if grant["verb"] == "REVOKE":
            without |= {schema} if _selects(names) else set()
        elif schema == "*":
            everywhere |= names
        elif table == "*":
            schemas.append((schema, names))
        else:
            name = (schema.lower(), table.lower()) if folds else (schema, table)
            tables[name] = tables.get(name, frozenset()) | names
    return Privileges(frozenset(everywhere), tuple(schemas), tables, frozenset(without), literal, folds)


def _selects(names: frozenset[str]) -> bool:
    return bool(names & {"SELECT", "ALL PRIVILEGES"})


def _name(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace("``", "`")


def _like(pattern: str, name: str) -> bool:
    """True if a grant's pattern matches a name, or all names that a name with `*` and `?` matches."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "[^*]"}  # no name of a schema that is a file has either character
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None


def _is_glob(name: str) -> bool:
    return "*" in name or "?" in name


def _scope(schema: str, *, literal: bool) -> str:
    """The schemas of a pattern as in GRANT."""
    if not _is_glob(schema):
        return f"`{schema}`"
    if literal or schema == "*":
        return "*"
    return "`" + re.sub(r"([_%])", r"\\\1", schema).replace("*", "%").replace("?", "_") + "`"


def _literal_prefix(pattern: str, wild: str) -> str:
    found = re.match(rf"(?:\\.|[^{wild}\\])*", pattern, re.DOTALL)
    return found[0] if found else ""
