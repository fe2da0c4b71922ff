"""Rows of the load of a new table, which go into the table by COPY, as long as it has none of their keys.

An upsert looks for each row first. The load brings each row once, so nearly all are new; but the stream may have
brought some before, and a producer that was killed repeats some. The first such row ends the COPY, which is then taken
back to a savepoint: the rows go by way of staging, as those of any other table that is being loaded. The next commits
of the table do not try: twice as many with each COPY that was taken back, and half as many with each that was not. So a
table that the stream changes much does not get its rows twice, once as garbage.

A COPY checks less than an INSERT: it has no casts, sees no rules, and fills columns GENERATED ALWAYS AS IDENTITY. So
the table has to be as the connector makes it; if others have altered it, its rows go by way of staging, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg

from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.postgres.copy import HEADER, TRAILER
from connector.targets.postgres.merge import LateValues
from connector.targets.postgres.names import NAMES, column_names, table_name
from connector.targets.postgres.types import postgres_type

DIRECT_ROWS: Final = 1_000  # with fewer rows, the further round trips of a COPY cost more than it saves
MOST_COMMITS: Final = 64  # that do not try, after COPYs that were taken back

_REFUSED = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)

# The catalog is PostgreSQL's manual, part "System Catalogs". Every user may read it.
_AS_MADE: Final = """
SELECT c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhassubclass AND NOT c.relhasrules
  AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
  AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate
    AND ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[])
      ORDER BY a.attname::text COLLATE "C") = %s::text[])
  AND NOT EXISTS (SELECT FROM unnest(%s::text[], %s::text[]) w (name, type)
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = w.name AND NOT a.attisdropped
    WHERE a.atttypid IS DISTINCT FROM w.type::regtype::oid OR a.attidentity = 'a')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


@dataclass(slots=True)
class DirectRows:
    """Rows that are to go into their table by COPY.

    Args:
        net: the rows; nothing but inserts.
        chunks: the data of the COPY.
        metadata: expressions for the metadata columns, if their values came later: then they go by way of staging.
    """

    net: NetChanges
    chunks: list[bytes]
    metadata: tuple[str, ...] = ()

    @property
    def layout(self) -> TableLayout:
        """The layout of the rows."""
        return self.net.layout

    def set_metadata(self, values: LateValues) -> None:
        """Set the values that came after the rows were staged."""
        self.metadata = values.metadata  # rows of a history do not come this way


class DirectCopy:
    """Copies rows into the tables of a session's target, and remembers which tables refuse them.

    Args:
        session: in autocommit.
    """

    def __init__(self, session: psycopg.Connection) -> None:
        self._session = session
        self._pauses: dict[TableName, int] = {}  # the number of commits that the next COPY taken back costs, halved
        self._left: dict[TableName, int] = {}  # the number of commits that do not try

    def accepts(self, net: NetChanges, *, last: bool) -> bool:
        """Return whether to try it with these changes; `last`: their commit follows."""
        alone = net.partial is None and not len(net.deletes) and not len(net.updates)
        if not (last and net.replaces and alone and len(net.inserts) >= DIRECT_ROWS):
            return False
        if left := self._left.pop(net.layout.name, 0):
            self._left[net.layout.name] = left - 1
        return not left

    def copied(self, rows: DirectRows) -> bool:
        """Copy rows in the open transaction; return False if nothing has changed, because the table refuses them."""
        name = rows.layout.name
        if self._left.get(name) or rows.metadata:
            return False
        try:
            with self._session.transaction():
                copied = self._as_made(rows.layout) and self._copy(rows) == len(rows.net.inserts)
                if not copied:
                    raise psycopg.Rollback
        except _REFUSED:
            copied = False
        pause = self._pauses.pop(name, 0)
        if not copied:
            self._left[name] = self._pauses[name] = min(2 * pause or 1, MOST_COMMITS)
        elif pause > 1:
            self._pauses[name] = pause // 2
        return copied

    def _as_made(self, layout: TableLayout) -> bool:
        """Lock a table against being altered; return whether it is as the connector makes it."""
        self._session.execute(f"LOCK TABLE {table_name(layout.name)} IN ROW EXCLUSIVE MODE".encode())
        names = [NAMES.column(column.name) for column in layout.columns]
        types = [postgres_type(column) for column in layout.columns]
        key = sorted(names[index] for index in layout.key)
        found = self._session.execute(_AS_MADE, (key, names, types, *NAMES.table(layout.name))).fetchone()
        return found == (True,)

    def _copy(self, rows: DirectRows) -> int:
        into = f"{table_name(rows.layout.name)} ({column_names(column.name for column in rows.layout.columns)})"
        cursor = self._session.cursor()
        with cursor.copy(f"COPY {into} FROM STDIN (FORMAT binary)".encode()) as copy:
            copy.write(HEADER)
            for chunk in rows.chunks:
                copy.write(chunk)
            copy.write(TRAILER)
        return cursor.rowcount
