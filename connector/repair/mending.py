"""Asks the producer for repairs, and waits until the target has them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import PreflightError
from connector.kafka.log_reader import LogReader
from connector.kafka.requests import send_requests
from connector.log.epochs.control import ControlState
from connector.log.epochs.loads import LoadRequest
from connector.log.epochs.newest_load import NewestLoad, outcome
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
        for control, applied in self._progress():
            ended: list[NewestLoad] = []
            for name, request in requests.items():
                if name in failed:
                    continue
                try:
                    # One that has ended begins again where a fork leaves out its event.
                    ended += filter(None, [outcome(request, control)])
                except PreflightError as error:
                    failed[name] = error.message
            applied_all = applied >= max((one.last for one in ended), default=NO_SEQNO)
            if len(failed) + len(ended) == len(requests) and applied_all:
                return failed
        late = "the repair is asked for, and not applied yet: thl load --status"
        return failed | {name: late for name in requests if name not in failed}

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
