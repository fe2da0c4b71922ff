"""The privileges of a MySQL user, from SHOW GRANTS.

Without SELECT, `information_schema` leaves a table out and reports no error. So the grants must show that the initial
load sees every captured table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from connector.mysql.server.connection import Connection, query

_LINE = re.compile(r"(?P<verb>GRANT|REVOKE) (?P<what>.+?) ON (?P<object>\S.*?) (?:TO|FROM) ", re.DOTALL)
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
    """

    everywhere: frozenset[str] = frozenset()
    schemas: tuple[tuple[str, frozenset[str]], ...] = ()
    tables: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    literal: bool = False

    def has(self, *any_of: str) -> bool:
        """True if one of these is granted on `*.*`."""
        return "ALL PRIVILEGES" in self.everywhere or any(name in self.everywhere for name in any_of)

    def may_select(self, schema: str, table: str = "*") -> bool:
        """True if a table can be read; with `*` every table of a schema; with `*` for both every table."""
        if schema in self.without or (schema == "*" and self.without):
            return False
        if self.has("SELECT"):
            return True
        if schema == "*":
            return False
        if any(_selects(names) and self._means(pattern, schema) for pattern, names in self.schemas):
            return True
        return table != "*" and _selects(self.tables.get((schema, table), frozenset()))

    def _means(self, pattern: str, schema: str) -> bool:
        return pattern == schema if self.literal else _like(pattern, schema)


def unreadable(privileges: Privileges, patterns: Sequence[str]) -> Iterator[str]:
    """The scopes (as in GRANT) that may have captured tables and that the user may not read.

    Args:
        privileges: the user's.
        patterns: the patterns of `source.filters.do`; empty: everything.
    """
    for pattern in patterns or ("*.*",):
        schema, _, table = pattern.partition(".")
        if "*" in schema or "?" in schema:
            schema = table = "*"
        elif not table or "*" in table or "?" in table:
            table = "*"
        if not privileges.may_select(schema, table):
            yield ".".join("*" if name == "*" else f"`{name}`" for name in (schema, table or "*"))


def read_privileges(connection: Connection) -> Privileges:
    """Reads the privileges of the connection's user, with its active roles."""
    revoking = query(connection, "SHOW GLOBAL VARIABLES LIKE 'partial\\_revokes'")  # MySQL 8.0.16+
    literal = any(str(row["Value"]).upper() in {"ON", "1"} for row in revoking)
    return parse_grants([str(next(iter(row.values()))) for row in query(connection, "SHOW GRANTS")], literal=literal)


def parse_grants(lines: Sequence[str], *, literal: bool = False) -> Privileges:
    """Parses the lines of SHOW GRANTS; grants of roles, proxies and routines are ignored.

    Args:
        lines: the lines.
        literal: true if schema names have no wildcards: partial_revokes=ON.
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
            tables[schema, table] = tables.get((schema, table), frozenset()) | names
    return Privileges(frozenset(everywhere), tuple(schemas), tables, frozenset(without), literal)


def _selects(names: frozenset[str]) -> bool:
    return bool(names & {"SELECT", "ALL PRIVILEGES"})


def _name(quoted: str) -> str:
    return quoted if quoted == "*" else quoted[1:-1].replace("``", "`")


def _like(pattern: str, name: str) -> bool:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None
