"""Applies net changes to a SQLite table, and checks the number of rows of each statement.

Rows of a table without a key are deleted by comparing all columns with IS, under which NULLs are equal. Of equal rows
as many are deleted as the log has, the oldest first. That reads the table once per batch. Metadata columns are not
compared; if the table has them, rows of the newest transactions are deleted first, as within a batch.

Keys that the table lacks are read only after a wrong row count.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from connector.ddl.syntax.type_names import FLOATS
from connector.errors import ConnectorError, TargetDiffers, ValueNotRepresentable
from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.transaction.layout import TableLayout
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.marks import Marks
from connector.targets.names import OTHER_COLUMN, quoted
from connector.targets.operations import Value
from connector.targets.sqlite.marks import is_marked
from connector.targets.sqlite.names import SqliteNames, column_names, table_name
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import Table
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

NAMED: Final = 5  # of the keys that a change does not find
Key = Sequence[Value]
_GONE = "temp.thl_gone"
_CONSTRAINT_DATATYPE = sqlite3.SQLITE_CONSTRAINT | 12 << 8  # SQLite's manual, "Result and Error Codes"


def write_rows(connection: sqlite3.Connection, table: Table, net: NetChanges, marked: Marks | None = None) -> None:
    """Apply deletes, then updates, then inserts, inside the open transaction. Inserts have all columns.

    Args:
        connection: to the file.
        table: the table.
        net: the changes.
        marked: the marks, if the table also has rows that are older than its load. What holds a value of a new row in a
            unique index is deleted unless it is marked.

    Raises:
        TargetDiffers: a row to delete or update is missing, or a row to insert exists.
        ValueNotRepresentable: a text was not valid in its character set on the source, so its value is bytes.
    """
    columns = [column.name for column in net.layout.columns]
    name = table_name(table.name)
    key = list(net.layout.key)
    matches = " AND ".join(f"{quoted(columns[index])} = ?" for index in key)
    moved = [] if net.partial is None else _moved(connection, matches, net, net.partial, marked)
    if moved:
        sql = f"DELETE FROM {name} WHERE {matches}"
        _delete(connection, sql, [base for base, _ in moved], net)
        if net.again:
            connection.executemany(sql, [tuple(row[index] for index in key) for _, row in moved])
    if len(net.deletes):
        if key:
            sql = f"DELETE FROM {name} WHERE {matches}"
            rows = _tuples(net.deletes, len(columns), key)
            if net.again:
                connection.executemany(sql, rows)
            else:
                _delete(connection, sql, rows, net)
        else:
            _delete_equal(connection, table, name, net)
    if len(net.updates):
        others = [index for index in range(len(columns)) if index not in key] or key
        assignments = ", ".join(f"{quoted(columns[index])} = ?" for index in others)
        sql = f"UPDATE {name} SET {assignments} WHERE {matches}"
        rows = _tuples(net.updates, len(columns), others + key)
        count = _many(connection, sql, rows, net, "updated")
        if count != len(rows):
            keys = [row[len(others) :] for row in rows]
            found = missing_rows(connection, net.layout, keys, len(rows) - count, deleted=False)
            raise _miscounted(count, len(rows), net, "updated", found)
    inserts = [*(row for _, row in moved), *(_tuples(net.inserts, len(columns), None) if len(net.inserts) else ())]
    if marked is not None:
        _delete_holders(connection, net, marked, inserts)
    if net.partial is not None:
        _change(connection, name, matches, net, net.partial)
    if inserts:
        sql = f"INSERT INTO {name} ({column_names(columns)}) VALUES ({_marks(len(columns))})"
        if net.replaces:
            others = [index for index in range(len(columns)) if index not in key]
            assignments = ", ".join(f"{quoted(columns[index])} = excluded.{quoted(columns[index])}" for index in others)
            conflict = column_names([columns[index] for index in key])
            sql += f" ON CONFLICT ({conflict}) DO {f'UPDATE SET {assignments}' if others else 'NOTHING'}"
            _many(connection, sql, inserts, net, "inserted")
        else:
            _insert(connection, sql, inserts, net)
    if marked is not None and marked.name:
        sql = f"INSERT OR IGNORE INTO {quoted(marked.name)} VALUES ({_marks(len(marked.key))})"
        connection.executemany(sql, [tuple(row[index] for index in marked.key) for row in inserts])


def _delete_holders(
    connection: sqlite3.Connection, net: NetChanges, marked: Marks, inserts: list[tuple[Value, ...]]
) -> None:
    """Delete rows that are older than the load and hold a value that a new row has in a unique index.

    The source has no such row: it is read later, or has gone. Of a changed row the table has the values that the log
    lacks.
    """
    name, columns = table_name(net.layout.name), [column.name for column in net.layout.columns]
    keys = (f"t.{quoted(columns[index])}" for index in marked.key)
    older = f"NOT {is_marked(marked.name, keys)}" if marked.name else "TRUE"
    changed = [] if net.partial is None else list(_partial_rows(net.partial.changed, net))
    key = " AND ".join(f"t.{quoted(columns[index])} = ?" for index in net.layout.key)
    for unique in marked.unique_keys:
        same = " AND ".join(f"t.{quoted(columns[index])} = ?" for index in unique)
        sql = f"DELETE FROM {name} AS t WHERE {same} AND {older}"
        connection.executemany(sql, [tuple(row[index] for index in unique) for row in inserts])
        stored = f"SELECT {column_names([columns[index] for index in unique])} FROM {name} AS t WHERE {key}"
        for values, absent, base in changed:
            own = None if set(unique) <= set(absent) else connection.execute(stored, base).fetchone()
            if own is not None:
                new = [old if index in absent else values[index] for index, old in zip(unique, own, strict=True)]
                connection.execute(f"{sql} AND NOT ({key})", (*new, *base))


def _moved(
    connection: sqlite3.Connection, matches: str, net: NetChanges, partial: Partial, marked: Marks | None
) -> list[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """The old key and the complete new row of each row whose key changes; absent values are read from the table."""
    name, columns = table_name(net.layout.name), [column.name for column in net.layout.columns]
    older = (
        ""
        if marked is None or not marked.name
        else is_marked(marked.name, (quoted(columns[index]) for index in marked.key))
    )
    where = f"{matches} AND {older}" if older else matches
    found = []
    for values, absent, base in _partial_rows(partial.moved, net):
        row = list(values)
        if absent:
            sql = f"SELECT {column_names([columns[index] for index in absent])} FROM {name} WHERE {where}"
            stored = connection.execute(sql, base).fetchone()
            if stored is None:
                raise _missing(net, base)
            for index, value in zip(absent, stored, strict=True):
                row[index] = value
        found.append((base, tuple(row)))
    return found


def _change(connection: sqlite3.Connection, name: str, matches: str, net: NetChanges, partial: Partial) -> None:
    """Set the columns that the log has of each row."""
    columns, key = net.layout.columns, net.layout.key
    statements: dict[tuple[int, ...], str] = {}
    for values, absent, base in _partial_rows(partial.changed, net):
        present = tuple(index for index in range(len(columns)) if index not in absent and index not in key) or key
        if present not in statements:
            assignments = ", ".join(f"{quoted(columns[index].name)} = ?" for index in present)
            statements[present] = f"UPDATE {name} SET {assignments} WHERE {matches}"
        row = (*(values[index] for index in present), *base)
        try:
            count = connection.execute(statements[present], row).rowcount
        except sqlite3.IntegrityError as error:
            raise _refused(error, net, "updated") from error
        if count != 1 and not net.again:
            raise _missing(net, base)


def _partial_rows(
    images: Images, net: NetChanges
) -> Iterator[tuple[tuple[Value, ...], tuple[int, ...], tuple[Value, ...]]]:
    """For each image its values, the indexes of absent columns, and the row's current key."""
    width = len(net.layout.columns)
    for row in decoded(images.data, images.ends, width + 1 + len(net.layout.key)):
        bits = row[width]
        if not isinstance(bits, bytes):
            raise TypeError("a partial image without its bitmap")
        absent = tuple(index for index in range(width) if not bits[index // 8] >> index % 8 & 1)
        yield row[:width], absent, row[width + 1 :]


def _missing(net: NetChanges, base: tuple[Value, ...]) -> TargetDiffers:
    what = f"a row of {net.layout.name} to change is missing"
    hint = NOT_LOADED if net.again else ""
    return TargetDiffers(what, hint=hint, table=net.layout.name, rows=shown(net.layout, base))


def _tuples(images: Images, columns: int, selected: Sequence[int] | None) -> list[tuple[Value, ...]]:
    return decoded(images.data, images.ends, columns, selected)


def _delete(connection: sqlite3.Connection, sql: str, keys: list[tuple[Value, ...]], net: NetChanges) -> None:
    count = _many(connection, sql, keys, net, "deleted")
    if count != len(keys):
        found = missing_rows(connection, net.layout, keys, len(keys) - count, deleted=True)
        raise _miscounted(count, len(keys), net, "deleted", found)


def _insert(connection: sqlite3.Connection, sql: str, rows: list[tuple[Value, ...]], net: NetChanges) -> None:
    count = _many(connection, sql, rows, net, "inserted")
    if count != len(rows):
        raise _miscounted(count, len(rows), net, "inserted")


def _many(connection: sqlite3.Connection, sql: str, values: list[tuple[Value, ...]], net: NetChanges, done: str) -> int:
    try:
        return connection.executemany(sql, values).rowcount
    except sqlite3.IntegrityError as error:
        raise _refused(error, net, done) from error


def _refused(error: sqlite3.IntegrityError, net: NetChanges, done: str) -> ConnectorError:
    if error.sqlite_errorcode == _CONSTRAINT_DATATYPE:  # bytes in a text column
        what = f"a row of {net.layout.name} could not be {done}: {error}"
        return ValueNotRepresentable(what, hint=go_on_without(net.layout.name), table=net.layout.name)
    return TargetDiffers(f"rows of {net.layout.name} could not be {done}: {error}", table=net.layout.name)


def _miscounted(count: int, expected: int, net: NetChanges, done: str, rows: str = "") -> TargetDiffers:
    what = f"{count} rows of {net.layout.name} were {done}, and the log has {expected}"
    return TargetDiffers(what, table=net.layout.name, rows=rows or None)


def _delete_equal(connection: sqlite3.Connection, table: Table, name: str, net: NetChanges) -> None:
    rowid = rowid_name([column.name for column in net.layout.columns])
    columns = net.layout.columns[: len(table.columns)]
    newest = "".join(f"t.{quoted(column.name)} DESC, " for column in table.transaction[:1])
    gone = [f"c{index}" for index in range(len(columns))]
    types = ", ".join(f"{alias} {sqlite_type(column)}" for alias, column in zip(gone, columns, strict=True))
    connection.execute(f"CREATE TEMP TABLE thl_gone ({types}, thl_copies INTEGER) STRICT")
    counted: dict[tuple[tuple[Value, ...], tuple[bytes | None, ...]], int] = {}
    for row in _tuples(net.deletes, len(net.layout.columns), range(len(columns))):
        # -0.0 and 0.0 compare equal but are different values.
        identity = (row, tuple(_bits(value) for value in row if isinstance(value, float)))
        counted[identity] = counted.get(identity, 0) + 1
    connection.executemany(
        f"INSERT INTO {_GONE} VALUES ({_marks(len(columns) + 1)})",
        ((*row, copies) for (row, _), copies in counted.items()),
    )
    matches = " AND ".join(f"t.{quoted(column.name)} IS g.{alias}" for column, alias in zip(columns, gone, strict=True))
    # Reals are compared by their bits, too: SQLite has no function that distinguishes -0.0 and 0.0.
    connection.create_function("thl_bits", 1, _bits, deterministic=True)
    signs = "".join(
        f" AND thl_bits(t.{quoted(column.name)}) IS thl_bits(g.{alias})"
        for column, alias in zip(columns, gone, strict=True)
        if column.type in FLOATS
    )
    sql = (
        f"DELETE FROM {name} WHERE {rowid} IN (SELECT row_id FROM ("
        f"SELECT t.{rowid} AS row_id, g.thl_copies AS copies, "
        f"row_number() OVER (PARTITION BY g.rowid ORDER BY {newest}t.{rowid}) AS nth "
        f"FROM {name} AS t CROSS JOIN {_GONE} AS g ON {matches}{signs}) WHERE nth <= copies)"
    )
    count = connection.execute(sql).rowcount
    connection.execute(f"DROP TABLE {_GONE}")
    if count != len(net.deletes):
        raise _miscounted(count, len(net.deletes), net, "deleted")


def _bits(value: Value) -> bytes | None:
    return struct.pack("<d", value) if isinstance(value, float) else None


def rowid_name(columns: Sequence[str]) -> str:
    """A name of the rowid that no column has.

    Raises:
        ValueNotRepresentable: columns have all names of the rowid.
    """
    taken = {name.lower() for name in columns}
    for name in ("rowid", "_rowid_", "oid"):
        if name not in taken:
            return name
    raise ValueNotRepresentable("a table without a key has columns named rowid, _rowid_ and oid", hint=OTHER_COLUMN)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def missing_rows(
    connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key], lacking: int, *, deleted: bool
) -> str:
    """Some of the keys that the table lacks; "" if they are not known.

    Args:
        connection: in the open transaction that changed the rows.
        layout: the table's, with a key.
        keys: the keys of the rows to change.
        lacking: the number of rows that were not found.
        deleted: the rows were deleted, so the last commit is read instead. It lacks earlier changes of the same
            transaction: if the number of missing rows there differs, no key is named.
    """
    if not deleted:
        return _named(layout, _absent(connection, layout, keys), lacking)
    (file,) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    with closing(sqlite3.connect(file)) as committed:
        exists = committed.execute("SELECT 1 FROM sqlite_master WHERE name = ?", SqliteNames().table(layout.name))
        return _named(layout, _absent(committed, layout, keys), lacking) if exists.fetchone() else ""


def shown(layout: TableLayout, key: Key) -> str:
    """A key as text for error messages."""
    names = [layout.columns[index].name for index in layout.key]
    return ", ".join(f"{name}={value!r:.100}" for name, value in zip(names, key, strict=True))


def _absent(connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key]) -> list[Key]:
    matches = " AND ".join(f"{quoted(layout.columns[index].name)} = ?" for index in layout.key)
    query = f"SELECT 1 FROM {table_name(layout.name)} WHERE {matches}"
    return [key for key in keys if connection.execute(query, key).fetchone() is None]


def _named(layout: TableLayout, absent: Sequence[Key], lacking: int) -> str:
    return "; ".join(shown(layout, key) for key in absent[:NAMED]) if len(absent) == lacking else ""
