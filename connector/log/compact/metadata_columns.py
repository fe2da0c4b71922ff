"""Columns that a target has beside those of the source: which transaction last inserted or updated a row.

The one that applies writes them, because it knows all of an event when it does: a producer lets a transaction's first
rows go before it knows when and where that was committed.
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
    """Put the columns in this module's order: the seqno first, so that it tells which of two rows is newer.

    Args:
        kinds: what each holds.
        columns: what they are, as if the source had them.
    """

    kinds: tuple[str, ...]
    columns: tuple[Column, ...]

    def beside(self, layout: TableLayout) -> TableLayout:
        """A table of the source with them, behind its own columns."""
        return replace(layout, columns=layout.columns + self.columns)

    def values(self, header: FragmentHeader) -> list[Value]:
        """The columns' values in rows of an event, as far as one of its fragments has them; else None."""
        return [_value(kind, header) for kind in self.kinds]


def metadata_columns(names: Iterable[tuple[str, str]]) -> MetadataColumns | None:
    """Those that are configured: what each holds, and its name on the target; None where there are none."""
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
