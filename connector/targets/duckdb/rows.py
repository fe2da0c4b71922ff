"""Applies net changes to a DuckDB table, and checks the number of rows of each statement.

Tables have no primary key that DuckDB knows: its index makes inserts three times as slow, is not used to find the rows
of a batch, and keeps DuckDB from dropping or changing the key's columns. So rows are found by joins of the table with
the log's rows, which read the key's columns, as far as their smallest and largest values do not exclude parts of the
table; an insert of a key that exists is found in the same way. Updated rows are deleted and inserted; all deletes come
first, so rows can swap values of users' unique indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
import pyarrow as pa

from connector.errors import TargetDiffers
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableLayout
from connector.targets.duckdb import keyless_rows, partial_rows
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.marks import is_marked
from connector.targets.duckdb.names import column_names
from connector.targets.duckdb.staged_rows import StagedRows, named, staged
from connector.targets.marks import Marks
from connector.targets.names import quoted
from connector.targets.table import Table

NAMED: Final = 5  # of the keys that a change does not find
_TRIGGERS: Final = "SELECT 1 FROM duckdb_triggers() LIMIT 1"


def write_rows(session: FileSession, table: Table, net: NetChanges, marked: Marks | None = None) -> None:
    """Apply deletes, then updates, then inserts, inside the open transaction. Inserts have all columns.

    Args:
        session: with the file.
        table: the table.
        net: the changes.
        marked: the marks, if the table also has rows that are older than its load. What holds a value of a new row in a
            unique index is deleted unless it is marked.

    Raises:
        TargetDiffers: a row to delete or update is missing, or a row to insert exists.
        ValueNotRepresentable: a value that its column cannot have.
    """
    try:
        _write_rows(session, table, net, marked)
    except duckdb.ConstraintException as error:
        text = str(error).partition("\n")[0]
        raise TargetDiffers(f"rows of {net.layout.name} could not be written: {text}", table=net.layout.name) from error


def _write_rows(session: FileSession, table: Table, net: NetChanges, marked: Marks | None) -> None:
    layout = net.layout
    moved = partial_rows.moved(session, net, marked)
    if not layout.key:
        if len(net.deletes):
            keyless_rows.delete(session, table, net)
    elif gone := _gone(net):
        _delete(session, net, gone)
    new = staged(layout, net.updates)
    first = len(new)  # of the inserts
    new.values.extend(staged(layout, net.inserts).values)
    with named(session, **({"thl_new": new} if len(new) else {})):
        if layout.key and not net.again and (len(new) > first or moved):
            _refuse_existing(session, layout, new, first, moved)
        if marked is not None:
            _delete_holders(session, net, marked, new, moved)
        partial_rows.change(session, net)
        if net.replaces:
            _replace(session, layout, new)
        elif len(new):
            session.run(_insert(session, layout, new.query("thl_new")))
        if moved:
            session.run(_insert(session, layout, partial_rows.MOVED))
        if marked is not None and marked.name:
            _mark(session, marked, new, moved)
    if moved:
        session.run(f"DROP TABLE {partial_rows.MOVED}")


def _gone(net: NetChanges) -> StagedRows | None:
    """The keys to delete: of deleted and updated rows, and the old ones of moved rows."""
    key = net.layout.key
    found = staged(net.layout, net.deletes, key)
    found.values.extend(staged(net.layout, net.updates, key).values)
    found.values.extend(partial_rows.moved_keys(net))
    return found if len(found) else None


def _delete(session: FileSession, net: NetChanges, gone: StagedRows) -> None:
    layout = net.layout
    with named(session, thl_gone=gone):
        columns = ", ".join(f"t.{quoted(layout.columns[index].name)} AS k{index}" for index in layout.key)
        sql = (
            f"DELETE FROM {session.name(layout.name)} AS t USING {gone.query('thl_gone')} AS s WHERE {same_key(layout)}"
        )
        missing: list[str] = []
        if net.again or session.run(_TRIGGERS):  # a table with triggers returns no rows
            count = session.count(sql)
        else:
            found = session.connection.sql(f"{sql} RETURNING {columns}").to_arrow_table()
            count = found.num_rows
            if count != len(gone):
                missing = _missing(session, gone, found)
        if count != len(gone) and not net.again:
            done = "found that are deleted or replaced" if len(net.updates) else "deleted"
            raise miscounted(layout, count, len(gone), done, missing)


def _missing(session: FileSession, gone: StagedRows, found: pa.Table) -> list[str]:
    """Some of the keys that were to be deleted and are not among those that were."""
    session.connection.register("thl_found", found)
    same = " AND ".join(f"s.c{index} = f.k{index}" for index in gone.layout.key)
    rows = session.run(
        f"SELECT s.n FROM {gone.query('thl_gone')} AS s WHERE NOT EXISTS "
        f"(SELECT 1 FROM thl_found AS f WHERE {same}) ORDER BY s.n LIMIT {NAMED}"
    )
    return [gone.key(int(str(row))) for (row,) in rows]


def _refuse_existing(session: FileSession, layout: TableLayout, new: StagedRows, first: int, moved: bool) -> None:
    columns = ", ".join(f"c{index}" for index in layout.key)
    sources = [f"SELECT {columns}, n FROM {new.query('thl_new')} WHERE n >= {first}"] if len(new) > first else []
    sources += [f"SELECT {columns}, -1 AS n FROM {partial_rows.MOVED}"] if moved else []
    source = f"({' UNION ALL '.join(sources)})"
    sql = f"FROM {source} AS s JOIN {session.name(layout.name)} AS t ON {same_key(layout)}"
    found = session.run(f"SELECT s.n {sql} ORDER BY s.n DESC LIMIT {NAMED}")
    if found:
        ((number,),) = session.run(f"SELECT count(*) {sql}")
        shown = [new.key(int(str(row))) for (row,) in found if int(str(row)) >= 0]
        what = f"{number} rows to insert into {layout.name} exist"
        raise TargetDiffers(what, table=layout.name, rows="; ".join(shown) or None)


def _delete_holders(session: FileSession, net: NetChanges, marked: Marks, new: StagedRows, moved: bool) -> None:
    """Delete rows that are older than the load and hold a value that a new row has in a unique index.

    The source has no such row: it is read later, or has gone.
    """
    layout, name = net.layout, session.name(net.layout.name)
    older = "TRUE"
    if marked.name:
        keys = (f"t.{quoted(layout.columns[index].name)}" for index in marked.key)
        older = f"NOT {is_marked(session, marked.name, keys)}"
    for unique in marked.unique_keys:
        same = " AND ".join(f"t.{quoted(layout.columns[index].name)} = s.c{index}" for index in unique)
        if len(new):
            source = new.query("thl_new")
            session.run(f"DELETE FROM {name} AS t USING {source} AS s WHERE {same} AND {older}")
        if moved:
            session.run(f"DELETE FROM {name} AS t USING {partial_rows.MOVED} AS s WHERE {same} AND {older}")
        partial_rows.delete_holders(session, net, unique, older)


def _replace(session: FileSession, layout: TableLayout, new: StagedRows) -> None:
    """Insert rows, or change those that exist where they are: deletes may have effects of others."""
    if not len(new):
        return
    name = session.name(layout.name)
    others = [index for index in range(len(layout.columns)) if index not in layout.key]
    source = new.query("thl_new")
    missing = f"NOT EXISTS (SELECT 1 FROM {name} AS t WHERE {same_key(layout)})"
    session.run(_insert(session, layout, f"(SELECT * FROM {source} AS s WHERE {missing})"))
    if others:  # the rows that were inserted are changed once more, to what they are
        assignments = ", ".join(f"{quoted(layout.columns[index].name)} = s.c{index}" for index in others)
        count = session.count(f"UPDATE {name} AS t SET {assignments} FROM {source} AS s WHERE {same_key(layout)}")
        if count != len(new):
            raise miscounted(layout, count, len(new), "replaced", [])


def _mark(session: FileSession, marked: Marks, new: StagedRows, moved: bool) -> None:
    columns = [f"c{index}" for index in marked.key]
    into = f"INSERT INTO {session.bookkeeping}{quoted(marked.name)} SELECT {', '.join(columns)} FROM"
    where = f"WHERE NOT {is_marked(session, marked.name, (f's.{column}' for column in columns))}"
    if len(new):
        session.run(f"{into} {new.query('thl_new')} AS s {where}")
    if moved:
        session.run(f"{into} {partial_rows.MOVED} AS s {where}")


def _insert(session: FileSession, layout: TableLayout, source: str) -> str:
    columns = [column.name for column in layout.columns]
    values = ", ".join(f"c{index}" for index in range(len(columns)))
    return f"INSERT INTO {session.name(layout.name)} ({column_names(columns)}) SELECT {values} FROM {source}"


def same_key(layout: TableLayout) -> str:
    """The condition that a row `t` of the table has the key of a row `s` of the log."""
    return " AND ".join(f"t.{quoted(layout.columns[index].name)} = s.c{index}" for index in layout.key)


def miscounted(layout: TableLayout, count: int, expected: int, done: str, rows: Sequence[str]) -> TargetDiffers:
    """The error for a number of rows that the log does not have."""
    what = f"{count} rows of {layout.name} were {done}, and the log has {expected}"
    return TargetDiffers(what, table=layout.name, rows="; ".join(rows) or None)
