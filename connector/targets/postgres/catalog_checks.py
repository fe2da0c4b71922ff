"""Reads from the catalog what tables have besides their columns.

It can keep changes of a table from being divided, its rows from being replaced by upserts or deleted, or its keys from
being compared. Others have made it, but for the unique indexes of `target.indexes`.

Rows of different keys are independent, unless the table has another unique index, a foreign key or a trigger, or its
primary key is over other columns: there, a writer's commit would wait for another one's, or fail. So one writer gets
all changes of such a table.

Staging has the columns of a key in the collation "C", in which keys are compared by their bytes. PostgreSQL compares
no text of two collations, unless one of them is the default.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from connector.errors import PreflightError
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.ddl.loads import refuse_deletes
from connector.targets.postgres.names import NAMES, column_name, table_name
from connector.targets.postgres.types import by_bytes
from connector.targets.table import Table

# The catalog is PostgreSQL's manual, part "System Catalogs". Every user may read it.
_MADE = """
SELECT n.nspname, c.relname, concat_ws(', ',
    CASE WHEN c.relkind <> 'r' OR c.relispartition OR c.relhassubclass THEN 'partitions or child tables' END,
    CASE WHEN c.relhasrules THEN 'rules' END,
    (SELECT string_agg('index ' || x.relname, ', ') FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
      WHERE i.indrelid = c.oid AND NOT i.indisprimary AND (i.indisunique OR i.indisexclusion)),
    (SELECT string_agg('foreign key ' || k.conname, ', ') FROM pg_constraint k
      WHERE k.contype = 'f' AND c.oid IN (k.conrelid, k.confrelid)),
    (SELECT string_agg('trigger ' || t.tgname, ', ') FROM pg_trigger t
      WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)),
  ARRAY(SELECT a.attname::text FROM pg_index i
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
    WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS wanted (nspname, relname) USING (nspname, relname)
"""
# 100 is the default collation, 950 is "C".
_COLLATIONS = """
SELECT nspname, relname, attname, o.collname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[], %s::text[]) AS wanted (nspname, relname, attname) USING (nspname, relname, attname)
JOIN pg_collation o ON o.oid = a.attcollation WHERE a.attcollation NOT IN (100, 950) ORDER BY 1, 2, 3
"""
# The columns of each unique index but the key's. One on an expression is left out: an error names it.
_UNIQUE_KEYS = """
SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, nth)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE k.nth <= i.indnkeyatts ORDER BY k.nth)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND i.indisunique AND NOT i.indisprimary AND 0 <> ALL (i.indkey::int2[])
"""
# An upsert takes an immediate unique index of exactly the key's columns, and no rules.
_TAKES_UPSERTS = """
SELECT NOT c.relhasrules AND coalesce((
  SELECT bool_and(i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND %s::text[] = (
    SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C")
    FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, nth)
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number WHERE k.nth <= i.indnkeyatts))
  FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)), false)
FROM pg_class c WHERE c.oid = to_regclass(%s)
"""
# 8 is the bit of DELETE in `tgtype`, and '4' is DELETE in `ev_type`.
_ON_DELETE = """
SELECT 'foreign key ' || k.conname || ' of ' || k.conrelid::regclass FROM pg_constraint k
WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = to_regclass(%(name)s)
UNION SELECT 'trigger ' || t.tgname FROM pg_trigger t
WHERE t.tgrelid = to_regclass(%(name)s) AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 8 <> 0
UNION SELECT 'rule ' || r.rulename FROM pg_rewrite r
WHERE r.ev_class = to_regclass(%(name)s) AND r.ev_type = '4' AND r.ev_enabled <> 'D' ORDER BY 1
"""


def unique_indexes(connection: psycopg.Connection, name: TableName) -> list[tuple[str, ...]]:
    """The columns of each unique index of a table but its primary key; one on an expression is left out."""
    found = connection.execute(_UNIQUE_KEYS, NAMES.table(name)).fetchall()
    return [tuple(map(str, columns)) for (columns,) in found]


def takes_upserts(connection: psycopg.Connection, table: Table) -> bool:
    """True if a table has no unique index but its key's: its rows can then be replaced without deletes."""
    key = sorted(NAMES.column(name) for name in table.key)
    return connection.execute(_TAKES_UPSERTS, (key, table_name(table.name))).fetchone() == (True,)


def check_deletes(connection: psycopg.Connection, table: Table, in_place: bool = False) -> None:
    """Check that no foreign key, trigger or rule of others acts on deletes of a table's rows.

    Args:
        connection: the session.
        table: the table.
        in_place: it is no error if rows can be replaced without deletes.

    Raises:
        TargetDiffers: one does.
    """
    if not (in_place and takes_upserts(connection, table)):
        found = connection.execute(_ON_DELETE, {"name": table_name(table.name)}).fetchall()
        refuse_deletes(table, [what for (what,) in found])


def undivided_tables(connection: psycopg.Connection, layouts: Iterable[TableLayout]) -> dict[TableName, str]:
    """The tables among some whose changes must go by one connection, each with the reason."""
    wanted = {NAMES.table(layout.name): layout for layout in layouts}
    schemas, tables = [schema for schema, _ in wanted], [table for _, table in wanted]
    found = {}
    for schema, table, made, key in connection.execute(_MADE, (schemas, tables)).fetchall():
        layout = wanted[schema, table]
        same = not key or set(key) == {NAMES.column(layout.columns[index].name) for index in layout.key}
        if reasons := [one for one in ("" if same else f"primary key ({', '.join(key)})", made) if one]:
            found[layout.name] = ", ".join(reasons)
    return found


def check_key_collations(connection: psycopg.Connection, tables: Iterable[Table]) -> None:
    """Check that the keys of tables can be compared with those of staging.

    Raises:
        PreflightError: a column of a key has another collation.
    """
    columns = {
        (*NAMES.table(table.name), NAMES.column(name)): (table, name)
        for table in tables
        for name in table.key
        if (column := table.column(name)) is not None and by_bytes(column)
    }
    parts = [[column[index] for column in columns] for index in range(3)]
    found = [(*columns[schema, table, name], collation)
             for schema, table, name, collation in connection.execute(_COLLATIONS, parts)]  # fmt: skip
    if found:
        named = ", ".join(f'{table.name}.{name} has "{collation}"' for table, name, collation in found)
        raise PreflightError(
            f'a column of a key has another collation on the target than "C", in which keys are compared: {named}',
            hint="; ".join(
                f'ALTER TABLE {table_name(table.name)} ALTER COLUMN {column_name(name)} TYPE text COLLATE "C"'
                for table, name, _ in found
            ),
        )
