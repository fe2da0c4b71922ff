"""`thl apply`: claim the target, shake hands with the log, then apply what Spark reads until told to stop.

    Kafka ─► Spark (reads the next batch) ─► Handover ─► ApplyCore (applies this one) ─► target

One attempt is a claim, a handshake and a stream; it ends with a stop or an error. After a passing error (the target
or the brokers are gone) a commit's outcome may be unknown: so the next attempt claims anew and goes on from what
the target then says. Attempts without any progress in between are counted, and given up loudly.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from connector import faults, metrics
from connector.clock import Clock, SystemClock
from connector.config import Config
from connector.errors import ConnectorError
from connector.pipeline.core import ApplyCore
from connector.pipeline.handshake import shake_hands
from connector.reassemble.handover import Handover
from connector.reassemble.scan import Message
from connector.reassemble.spark import EARLIEST, Session, Stream
from connector.thl.ledger import Ledger
from connector.thl.words import Seqno
from connector.write.open import open_target
from connector.write.target import Target

LOG: Final = logging.getLogger(__name__)

HANDOVER_BYTES: Final = 64 << 20  # batches that wait hold no more than this, together
LOOK_SECONDS: Final = 0.2  # how often a quiet stream is looked after, and a stop noticed


class Stopping:
    """Whether somebody wants the process to end: SIGTERM or SIGINT, noticed after the current commit."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked

    def install(self) -> None:
        """Take the signals over; Spark's own handler of SIGINT would leave a batch half handed over."""
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True


class Applier:
    """Applies one service's log to one target, from attempt to attempt.

    Args:
        config: everything.
        session: Spark's.
        stopping: asked between batches.
        until: end after this seqno is applied.
        opened: makes a target; `open_target` but in tests.
        clock: for latencies.
    """

    def __init__(
        self,
        config: Config,
        session: Session,
        stopping: Stopping,
        *,
        until: Seqno | None = None,
        opened: Callable[[], Target] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._session = session
        self._stopping = stopping
        self._until = until
        self._clock = clock or SystemClock()
        self._opened = opened or (lambda: open_target(config.target, self._clock))
        self._done = False

    def run(self) -> None:
        """Apply until stopped.

        Raises:
            ConnectorError: what cannot be mended by trying again, or was tried often enough.
        """
        while not self._done and not self._stopping:
            retrying = Retrying(
                retry=retry_if_exception(lambda error: isinstance(error, ConnectorError) and error.retry),
                wait=wait_exponential_jitter(initial=0.2, max=10, jitter=0.2),
                stop=stop_after_attempt(1 + max(self._config.target.retries, self._config.kafka.retries)),
                sleep=self._sleep,
                reraise=True,
            )
            retrying(self._attempt)

    def _attempt(self) -> None:
        """Claim, handshake, stream. Returns after an error that came after progress: the count begins again."""
        if self._stopping:
            return
        target = self._opened()
        first = last = None
        try:
            position = target.claim(self._config.service)
            first = last = position.seqno
            faults.point("apply.after_claim")
            agreed = shake_hands(self._config, position)
            faults.point("apply.after_handshake")
            LOG.info(
                "applying from seqno %d, epoch %d, offsets %s", position.seqno + 1, position.epoch, position.offsets
            )
            ledger: Ledger[Message] = Ledger(
                topic=self._config.topic, partitions=agreed.partitions, position=position, history=agreed.history
            )
            core = ApplyCore(
                target,
                position,
                ledger,
                log_id=agreed.history.log_id,
                gtid_set=agreed.gtid_set,
                topic=self._config.topic,
                clock=self._clock,
                until=self._until,
            )
            offsets = {number: position.offsets.get(number, EARLIEST) for number in range(agreed.partitions)}
            try:
                self._follow(core, offsets)
            finally:
                last = core.position.seqno
        except ConnectorError as error:
            if not error.retry:
                raise
            metrics.restarts.labels(self._config.service, "apply").inc()
            LOG.warning("%s; beginning anew from what the target says", error)
            if first == last:
                raise
        finally:
            target.close()

    def _follow(self, core: ApplyCore, offsets: dict[int, int]) -> None:
        handover = Handover(self._config.apply.queue_batches, HANDOVER_BYTES)
        stream = Stream(
            self._session,
            self._config.kafka,
            self._config.apply,
            topic=self._config.topic,
            offsets=offsets,
            handover=handover,
        )
        try:
            while not self._stopping and not core.done:
                batch = handover.get(LOOK_SECONDS)
                if batch is None:
                    stream.check()
                else:
                    core.take(batch)
            self._done = True
        finally:
            stream.stop()

    def _sleep(self, seconds: float) -> None:
        waited = 0.0
        while waited < seconds and not self._stopping:
            self._clock.sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS


def run(config: Config, *, own: bool = True, jars: tuple[Path, ...] = (), until: Seqno | None = None) -> None:
    """Apply a service's log to its target until SIGTERM, or until a seqno is applied.

    Args:
        config: everything.
        own: start Spark here; otherwise use the session that spark-submit made.
        jars: Spark's Kafka connector, local files; none: Spark resolves it from its coordinates.
        until: end after this seqno.

    Raises:
        ConnectorError: why it ended, when it was not asked to.
    """
    session = Session(config.apply, f"thl-apply-{config.service}", jars=jars, own=own)
    try:
        stopping = Stopping()
        stopping.install()
        Applier(config, session, stopping, until=until).run()
    finally:
        session.stop()
