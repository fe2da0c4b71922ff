"""Tables whose changes must go by one connection, found in the target's catalog.

Rows of different keys are independent, unless the table has another unique index, a foreign key or a trigger, which
anyone may have created: there, a commit of one connection would wait for another one's, or fail.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from connector.log.transaction.layout import TableName
from connector.targets.postgres.names import NAMES

# The catalog is PostgreSQL's manual, part "System Catalogs". Every user may read it.
_LOOK = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS wanted (nspname, relname) USING (nspname, relname)
WHERE c.relkind <> 'r' OR c.relispartition OR c.relhassubclass OR c.relhasrules
OR EXISTS (SELECT FROM pg_index i
  WHERE i.indrelid = c.oid AND NOT i.indisprimary AND (i.indisunique OR i.indisexclusion))
OR EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND c.oid IN (k.conrelid, k.confrelid))
OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
"""


def undivided_in_catalog(connection: psycopg.Connection, tables: Iterable[TableName]) -> set[TableName]:
    """The tables among some whose changes must go by one connection."""
    names = {NAMES.table(name): name for name in tables}
    schemas, relations = [schema for schema, _ in names], [table for _, table in names]
    found = connection.execute(_LOOK, (schemas, relations)).fetchall()
    return {names[str(schema), str(table)] for schema, table in found}
