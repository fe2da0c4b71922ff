"""Builds and drops the indexes of `target.indexes`, after the commit that makes them necessary.

What is missing is found by comparing the definitions in `thl_tables` with the catalog, so an applier that is killed
before it has built them builds them when it starts again. The applier's own indexes have a comment; no other index is
touched. Rows are loaded without indexes: they are built once the target is consistent.

A unique index is a constraint that can be deferred, and the applier's transactions defer it: rows of a commit may have
equal values until its end, when values swap. (Deleting and inserting every updated row costs about the same, but would
run the ON DELETE actions and triggers of others, and needs all columns of a row, which a partial row image lacks.)
Other sessions see an ordinary constraint, checked at the end of each statement.

Equal values at the end of a commit show that the target differs from the source, or applies old events again. The
index is then replaced by one that is not unique, with a warning, and the commit is repeated: an index never stops the
applier.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

import psycopg
from psycopg.errors import (
    DuplicateObject,
    DuplicateTable,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
    UniqueViolation,
)

from connector import failpoints as faults
from connector.errors import TargetUnavailable
from connector.log.ids import NO_SEQNO, Seqno
from connector.targets.names import quoted
from connector.targets.postgres.ddl import ANY_CALLED
from connector.targets.postgres.errors import connector_error
from connector.targets.postgres.indexes import NotBuilt, PostgresIndex, planned
from connector.targets.postgres.names import NAMES, table_name
from connector.targets.table import Table

LOG: Final = logging.getLogger(__name__)

Mode = Literal["none", "unique", "all"]

_MADE: Final = "thl: made by target.indexes"
_NOT_UNIQUE: Final = f"{_MADE}; not unique because rows had equal values"
_WAY_OUT: Final = (
    "the target differs from the source: thl verify; then DROP INDEX on the target, and the applier builds a unique "
    "one when it starts again"
)
_CHANGED: Final = (DuplicateObject, DuplicateTable, ObjectNotInPrerequisiteState, UndefinedObject)
"""Errors where another session changed an index since the catalog was read: a killed applier's, whose server process
had waited for a lock."""
_TRIES: Final = 3  # at the catalog, while others change it
_CONSTRAINT_CALLED: Final = """
SELECT 1 FROM pg_constraint o JOIN pg_class t ON t.oid = o.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = %s AND t.relname = %s AND o.conname = %s
"""
_UNTIL: Final = re.compile(r"before event (\d+)$")
_EXISTING: Final = """
SELECT n.nspname, t.relname, c.relname, m.amname, i.indisunique, i.indimmediate,
  EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = i.indexrelid AND o.contype = 'u'), d.description,
  ARRAY(SELECT CASE k.number WHEN 0 THEN replace(pg_get_indexdef(i.indexrelid, k.nth::int, false), '"', '')
      ELSE replace(a.attname, '"', '') END || CASE WHEN i.indoption[k.nth - 1] & 1 = 1 THEN ' DESC' ELSE '' END
    FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, nth)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.nth)
FROM pg_description d JOIN pg_class c ON c.oid = d.objoid JOIN pg_index i ON i.indexrelid = c.oid
  JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_am m ON m.oid = c.relam
WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 AND d.description LIKE 'thl: made by target.indexes%'
"""


@dataclass(frozen=True, slots=True)
class _Existing:
    """An index that the applier has built.

    Args:
        name: its name.
        method, parts, unique: as of `PostgresIndex`.
        deferred: false for a unique one that is no constraint yet.
        constraint: whether it belongs to a constraint.
        comment: says why a unique one of the source is not unique.
    """

    name: str
    method: str
    parts: tuple[str, ...]
    unique: bool
    deferred: bool
    constraint: bool
    comment: str

    def serves(self, index: PostgresIndex) -> bool:
        """True if it is what the index should be, or stands for it because rows had equal values."""
        shape = (self.method, self.parts) == (index.method, index.parts)
        return shape and (self.unique == index.unique or (index.unique and self.comment != _MADE))

    def again(self, seqno: Seqno) -> bool:
        """True if it is not unique because old events were applied again, and they have been."""
        until = _UNTIL.search(self.comment)
        return until is not None and seqno >= int(until[1])


class IndexBuilder:
    """Keeps the indexes of the applier's tables as `target.indexes` wants them.

    Args:
        connection: in autocommit.
        mode: the option.
        check: raises if a newer applier has claimed the target.
    """

    def __init__(self, connection: psycopg.Connection, mode: Mode, check: Callable[[], None]) -> None:
        self._connection = connection
        self._mode = mode
        self._check = check
        self.kept = mode != "none"

    def start(self, tables: Iterable[Table], seqno: Seqno, *, consistent: bool) -> None:
        """Build what is missing when an applier starts, and say what the target lacks."""
        tables = list(tables)
        if self._mode == "none":
            own = {NAMES.table(table.name) for table in tables}
            self.kept = not own.isdisjoint(self._read())
        if not self.kept or not consistent:
            return
        unknown = [str(table.name) for table in tables if table.indexes is None]
        if unknown and self._mode != "none":
            fields = {"tables": ", ".join(unknown[:20]), "count": len(unknown)}
            hint = "they are known after the next initial load; until then create them on the target by hand"
            LOG.warning("indexes of tables of an earlier version are not known", extra={**fields, "hint": hint})
        self.update(tables, seqno)

    def update(self, tables: Sequence[Table], seqno: Seqno) -> None:
        """Build and drop indexes of these tables, after the commit of event `seqno`; most commits have none."""
        if not (self.kept and tables):
            return
        existing = self._read()
        missing: list[tuple[Table, PostgresIndex]] = []
        for table in tables:
            if table.indexes is not None:
                missing += self._adapted(table, existing.get(NAMES.table(table.name), []), seqno)
        for number, (table, index) in enumerate(missing, 1):
            fields = {"table": table.name, "index": index.source, "number": number, "of": len(missing)}
            if index.note:
                fields["note"] = index.note
            LOG.info("building an index", extra=fields)
            self._check()
            faults.point("target.before_index")
            self._build(table, index)

    def replace_unique(self, violation: UniqueViolation, head: Seqno) -> TargetUnavailable | None:
        """Replace a unique index that a commit violates by one that is not unique.

        Args:
            violation: the server's error.
            head: the last event that is applied again; NO_SEQNO if none is.

        Returns:
            The error that makes the applier repeat the commit; None if the constraint is not the applier's.
        """
        name, place = violation.diag.constraint_name, (violation.diag.schema_name, violation.diag.table_name)
        found = [one for one in self._read().get((str(place[0]), str(place[1])), []) if one.unique and one.name == name]
        if not found:
            return None
        comment = _NOT_UNIQUE if head == NO_SEQNO else f"{_NOT_UNIQUE} before event {head}"
        table = ".".join(quoted(str(part)) for part in place)
        columns = self._connection.execute(
            "SELECT pg_get_indexdef(%s::regclass)", (f"{quoted(str(place[0]))}.{quoted(str(name))}",)
        ).fetchone()
        create = str(columns[0]).replace("CREATE UNIQUE INDEX", "CREATE INDEX", 1) if columns else ""
        self._connection.execute(
            f"{_drop(table, found[0], str(place[0]))}; {create}; {_comment(str(place[0]), str(name), comment)}".encode()
        )
        fields = {
            "table": ".".join(map(str, place)),
            "index": name,
            "rows": violation.diag.message_detail,
            "hint": _WAY_OUT,
        }
        if head == NO_SEQNO:
            LOG.warning(
                "a unique index is no longer unique, because rows of the target have equal values", extra=fields
            )
        else:
            LOG.info("a unique index is not unique while events are applied again", extra={**fields, "hint": ""})
        return TargetUnavailable(
            f"rows with equal values in the unique index {name}, which was replaced by one that is not unique",
            table=fields["table"],
        )

    def _adapted(self, table: Table, existing: list[_Existing], seqno: Seqno) -> list[tuple[Table, PostgresIndex]]:
        """Make a table's existing indexes what they should be, and return what is missing; errors are warned of."""
        for _ in range(_TRIES):
            try:
                return self._compare(table, existing, seqno)
            except _CHANGED as error:
                last: psycopg.Error = error
                existing = self._read().get(NAMES.table(table.name), [])
            except psycopg.Error as error:
                last = error
                break
        found = connector_error(last)
        if isinstance(found, TargetUnavailable):
            raise found from last
        LOG.warning(
            "indexes of a table could not be changed",
            extra={"table": table.name, "why": found.message, "hint": "the applier tries again when it starts"},
        )
        return []

    def _compare(self, table: Table, existing: list[_Existing], seqno: Seqno) -> list[tuple[Table, PostgresIndex]]:
        """Drop, rename and complete what exists; return what is missing."""
        schema = NAMES.table(table.name)[0]
        missing, left = [], list(existing)
        for source in table.indexes or ():
            index = planned(table, source)
            wanted = self._mode == "all" or (self._mode == "unique" and source.unique)
            if isinstance(index, NotBuilt):
                if wanted:
                    LOG.info("an index is left out", extra={"table": table.name, "index": source.name,
                                                            "why": index.reason})  # fmt: skip
                continue
            serving = [one for one in left if one.serves(index)]
            found = next((one for one in serving if one.name == index.name), serving[0] if serving else None)
            if found is not None and found.unique != index.unique and found.again(seqno):
                found = None
            if found is None:
                missing += [(table, index)] if wanted else []
                continue
            left.remove(found)
            if found.unique != index.unique:
                LOG.warning("a unique index of the source is not unique on the target", extra={
                    "table": table.name, "index": found.name, "hint": _WAY_OUT})  # fmt: skip
            name = self._renamed(table, found, index)
            if found.unique and not found.deferred:
                self._connection.execute(_constraint(table, name).encode())
        for one in left:
            LOG.info(
                "an index is dropped that the source has no longer", extra={"table": table.name, "index": one.name}
            )
            self._connection.execute(_drop(table_name(table.name), one, schema).encode())
        return missing

    def _renamed(self, table: Table, found: _Existing, index: PostgresIndex) -> str:
        """Give an index the name that it should have, if nothing else has it."""
        name = index.name
        if found.name == name:
            if found.constraint or not self._names_constraint(table, name):
                return name
            name = self._free(table, name)  # the index is about to become a constraint
        elif self._taken(table, name):
            return found.name
        old = f"{quoted(NAMES.table(table.name)[0])}.{quoted(found.name)}"
        self._connection.execute(f"ALTER INDEX {old} RENAME TO {quoted(name)}".encode())
        return name

    def _build(self, table: Table, index: PostgresIndex) -> None:
        schema, name, comment = NAMES.table(table.name)[0], self._free(table, index.name), _MADE
        on = f"{quoted(name)} ON {table_name(table.name)} USING {index.method} ({', '.join(index.sql)})"
        try:
            if index.unique and not self._build_unique(table, index, name, on):
                comment = _NOT_UNIQUE
            if not index.unique or comment == _NOT_UNIQUE:
                self._connection.execute(f"CREATE INDEX {on}; {_comment(schema, name, comment)}".encode())
        except psycopg.Error as error:
            found = connector_error(error)
            if isinstance(found, TargetUnavailable):
                raise found from error
            fields = {"table": table.name, "index": index.source, "why": found.message}
            hint = "create it on the target by hand; the applier tries again when it starts"
            LOG.warning("an index could not be built, and the target lacks it", extra={**fields, "hint": hint})

    def _build_unique(self, table: Table, index: PostgresIndex, name: str, on: str) -> bool:
        """Build a unique index; False if rows have equal values."""
        comment = _comment(NAMES.table(table.name)[0], name, _MADE)
        try:
            self._connection.execute(f"CREATE UNIQUE INDEX {on}; {comment}".encode())
        except UniqueViolation as violation:
            if violation.diag.schema_name == "pg_catalog":
                raise  # another session takes the same name
            fields = {"table": table.name, "index": index.source, "rows": violation.diag.message_detail}
            LOG.warning(
                "an index is built that is not unique, because rows of the target have equal values",
                extra={**fields, "hint": _WAY_OUT},
            )
            return False
        # In a transaction of its own: the lock keeps readers waiting, and an index takes long.
        try:
            self._connection.execute(_constraint(table, name).encode())
        except psycopg.Error as error:
            if not isinstance(connector_error(error), TargetUnavailable):
                # Values could not swap under an index that is no constraint.
                self._connection.execute(f"DROP INDEX {quoted(NAMES.table(table.name)[0])}.{quoted(name)}".encode())
            raise
        return True

    def _free(self, table: Table, name: str) -> str:
        """The name, or one like it, that nothing has."""
        numbers = count(1)
        free = name
        while self._taken(table, free):
            free = NAMES.column(f"{name[:40]}_{next(numbers)}")
        return free

    def _taken(self, table: Table, name: str) -> bool:
        """True if a relation of the schema, or a constraint of the table, has the name."""
        schema = NAMES.table(table.name)[0]
        called = self._connection.execute(ANY_CALLED, ([schema], name)).fetchone()
        return called is not None or self._names_constraint(table, name)

    def _names_constraint(self, table: Table, name: str) -> bool:
        found = self._connection.execute(_CONSTRAINT_CALLED, (*NAMES.table(table.name), name)).fetchone()
        return found is not None

    def _read(self) -> dict[tuple[str, ...], list[_Existing]]:
        found: dict[tuple[str, ...], list[_Existing]] = {}
        for schema, table, name, method, unique, immediate, constraint, comment, parts in self._connection.execute(
            _EXISTING
        ):
            one = _Existing(name, method, tuple(parts), unique, not immediate, constraint, comment)
            found.setdefault((schema, table), []).append(one)
        return found


def _constraint(table: Table, name: str) -> str:
    return (
        f"ALTER TABLE {table_name(table.name)} ADD CONSTRAINT {quoted(name)} UNIQUE USING INDEX {quoted(name)} "
        "DEFERRABLE INITIALLY IMMEDIATE"
    )


def _drop(table: str, index: _Existing, schema: str) -> str:
    if index.constraint:
        return f"ALTER TABLE {table} DROP CONSTRAINT {quoted(index.name)}"
    return f"DROP INDEX {quoted(schema)}.{quoted(index.name)}"


def _comment(schema: str, name: str, text: str) -> str:
    return f"COMMENT ON INDEX {quoted(schema)}.{quoted(name)} IS '{text}'"
