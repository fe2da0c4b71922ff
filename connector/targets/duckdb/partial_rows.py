"""Rows of which the log has only some columns (binlog_row_image), in a DuckDB table.

In SQL their values are c0, c1 …; p0, p1 … tell which of them the log has; k0, k1 … are the key that the row has on the
target, under the index of its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from connector.errors import TargetDiffers
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.marks import is_marked
from connector.targets.duckdb.staged_rows import StagedRows, named
from connector.targets.duckdb.types import duckdb_type
from connector.targets.marks import Marks
from connector.targets.names import quoted
from connector.targets.operations import Value
from connector.targets.values import rows as decoded

MOVED: Final = "temp.main.thl_moved"
"""The table of moved rows, with all their values."""

_FLAG: Final = Column("present", "tinyint", unsigned=False)
_SHOWN: Final = 5


def moved(session: FileSession, net: NetChanges, marked: Marks | None) -> bool:
    """Make `MOVED` of the rows that get another key; absent values are read from the table. False: there are none.

    Raises:
        TargetDiffers: a row is missing.
    """
    if net.partial is None or not len(net.partial.moved):
        return False
    layout, rows = net.layout, _staged(net.layout, net.partial.moved)
    whole = ""
    if marked is not None and marked.name:
        keys = (f"t.{quoted(layout.columns[index].name)}" for index in marked.key)
        whole = f" AND {is_marked(session, marked.name, keys)}"
    with named(session, thl_partial=rows):
        values = ", ".join(
            f"CASE WHEN s.p{index} = 1 THEN s.c{index} ELSE CAST(t.{quoted(column.name)} AS {duckdb_type(column)}) END "
            f"AS c{index}"
            for index, column in enumerate(layout.columns)
        )
        count = session.count(
            f"CREATE TEMP TABLE thl_moved AS SELECT {values} FROM {rows.query('thl_partial')} AS s "
            f"JOIN {session.name(layout.name)} AS t ON {_same(layout)}{whole}"
        )
        if count != len(rows):
            raise _missing(session, net, rows, whole)
        if net.again:
            own = " AND ".join(f"t.{quoted(layout.columns[index].name)} = s.c{index}" for index in layout.key)
            session.run(f"DELETE FROM {session.name(layout.name)} AS t USING {MOVED} AS s WHERE {own}")
    return True


def moved_keys(net: NetChanges) -> list[tuple[Value, ...]]:
    """The old keys of the rows that get another one."""
    if net.partial is None or not len(net.partial.moved):
        return []
    width = len(net.layout.columns) + 1
    images = net.partial.moved
    key = range(width, width + len(net.layout.key))
    return decoded(images.data, images.ends, width + len(net.layout.key), list(key))


def change(session: FileSession, net: NetChanges) -> None:
    """Set the columns that the log has of each changed row.

    Raises:
        TargetDiffers: a row is missing.
    """
    if net.partial is None or not len(net.partial.changed):
        return
    layout, rows = net.layout, _staged(net.layout, net.partial.changed)
    others = [index for index in range(len(layout.columns)) if index not in layout.key] or list(layout.key)
    with named(session, thl_partial=rows):
        assignments = ", ".join(
            f"{quoted(layout.columns[index].name)} = "
            f"CASE WHEN s.p{index} = 1 THEN s.c{index} ELSE t.{quoted(layout.columns[index].name)} END"
            for index in others
        )
        count = session.count(
            f"UPDATE {session.name(layout.name)} AS t SET {assignments} FROM {rows.query('thl_partial')} AS s "
            f"WHERE {_same(layout)}"
        )
        if count != len(rows) and not net.again:
            raise _missing(session, net, rows, "")


def delete_holders(session: FileSession, net: NetChanges, unique: Sequence[int], older: str) -> None:
    """Delete rows that are older than the load and hold a value that a changed row gets in a unique index.

    Of a changed row the table has the values that the log lacks.

    Args:
        session: with the file.
        net: the changes.
        unique: the columns of the index.
        older: the condition that a row `t` is older than the load.
    """
    if net.partial is None or not len(net.partial.changed):
        return
    layout, rows = net.layout, _staged(net.layout, net.partial.changed)
    name = session.name(layout.name)
    own = " AND ".join(f"o.{quoted(layout.columns[index].name)} = s.k{index}" for index in layout.key)
    itself = " AND ".join(f"t.{quoted(layout.columns[index].name)} = s.k{index}" for index in layout.key)
    present = " OR ".join(f"s.p{index} = 1" for index in unique)
    same = " AND ".join(
        f"t.{quoted(layout.columns[index].name)} = "
        f"CASE WHEN s.p{index} = 1 THEN s.c{index} ELSE o.{quoted(layout.columns[index].name)} END"
        for index in unique
    )
    with named(session, thl_partial=rows):
        session.run(
            f"DELETE FROM {name} AS t USING {rows.query('thl_partial')} AS s, {name} AS o "
            f"WHERE {own} AND ({present}) AND {same} AND {older} AND NOT ({itself})"
        )


def _staged(layout: TableLayout, images: Images) -> StagedRows:
    width, key = len(layout.columns), layout.key
    values = []
    for row in decoded(images.data, images.ends, width + 1 + len(key)):
        present = row[width]
        if not isinstance(present, bytes):
            raise TypeError("a partial image without its bitmap")
        flags = tuple(present[index // 8] >> index % 8 & 1 for index in range(width))
        values.append((*row[:width], *flags, *row[width + 1 :]))
    columns = (*layout.columns, *[_FLAG] * width, *(layout.columns[index] for index in key))
    names = [f"c{index}" for index in range(width)] + [f"p{index}" for index in range(width)]
    return StagedRows(layout, columns, (*names, *(f"k{index}" for index in key)), values)


def _same(layout: TableLayout) -> str:
    return " AND ".join(f"t.{quoted(layout.columns[index].name)} = s.k{index}" for index in layout.key)


def _missing(session: FileSession, net: NetChanges, rows: StagedRows, whole: str) -> TargetDiffers:
    layout = net.layout
    found = session.run(
        f"SELECT s.n FROM {rows.query('thl_partial')} AS s WHERE NOT EXISTS "
        f"(SELECT 1 FROM {session.name(layout.name)} AS t WHERE {_same(layout)}{whole}) ORDER BY s.n LIMIT {_SHOWN}"
    )
    first = len(rows.columns) - len(layout.key)
    shown = [
        ", ".join(
            f"{layout.columns[index].name}={rows.values[int(str(row))][first + place]!r:.100}"
            for place, index in enumerate(layout.key)
        )
        for (row,) in found
    ]
    return TargetDiffers(
        f"rows of {layout.name} to change are missing",
        hint=NOT_LOADED if net.again else "",
        table=layout.name,
        rows="; ".join(shown) or None,
    )
