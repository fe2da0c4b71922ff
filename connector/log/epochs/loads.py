"""Loads of tables in the control topic: requests, and how far the producer is with each.

A command writes a request, the producer writes the state, in the Kafka transactions of the load's events. Both are by
table: a newer request for a table replaces an older one, and a load begins that its state does not name yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from connector.log.epochs.fork import Range, overlaps
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName


class LoadState(StrEnum):
    """The state of a table's load."""

    LOADING = "loading"
    ENDED = "ended"
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # by an error; another request begins it again


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Key `load-request:["schema","table"]`: a table of the source is to be loaded.

    Args:
        table: the table, by its name on the source.
        load: the ID of the load; random.
        asked_at: µs since 1970 UTC.
        asked_by: user@host.
        cancel: the table's load is to be ended instead, whatever its ID.
        published: the table's name in the log; None: that on the source.
        targets: the IDs of the targets that it is for; none: all.
        keys: of a repair: the keys that are read, each with the text of every column's value, as MySQL shows it, bytes
            as hexadecimal digits; none: the whole table is loaded.
        key_columns: of a repair: the key's columns when it was asked for, without the table's creation.
    """

    table: TableName
    load: str
    asked_at: int
    asked_by: str
    cancel: bool = False
    published: tuple[str, str] | None = None
    targets: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    key_columns: tuple[str, ...] = ()

    @property
    def in_log(self) -> TableName:
        """The table's name in the log."""
        return self.table if self.published is None else TableName(*self.published)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLoad:
    """Key `load:["schema","table"]`: how far a table's newest load is.

    Args:
        table: the table, by its name on the source.
        load: the ID of the load.
        state: the state.
        load_identity: the creation of the table, and the columns of its primary key by which it is divided: if they
            change, the load begins again.
        after: all rows up to this key are in the log, as SQL literals, one for each column; None: none are.
        rows: the rows that were published.
        estimate: approximate number of rows of the table.
        began_at, at: µs since 1970 UTC: when it began, and when this was written.
        why: the error that stopped it.
        begin, last: its first event, and one at or after its last one so far.
        targets: the IDs of the targets that it is for; none: all.
    """

    table: TableName
    load: str
    state: LoadState
    load_identity: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None
    rows: int = 0
    estimate: int = 0
    began_at: int = 0
    at: int = 0
    why: str = ""
    begin: Seqno = NO_SEQNO
    last: Seqno = NO_SEQNO
    targets: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: LoadRequest, now: int, before: TableLoad | None = None) -> TableLoad:
        """The state of a load that has no event yet.

        Args:
            request: the load.
            now: µs since 1970 UTC.
            before: the state that this one replaces. If targets have begun its load, this one says so.
        """
        made = cls(table=request.table, load=request.load, state=LoadState.LOADING, began_at=now)
        if before is None or not is_unfinished(before):
            return made
        return replace(made, begin=before.begin, last=before.last, targets=_of_both(request.targets, before.targets))


def cancelled(requests: Iterable[LoadRequest], states: Mapping[TableName, TableLoad], now: int) -> Iterator[TableLoad]:
    """The new states of tables whose newest request ends their load, whether it has begun or not.

    Args:
        requests: the newest request of each table.
        states: the newest state of each table.
        now: µs since 1970 UTC.
    """
    for request in requests:
        state = states.get(request.table)
        if not request.cancel:
            continue
        if state is None or (state.load != request.load and state.state is not LoadState.LOADING):
            state = TableLoad.of(request, now, state)
        if state.state is LoadState.LOADING:
            yield replace(state, state=LoadState.CANCELLED, at=now, why=f"cancelled by {request.asked_by}")


class OutstandingLoad(NamedTuple):
    """A load that is not ended.

    Args:
        request: the request.
        state: its state; None: it has not begun.
    """

    request: LoadRequest
    state: TableLoad | None


def outstanding(
    requests: Iterable[LoadRequest], states: Mapping[TableName, TableLoad], trapped: Sequence[Range] = ()
) -> list[OutstandingLoad]:
    """The loads that are not ended, in the order in which they were asked for.

    Args:
        requests: the newest request of each table.
        states: the newest state of each table.
        trapped: the events that a later epoch goes on without: a load that had some of them begins again.

    Returns:
        The loads; a request has no keys where the whole table is to be loaded.
    """
    found: list[OutstandingLoad] = []
    for request in sorted(requests, key=lambda one: (one.asked_at, one.table)):
        state = states.get(request.table)
        if request.cancel:
            continue
        if request.keys and state is not None and is_unfinished(state, trapped):
            targets = _of_both(request.targets, state.targets)
            request = replace(request, keys=(), targets=targets)  # noqa: PLW2901
        if state is None or state.load != request.load:
            state = None
        elif state.state not in {LoadState.LOADING, LoadState.ENDED}:
            continue
        elif overlaps(trapped, state.begin, state.last):
            state = None
        elif state.state is LoadState.ENDED:
            continue
        found.append(OutstandingLoad(request, state))
    return found


def is_unfinished(state: TableLoad, trapped: Sequence[Range] = ()) -> bool:
    """True if targets may have begun a load, and are not whole without another: a repair is not enough.

    Where a fork traps a load, it also traps the repair that has replaced it here.
    """
    ended = state.state is LoadState.ENDED and not overlaps(trapped, state.begin, state.last)
    return state.begin != NO_SEQNO and not ended


def targets_with_unfinished(
    table: TableName,
    targets: Sequence[str],
    requests: Mapping[TableName, LoadRequest],
    states: Mapping[TableName, TableLoad],
    trapped: Sequence[Range] = (),
) -> tuple[str, ...]:
    """The targets of a new load of a table: besides those asked for, the ones whose load it replaces before its end.

    They may have begun that load, and are not whole without another.

    Args:
        table: the table, by its name on the source.
        targets: the IDs of the targets asked for; none: all.
        requests, states: the newest of each table.
        trapped: as of `outstanding`.
    """
    request, state = requests.get(table), states.get(table)
    waits = (
        request is not None and not (request.cancel or request.keys) and (state is None or state.load != request.load)
    )
    begun = state is not None and is_unfinished(state, trapped)
    for one, counts in ((request, waits), (state, begun)):
        if one is not None and counts:
            targets = _of_both(targets, one.targets)
    return tuple(targets)


def _of_both(targets: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The targets of two loads; none: all."""
    return tuple(dict.fromkeys([*targets, *others])) if targets and others else ()


def loaded_after(
    seqno: Seqno,
    target: str,
    requests: Iterable[LoadRequest],
    states: Mapping[TableName, TableLoad],
    trapped: Sequence[Range] = (),
) -> frozenset[TableName]:
    """The tables, by their names in the log, of which a load for a target begins after an event, or is asked for.

    Args:
        seqno: the event.
        target: the ID of the target; "": it has none.
        requests, states, trapped: as of `outstanding`.
    """
    asked = [one for one in requests if not (one.cancel or one.keys) and (not one.targets or target in one.targets)]
    to_begin = {request.table for request, state in outstanding(asked, states, trapped) if state is None}
    return frozenset(
        request.in_log
        for request in asked
        if request.table in to_begin or _begins_after(seqno, request, states.get(request.table))
    )


def _begins_after(seqno: Seqno, request: LoadRequest, state: TableLoad | None) -> bool:
    if state is None or state.load != request.load:
        return False
    return state.state in (LoadState.LOADING, LoadState.ENDED) and state.begin > seqno
