"""Repairs of tables: loads of some keys alone, each of which is one event of one round.

A key that the stream has changed between the round's view and its position is left out, as in any load: before the
position the log has the whole row, or its delete. Images without all columns spoil the round, so no column is missed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from connector.errors import SourceChanged
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Seqno
from connector.producer.sources.source import OpenedTable

KEY_CHANGED: Final = "the columns of the primary key have changed since the repair was asked for"


def begin_repair(request: LoadRequest, table: OpenedTable, now: int) -> TableLoad:
    """The state of a repair whose rows are published next. It is not recorded before its end.

    Args:
        request: the repair.
        table: the table.
        now: µs since 1970 UTC.

    Raises:
        SourceChanged: the table has another key than that of the request.
    """
    if request.key_columns != table.key_columns:
        raise SourceChanged(KEY_CHANGED, table=request.table, key=", ".join(table.key_columns))
    return replace(TableLoad.of(request, now), targets=request.targets)


def end_repair(state: TableLoad, rows: int, event: Seqno, now: int) -> TableLoad:
    """The state of a repair that has ended. It is written with the event, so that no other producer makes another.

    Args:
        state: the state at its beginning.
        rows: the number of rows.
        event: its event; NO_SEQNO: it has none, because the stream has changed all of its rows.
        now: µs since 1970 UTC.
    """
    return replace(state, state=LoadState.ENDED, rows=rows, at=now, begin=event, last=event)
