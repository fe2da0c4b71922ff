"""A source's transaction in Tungsten's layout: as `thl list` shows it, a fragment a piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connector.listing.row_values import row_values
from connector.listing.tungsten import lines
from connector.thl.event_id import EventId
from connector.thl.piece import Begin, Ending, Piece, Rows, Statement
from connector.thl.words import Seqno


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece as a fragment of `schemas/fragment.avsc`, as far as the layout shows one.

    Args:
        place: the file.
        fragment: it.
        voided: never.
    """

    place: str
    fragment: dict[str, Any]
    voided: bool = False


class TungstenPrinter:
    """Prints transactions, as `connector.listing.transactions.Printer` says.

    There is no producer, so no epoch: it is 0; the source is told by its server id.
    """

    def __init__(self) -> None:
        self._begin: Begin | None = None
        self._fragno = 0

    def begin(self, begin: Begin) -> None:
        """A transaction begins."""
        self._begin, self._fragno = begin, 0

    def piece(self, seqno: Seqno, piece: Piece) -> bytes:
        """A fragment; what is known only at the transaction's end is null before."""
        begin, ending = self._begin, piece.ending
        if begin is None:
            raise ValueError("a piece of a transaction that has not begun")
        fragment: dict[str, Any] = {
            "seqno": seqno,
            "fragno": self._fragno,
            "last_frag": ending is not None,
            "commit_time": ending and ending.commit_time,
            "epoch": 0,
            "event_id": ending and str(EventId(ending.end.file, ending.end.offset, begin.thread_id)),
            "source_id": begin.server_id,
            "metadata": {"mysql_server_id": begin.server_id, "dbms_type": "mysql", **begin.metadata},
            "changes": [_change(change) for change in piece.changes],
        }
        self._fragno += 1
        return ("\n".join(lines(Shown(begin.start.file, fragment))) + "\n").encode()

    def head(self, seqno: Seqno, ending: Ending) -> bytes:
        """Nothing: every fragment has its own."""
        del seqno, ending
        return b""

    def tail(self) -> bytes:
        """Nothing."""
        return b""


def _change(change: Rows | Statement) -> dict[str, Any]:
    if isinstance(change, Statement):
        return {"schema": change.schema, "sql": change.sql, "options": change.options}
    layout = change.layout
    return {
        "schema": layout.name.schema,
        "table": layout.name.table,
        "action": change.action.name,
        "columns": [{"name": column.name} for column in layout.columns],
        "key_columns": layout.key,
        "before_present": b"",
        "after_present": b"",
        "rows": row_values(change.data, change.ends, len(layout.columns)),
    }
