"""`thl apply`: claim the target, shake hands with the log, then apply what Spark reads until told to stop.

    Kafka ─► Spark ─► Reading (the next messages) ─► ApplyCore (applies these) ─► target

One attempt is a claim, a handshake and a stream; it ends with a stop or an error. After a passing error (the target
or the brokers are gone) a commit's outcome may be unknown: so the next attempt claims anew and goes on from what
the target then says. Attempts without any progress in between are counted, and given up loudly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final

from connector import faults
from connector.clock import Clock
from connector.config import Config
from connector.errors import BrokerUnavailable, TargetUnavailable
from connector.pipeline.core import ApplyCore
from connector.pipeline.handshake import shake_hands
from connector.pipeline.retrying import Stopped, retry
from connector.reassemble.calm import Calm
from connector.reassemble.large import LargeMessages
from connector.reassemble.message import Message
from connector.reassemble.reading import Reading
from connector.reassemble.scan import Messages
from connector.reassemble.spark import EARLIEST, Session
from connector.thl.ledger import Ledger
from connector.thl.position import TargetPosition
from connector.thl.words import Seqno
from connector.write.open import open_target
from connector.write.target import Target

LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2  # how often a quiet stream is looked after, and a stop noticed
PASSING: Final = (BrokerUnavailable, TargetUnavailable)


class Applier:
    """One run of `thl apply`.

    Args:
        config: everything.
        session: Spark's.
        clock: for latencies.
        stop: set by whoever wants it to end; it does after the commit that is going on.
        until: end after this seqno is applied.
        opened: makes a target; `open_target` but in tests.
    """

    def __init__(
        self,
        config: Config,
        session: Session,
        clock: Clock,
        stop: Event,
        *,
        until: Seqno | None = None,
        opened: Callable[[], Target] | None = None,
    ) -> None:
        self._config = config
        self._session = session
        self._clock = clock
        self._stop = stop
        self._until = until
        self._opened = opened or (lambda: open_target(config.target, clock))
        self._calm = Calm(clock.monotonic())
        self._position: TargetPosition | None = None
        self._token = 0  # the last claim's: what we lost to a newer applier is not taken back
        self._done = False

    def run(self) -> TargetPosition | None:
        """Apply until asked to stop.

        Returns:
            The target's position; None when we were stopped before it was claimed.

        Raises:
            ConnectorError: what trying again cannot mend, or was tried often enough.
        """
        try:
            while not self._done and not self._stop.is_set():
                retry(
                    self._attempt,
                    PASSING,
                    retries=max(self._config.target.retries, self._config.kafka.retries),
                    service=self._config.service,
                    stage="apply",
                    stop=self._stop,
                )
        except Stopped:
            LOG.debug("stopped while waiting")
        return self._position

    def _attempt(self) -> None:
        """Claim, handshake, stream. Returns also after a passing error that came after progress."""
        target = self._opened()
        begun = None
        try:
            begun = self._position = target.claim(self._config.service, self._token)
            self._token = target.token
            faults.point("apply.after_claim")
            with LargeMessages(self._config.kafka, self._config.topic) as large:
                core, offsets = self._agreed(target, begun, large)
                try:
                    self._follow(core, offsets)
                finally:
                    self._position = core.position
        except PASSING as error:
            if self._position is begun:
                raise
            LOG.warning("beginning anew from what the target says", extra={"why": error})
        finally:
            target.close()

    def _agreed(
        self, target: Target, position: TargetPosition, large: LargeMessages
    ) -> tuple[ApplyCore, dict[int, int]]:
        """The handshake, and the core that goes on from it, with the offsets to read from."""
        agreed = shake_hands(self._config, position)
        faults.point("apply.after_handshake")
        core = ApplyCore(
            target,
            position,
            Ledger[Message, Messages](
                topic=self._config.topic, partitions=agreed.partitions, position=position, history=agreed.history
            ),
            large,
            log_id=agreed.history.log_id,
            gtid_set=agreed.gtid_set,
            topic=self._config.topic,
            clock=self._clock,
            until=self._until,
        )
        offsets = {number: agreed.offsets.get(number, EARLIEST) for number in range(agreed.partitions)}
        fields = {"service": position.service, "from_seqno": position.seqno + 1, "offsets": dict(position.offsets)}
        LOG.info("applying", extra=fields)
        return core, offsets

    def _follow(self, core: ApplyCore, offsets: dict[int, int]) -> None:
        """Apply what is read, until stopped."""
        with Reading(self._session, self._config, offsets, self._clock, self._calm) as reading:
            while not self._stop.is_set() and not core.done:
                batch = reading.next(LOOK_SECONDS)
                if batch is not None:
                    core.take(batch)
        self._done = True
