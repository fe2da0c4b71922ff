"""The loads of one producer: which were asked for, how far each is, and which are not ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from connector.clock import Clock
from connector.errors import ConnectorError
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import Range
from connector.log.epochs.loads import LoadRequest, LoadState, OutstandingLoad, TableLoad, outstanding
from connector.log.transaction.layout import TableName
from connector.producer.loads.online import OnlineLog

LOG: Final = logging.getLogger(__name__)
REASON_CHARACTERS: Final = 1000


class KnownLoads:
    """Requests and states as they are in the control topic, or will be with the next commit.

    Args:
        service: the service.
        clock: the clock.

    Attributes:
        requests: the newest request of each table.
        states: the newest state of each table.
    """

    def __init__(self, service: str, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self.requests: dict[TableName, LoadRequest] = {}
        self.states: dict[TableName, TableLoad] = {}
        self._trapped: tuple[Range, ...] = ()
        self._outstanding: list[OutstandingLoad] | None = None  # None: it has changed
        self._awaited: frozenset[TableName | str] = frozenset()
        self._awaited_everywhere = self._awaited

    def restore(self, control: ControlState) -> None:
        """Take what the control topic has."""
        self.requests = dict(control.load_requests)
        self.states = dict(control.loads)
        self._trapped = control.trapped
        self._outstanding = None

    def ask(self, request: LoadRequest) -> None:
        """Add a request."""
        self.requests[request.table] = request
        self._outstanding = None

    def changed(self, state: TableLoad) -> TableLoad:
        """Add a state, and return it."""
        self.states[state.table] = state
        self._outstanding = None
        return state

    @property
    def unsorted(self) -> bool:
        """True if requests or states have changed since `outstanding`."""
        return self._outstanding is None

    def outstanding(self) -> list[OutstandingLoad]:
        """The loads that are not ended. Asked for whenever the stream is read, so only what has changed is sorted."""
        if self._outstanding is None:
            self._outstanding = outstanding(self.requests.values(), self.states, self._trapped)
            whole = [one for one in self._outstanding if not one.request.keys]
            self._awaited = _named(whole)
            self._awaited_everywhere = _named([one for one in whole if not one.request.targets])
        return self._outstanding

    def awaits(self, table: TableName, load: str, *, everywhere: bool = False) -> bool:
        """See `AwaitedLoads`."""
        if not self.outstanding():
            return False
        awaited = self._awaited_everywhere if everywhere else self._awaited
        return table in awaited or load in awaited

    def published_together(self, table: TableName, load: str) -> list[TableLoad]:
        """The loads of other tables that are published under the same name: they have one ID, and one end."""
        return [one for one in self.states.values() if one.load == load and one.table != table]

    def stop(self, online: OnlineLog, request: LoadRequest, state: TableLoad | None, error: ConnectorError) -> None:
        """Record that the load of a table has stopped, and why."""
        now = self._clock.now()
        state = state or TableLoad.of(request, now, self.states.get(request.table))
        why = error.located[:REASON_CHARACTERS]
        online.publisher.put([self.changed(replace(state, state=LoadState.STOPPED, at=now, why=why))])
        LOG.error("the load of a table has stopped", extra=self.fields(request.table, why=error))

    def fields(self, table: TableName, **more: object) -> dict[str, object]:
        """Fields of a log line about a table's load."""
        return {"service": self._service, "table": table, **more}


def _named(loads: Iterable[OutstandingLoad]) -> frozenset[TableName | str]:
    """The tables and the IDs of loads."""
    requests = [one.request for one in loads]
    return frozenset([*(one.in_log for one in requests), *(one.load for one in requests)])
