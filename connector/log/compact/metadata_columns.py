"""The metadata columns of target tables: the transaction that last inserted or updated a row.

The applier fills them, not the producer: a large transaction's first rows are published before its commit time and
event id are known. They are defined here because compaction appends their values to each row image.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from connector.log.format.header import FragmentHeader
from connector.log.transaction.layout import Column, TableLayout

SEQNO: Final = "seqno"
_COLUMNS: Final = {
    SEQNO: Column("", "bigint"),
    "gtid": Column("", "varchar(255)", charset="utf8mb4"),
    "commit_time": Column("", "timestamp(6)"),
    "event_id": Column("", "varchar(255)", charset="utf8mb4"),
    "server_id": Column("", "int", unsigned=True),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Value = int | str | None


@dataclass(frozen=True, slots=True)
class MetadataColumns:
    """The configured metadata columns. The seqno is the first, so that it decides which of two rows is newer.

    Args:
        kinds: the value of each column: `seqno`, `gtid`, `commit_time`, `event_id` or `server_id`.
        columns: their names and types, as columns of a source table.
    """

    kinds: tuple[str, ...]
    columns: tuple[Column, ...]

    def beside(self, layout: TableLayout) -> TableLayout:
        """The layout with the metadata columns after the table's own."""
        return replace(layout, columns=layout.columns + self.columns)

    def values(self, header: FragmentHeader) -> list[Value]:
        """The values for rows of an event; None for those that this fragment's header does not have."""
        return [_value(kind, header) for kind in self.kinds]


def metadata_columns(names: Iterable[tuple[str, str]]) -> MetadataColumns | None:
    """The metadata columns of a configuration, or None.

    Args:
        names: pairs of a value (`seqno`, `gtid` ...) and the column's name on the target.
    """
    called = dict(names)
    kinds = tuple(kind for kind in _COLUMNS if kind in called)
    columns = tuple(replace(_COLUMNS[kind], name=called[kind]) for kind in kinds)
    return MetadataColumns(kinds, columns) if kinds else None


def _value(kind: str, header: FragmentHeader) -> Value:
    match kind:
        case "seqno":
            return header.seqno
        case "gtid":
            return header.gtid
        case "event_id":
            return header.event_id
        case "server_id":
            return header.server_id
    if header.commit_time is None:
        return None
    # Ten times as quick as strftime; it appends the offset from UTC.
    return (_EPOCH + timedelta(microseconds=header.commit_time)).isoformat(" ", "microseconds")[:-6]
