"""Encodes a change of a fragment: a whole statement, or everything of a row change before its rows.

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
    """Encode a statement."""
    return STATEMENT + avro.string(change.schema) + avro.string(change.sql) + avro.string_map(change.options)


def change_header(layout: TableLayout, action: Action, before: bytes = b"", after: bytes = b"") -> bytes:
    """Encode everything of a row change before its array of rows: the change header.

    Args:
        layout: the table, its columns and key.
        action: insert, update or delete.
        before, after: a bit for each column that the images have; empty: they have all.

    Returns:
        The same bytes for every row change with these arguments.
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
