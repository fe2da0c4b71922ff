"""Asks the producer for repairs, and waits until the target has them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError, PreflightError
from connector.kafka.log_reader import LogReader
from connector.kafka.requests import send_requests
from connector.log.epochs.control import ControlState
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import NO_SEQNO, Seqno
from connector.verify.run import open_reader
from connector.verify.waiting import POLL_SECONDS, QUIET_SECONDS

LOG: Final = logging.getLogger(__name__)


class Mending:
    """Asks for repairs, and waits until the target has them.

    Args:
        config: names the log and the target.
        patience: seconds without progress after which waiting ends.
        clock: the clock.
    """

    def __init__(self, config: Config, *, patience: float, clock: Clock) -> None:
        self._config = config
        self._patience = patience
        self._clock = clock

    def mend(self, requests: Mapping[str, LoadRequest]) -> dict[str, str]:
        """Ask for repairs, and wait until the target has applied them.

        Returns:
            The tables that were not repaired, with the reasons.

        Raises:
            BrokerUnavailable, TargetUnavailable: a server does not answer.
        """
        faults.point("repair.before_request")
        send_requests(self._config, list(requests.values()))
        faults.point("repair.after_request")
        failed: dict[str, str] = {}
        lasts: dict[str, Seqno] = {}
        for states, applied in self._progress():
            for name, request in requests.items():
                if name in failed or name in lasts:
                    continue
                try:
                    if (state := self._ended(states, request)) is not None:
                        lasts[name] = state.last
                except ConnectorError as error:
                    failed[name] = error.message
            if len(failed) + len(lasts) == len(requests) and applied >= max(lasts.values(), default=NO_SEQNO):
                return failed
        late = "the repair is asked for, and not applied yet: thl load --status"
        return failed | {name: late for name in requests if name not in failed}

    def _ended(self, control: ControlState, request: LoadRequest) -> TableLoad | None:
        """The state of a repair that is in the log.

        Raises:
            PreflightError: it was not made.
        """
        newest, state = control.load_requests.get(request.table), control.loads.get(request.table)
        if newest is not None and newest.load != request.load and newest.asked_at > request.asked_at:
            raise PreflightError("another request for the table has replaced the repair: thl load --status")
        if state is None or state.load != request.load or state.state is LoadState.LOADING:
            return None
        if state.state is not LoadState.ENDED:
            raise PreflightError(state.why)
        return state

    def _progress(self) -> Iterator[tuple[ControlState, Seqno]]:
        """The control topic and the target's event, until neither has moved for a time."""
        moved, before, said = self._clock.monotonic(), None, False
        with closing(open_reader(self._config)) as target:
            while True:
                with LogReader(self._config, high_watermark=False) as reader:
                    control = reader.control()
                with target.view(self._config.service) as state:
                    applied = Seqno(state.seqno)
                yield control, applied
                now = self._clock.monotonic()
                if (control.loads, applied) != before:
                    moved, before = now, (control.loads, applied)
                if now - moved >= self._patience:
                    return
                if not said and now - moved >= min(QUIET_SECONDS, self._patience):
                    said = True
                    fields = {"service": self._config.service, "ends_in": self._patience - (now - moved)}
                    LOG.warning("waiting for the repair: thl produce reads it, thl apply applies it", extra=fields)
                self._clock.sleep(POLL_SECONDS)
