"""Deletes rows of a DuckDB table without a key: as many of equal rows as the log has.

All columns are compared, NULLs are equal, and zeros of different signs are different. That reads the table once per
batch. Metadata columns are not compared; if the table has them, rows of the newest transactions are deleted first, as
within a batch.
"""

from __future__ import annotations

from connector.ddl.syntax.type_names import FLOATS
from connector.errors import TargetDiffers, ValueNotRepresentable
from connector.log.compact.net_changes import NetChanges
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.staged_rows import named, staged
from connector.targets.names import OTHER_COLUMN, quoted
from connector.targets.table import Table


def delete(session: FileSession, table: Table, net: NetChanges) -> None:
    """Delete the rows of `net.deletes`.

    Raises:
        TargetDiffers: a row is missing.
        ValueNotRepresentable: the table has a column named rowid, which hides DuckDB's.
    """
    layout = net.layout
    if any(column.name.lower() == "rowid" for column in layout.columns):
        raise ValueNotRepresentable(
            f"rows of {layout.name}, which has no key, cannot be deleted: a column named rowid hides DuckDB's own",
            hint=OTHER_COLUMN,
            table=layout.name,
            column="rowid",
        )
    own = layout.columns[: len(table.columns)]
    gone = staged(layout, net.deletes, range(len(own)))
    name = session.name(layout.name)
    columns = [f"c{index}" for index in range(len(own))]
    signs = [column for column, one in zip(columns, own, strict=True) if one.type in FLOATS]
    groups = ", ".join([*columns, *(f"signbit({column})" for column in signs)])
    signed = "".join(f", signbit({column}) AS s{column}" for column in signs)
    same = " AND ".join(
        f"t.{quoted(one.name)} IS NOT DISTINCT FROM g.{column}"
        + (f" AND signbit(t.{quoted(one.name)}) IS NOT DISTINCT FROM g.s{column}" if column in signs else "")
        for column, one in zip(columns, own, strict=True)
    )
    newest = "".join(f"t.{quoted(column.name)} DESC NULLS LAST, " for column in table.transaction[:1])
    with named(session, thl_gone=gone):
        count = session.count(
            f"WITH g AS (SELECT {', '.join(columns)}{signed}, count(*) AS copies, row_number() OVER () AS image "
            f"FROM {gone.query('thl_gone')} GROUP BY {groups}) "
            f"DELETE FROM {name} WHERE rowid IN (SELECT row_id FROM (SELECT t.rowid AS row_id, g.copies AS copies, "
            f"row_number() OVER (PARTITION BY g.image ORDER BY {newest}t.rowid) AS nth "
            f"FROM {name} AS t JOIN g ON {same}) WHERE nth <= copies)"
        )
    if count != len(gone):
        what = f"{count} rows of {layout.name} were deleted, and the log has {len(gone)}"
        raise TargetDiffers(what, table=layout.name, rows=None)
