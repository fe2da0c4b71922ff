"""The columns of a row change, for Arrow and for Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

LAYOUT: Final = "layout"

_COLUMNS: Final[tuple[tuple[str, str, pa.DataType], ...]] = (
    ("seqno", "BIGINT", pa.int64()),
    ("change", "BIGINT", pa.int64()),
    ("epoch", "BIGINT", pa.int64()),
    ("commit_time", "TIMESTAMP", pa.timestamp("us", tz="UTC")),
    ("server_id", "BIGINT", pa.int64()),
    ("kind", "STRING", pa.string()),
    ("event_id", "STRING", pa.string()),
    ("gtid", "STRING", pa.string()),
    ("snapshot", "STRING", pa.string()),
    ("load", "STRING", pa.string()),
    ("load_part", "STRING", pa.string()),
    ("schema", "STRING", pa.string()),
    ("table", "STRING", pa.string()),
    ("action", "STRING", pa.string()),
    ("key", "STRING", pa.string()),
    ("before", "STRING", pa.string()),
    ("after", "STRING", pa.string()),
    ("sql", "STRING", pa.string()),
    (LAYOUT, "STRING", pa.string()),
)


def arrow_schema(*, layout: bool) -> pa.Schema:
    """Return the schema of the executors' batches.

    Args:
        layout: include the column with each row's table.
    """
    return pa.schema([pa.field(name, type_) for name, _, type_ in _COLUMNS if layout or name != LAYOUT])


def spark_schema(*, layout: bool) -> str:
    """Return the same columns as Spark DDL."""
    return ", ".join(f"`{name}` {type_}" for name, type_, _ in _COLUMNS if layout or name != LAYOUT)
