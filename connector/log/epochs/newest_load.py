"""The newest load of each table, as commands show it, and the outcome of one for which they wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from connector.errors import PreflightError
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import Range, overlaps
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName

WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestLoad:
    """The load that was asked for last of a table.

    Args:
        table: the table, by its name on the source.
        in_log: the table's name in the log.
        load: the ID of the load.
        asked_at: when it was asked for, in µs since 1970 UTC; 0: unknown.
        targets: the IDs of the targets that it is for; none: all.
        state: a `LoadState`, or "waiting": it has not begun.
        keys: the number of keys that a repair is for; 0: it is of all rows.
        rows: the rows that were published; None: it has no state yet.
        estimate: approximate number of rows of the table; None: it has no state yet.
        why: the error that stopped it, or who ended it.
        last: its last event, or one after that; NO_SEQNO: it has none so far.
    """

    table: TableName
    in_log: TableName
    load: str
    asked_at: int
    targets: tuple[str, ...]
    state: str
    keys: int = 0
    rows: int | None = None
    estimate: int | None = None
    why: str = ""
    last: Seqno = NO_SEQNO

    @property
    def under_way(self) -> bool:
        """True if it has not ended."""
        return self.state in (WAITING, LoadState.LOADING)

    @classmethod
    def each(
        cls,
        requests: Mapping[TableName, LoadRequest],
        states: Mapping[TableName, TableLoad],
        trapped: Sequence[Range] = (),
    ) -> Iterator[NewestLoad]:
        """The newest load of each table, ordered by table.

        Args:
            requests, states: the newest of each table.
            trapped: the events that a later epoch goes on without: a load that had some of them begins again.
        """
        for table in sorted({*requests, *states}):
            if table in requests:
                yield cls._of(requests[table], states.get(table), trapped)
            else:
                yield cls._begun(states[table], table, 0, states[table].targets)

    @classmethod
    def _of(cls, request: LoadRequest, state: TableLoad | None, trapped: Sequence[Range]) -> NewestLoad:
        if state is not None and state.load == request.load:
            again = state.state in (LoadState.LOADING, LoadState.ENDED) and overlaps(trapped, state.begin, state.last)
            if not again:
                return replace(
                    cls._begun(state, request.in_log, request.asked_at, request.targets), keys=len(request.keys)
                )
        return cls(
            table=request.table,
            in_log=request.in_log,
            load=request.load,
            asked_at=request.asked_at,
            targets=request.targets,
            state=LoadState.CANCELLED if request.cancel else WAITING,
            keys=len(request.keys),
        )

    @classmethod
    def _begun(cls, state: TableLoad, in_log: TableName, asked_at: int, targets: tuple[str, ...]) -> NewestLoad:
        return cls(
            table=state.table,
            in_log=in_log,
            load=state.load,
            asked_at=asked_at,
            targets=targets,
            state=state.state,
            rows=state.rows,
            estimate=state.estimate,
            why=state.why,
            last=state.last,
        )


def outcome(asked: LoadRequest, control: ControlState) -> NewestLoad | None:
    """Return the load or the repair that was asked for once it has ended; None: it has not.

    Args:
        asked: the request, which may not be committed yet.
        control: the control topic.

    Raises:
        PreflightError: it was stopped, or cancelled where that was not asked for; or another has taken its place.
    """
    found = NewestLoad.each(control.load_requests, control.loads, control.trapped)
    newest = next((load for load in found if load.table == asked.table), None)
    if newest is None or newest.asked_at < asked.asked_at:
        return None
    what = "repair" if asked.keys else "load"
    if newest.load != asked.load:
        raise PreflightError(
            f"another load of {asked.table} was asked for meanwhile, which takes the place of this {what}",
            hint="thl load --status",
        )
    if newest.state in (WAITING, LoadState.LOADING):
        return None
    if newest.state != LoadState.ENDED and not asked.cancel:
        why = f": {newest.why}" if newest.why else ""
        raise PreflightError(f"the {what} of {asked.table} was {newest.state}{why}")
    return newest
