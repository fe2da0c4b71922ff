"""A change as it stands in a fragment: a statement whole, of rows all that comes before the rows.

The order of the fields is that of `Statement` and `RowChange` in `schemas/fragment.avsc`; the first byte is the
union's branch.
"""

from __future__ import annotations

from connector.log.format import avro
from connector.log.ids import Action
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout

STATEMENT = avro.long(0)
ROW_CHANGE = avro.long(1)


def statement(change: Statement) -> bytes:
    """A statement, whole."""
    return STATEMENT + avro.string(change.schema) + avro.string(change.sql) + avro.string_map(change.options)


def row_change_head(layout: TableLayout, action: Action, before: bytes = b"", after: bytes = b"") -> bytes:
    """Everything of a row change before its array of rows.

    Args:
        layout: the table, its columns and key.
        action: what happened to the rows.
        before, after: a bit per column that says whether the images have it; empty: they have all.

    Returns:
        The same bytes for every row change of this kind: worth keeping.
    """
    return b"".join(
        (
            ROW_CHANGE,
            avro.string(layout.name.schema),
            avro.string(layout.name.table),
            avro.array(_column(column) for column in layout.columns),
            avro.array(avro.long(index) for index in layout.key),
            avro.long(len(before)) + before,
            avro.long(len(after)) + after,
            avro.long(action),
        )
    )


def _column(column: Column) -> bytes:
    return b"".join(
        (
            avro.string(column.name),
            avro.string(column.type),
            avro.boolean(column.unsigned),
            avro.string(column.charset),
            avro.array(avro.string(label) for label in column.labels),
            avro.boolean(column.nullable),
        )
    )
