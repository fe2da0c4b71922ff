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

from connector import failpoints as faults
from connector.applier.core import ApplyCore
from connector.applier.excluded_tables import ExcludedTables
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.rewind import rewind, seqno_of
from connector.applier.skips import Skips
from connector.applier.stop_condition import ToSeqno, ToTime, Until
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError, ConnectorError, PreflightError, TargetUnavailable
from connector.kafka.handshake import handshake, newest_event
from connector.kafka.large_messages import LargeMessages
from connector.kafka.tails import TailWatch
from connector.kafka.topics import MESSAGE_BYTES, Topics
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.retrying import Stopped, retry
from connector.spark.session import EARLIEST, Session
from connector.spark.stream.load_monitor import LoadMonitor
from connector.spark.stream.stream import LogStream
from connector.targets.open import open_signal_table, open_target
from connector.targets.signal_table import Request, SignalTable
from connector.targets.target import Target

LOG: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2  # how often a quiet stream is looked after, and a stop noticed
DESK_SECONDS: Final = 1.0  # how often the target is asked whether somebody wants us offline
PASSING: Final = (BrokerUnavailable, TargetUnavailable)


class Applier:
    """One run of `thl apply`.

    Args:
        config: everything.
        session: Spark's.
        clock: for latencies.
        stop: set by whoever wants it to end; it does after the commit that is going on.
        until: end there; a seqno is the last event.
        skips: events to leave out, each of which is still to come.
        without: tables to go on without, from the next event on.
        first: apply from this event on, again or without what came before; see `rewind`.
        opened: makes a target; `open_target` but in tests.
    """

    def __init__(
        self,
        config: Config,
        session: Session,
        clock: Clock,
        stop: Event,
        *,
        until: Until | Seqno | None = None,
        first: Seqno | SourcePosition | None = None,
        skips: Skips | None = None,
        without: ExcludedTables | None = None,
        opened: Callable[[], Target] | None = None,
    ) -> None:
        self._config = config
        self._session = session
        self._clock = clock
        self._stop = stop
        self._until = ToSeqno(until) if isinstance(until, int) else until
        self._first = first
        self._skips = skips or Skips()
        self._without = without
        self._opened = opened or (lambda: open_target(config.target, clock))
        self._load = LoadMonitor(clock.monotonic())
        self._position: TargetPosition | None = None
        self._token = 0  # the last claim's: what we lost to a newer applier is not taken back
        self._done = False
        self.request: Request | None = None  # as whose answer it ended
        self._asked_at = 0.0
        self._fresh = True  # what was asked of an earlier applier is not asked of us
        self._newest: Seqno | None = None  # the last event when the time to end at had passed

    def run(self) -> TargetPosition | None:
        """Apply until asked to stop.

        Returns:
            The target's position; None when we were stopped before it was claimed.

        Raises:
            ConnectorError: what trying again cannot mend, or was tried often enough.
        """
        try:
            while not self._done and not self._stop.is_set():
                self._tried(
                    lambda: self._tried(self._attempt, BrokerUnavailable, self._config.kafka.retries),
                    TargetUnavailable,
                    self._config.target.retries,
                )
        except Stopped:
            LOG.debug("stopped while waiting")
        if self.request is not None and self._position is not None:
            with open_signal_table(self._config.target) as desk:  # now that no transaction of ours is open
                desk.went_offline(self._config.service, self._clock.now(), self._position.seqno)
        return self._position

    def _tried(self, call: Callable[[], None], passing: type[ConnectorError], retries: int) -> None:
        """Call again while what passes by itself fails it."""
        service = self._config.service
        retry(call, (passing,), retries=retries, service=service, stage="apply", stop=self._stop, clock=self._clock)

    def _attempt(self) -> None:
        """Claim, handshake, stream. Returns also after a passing error that came after progress."""
        target = self._opened()
        begun = None
        try:
            begun = self._position = target.claim(self._config.service, self._token)
            self._token = target.token
            faults.point("apply.after_claim")
            with (
                open_signal_table(self._config.target) as desk,
                LargeMessages(self._config.kafka, self._config.topic) as large,
            ):
                if self._fresh:
                    desk.forget_request(self._config.service)
                if self._first is not None:
                    begun = self._position = self._taken_back(target, desk, begun, self._first)
                    self._first = None
                if self._fresh:
                    self._check_skips(desk, begun)
                    self._fresh = False
                core, offsets = self._agreed(target, begun, large)
                if self._without is not None:  # only now that nothing refuses what else was asked for
                    self._without.take(target, begun, self._clock)
                    self._without = None
                try:
                    self._follow(core, offsets, desk)
                finally:
                    self._position = core.position
        except PASSING as error:
            if self._position is begun:
                raise
            LOG.warning("beginning anew from what the target says", extra={"why": error})
        finally:
            target.close()

    def _check_skips(self, desk: SignalTable, position: TargetPosition) -> None:
        """What is applied cannot be left out any more; what was left out may be named again."""
        past = {seqno for seqno in self._skips if seqno <= position.seqno} - desk.skipped(position.service)
        if past:
            raise ConfigError(f"event {min(past)} is applied: it cannot be left out", seqno=position.seqno)
        done, following = self._skips.done, position.seqno + 1
        if done is not None and done > following:
            raise ConfigError(
                f"event {done} cannot be done by hand yet: the target needs event {following} next",
                hint=f"thl apply --to-seqno {done - 1} first",
                seqno=position.seqno,
            )

    def _taken_back(
        self, target: Target, desk: SignalTable, position: TargetPosition, first: Seqno | SourcePosition
    ) -> TargetPosition:
        """The position before the event that is to be applied first."""
        seqno = first if isinstance(first, int) else seqno_of(self._config, first)
        return rewind(self._config, target, position, seqno, desk.skipped(position.service))

    def _agreed(
        self, target: Target, position: TargetPosition, large: LargeMessages
    ) -> tuple[ApplyCore, dict[int, int]]:
        """The handshake, and the core that goes on from it, with the offsets to read from."""
        agreed = handshake(self._config, position)
        faults.point("apply.after_handshake")
        core = ApplyCore(
            target,
            position,
            EventSequencer[Message, Messages](
                topic=self._config.topic, partitions=agreed.partitions, position=position, history=agreed.history
            ),
            PartitionBuffers(self._config.topic, large),
            log_id=agreed.history.log_id,
            gtid_set=agreed.gtid_set,
            topic=self._config.topic,
            clock=self._clock,
            until=self._until,
            skips=self._skips,
            columns=metadata_columns(self._config.target.metadata_columns.items()),
        )
        offsets = {number: agreed.offsets.get(number, EARLIEST) for number in range(agreed.partitions)}
        fields = {"service": position.service, "from_seqno": position.seqno + 1, "offsets": dict(position.offsets)}
        LOG.info("applying", extra=fields)
        return core, offsets

    def _follow(self, core: ApplyCore, offsets: dict[int, int], desk: SignalTable) -> None:
        """Apply what is read, until stopped."""
        tails = TailWatch(self._config, self._clock)
        with LogStream(
            self._session, self._config, offsets, self._clock, self._load, largest=self._largest_message()
        ) as reading:
            while not (self._stop.is_set() or core.done or self._asked(desk)):
                batch = reading.next(LOOK_SECONDS)
                if batch is not None:
                    core.take(batch)
                    reading.leave_out(core.full())
                    continue
                tails.check(core.position.seqno)
                if self._ended(core):
                    break
        self._done = True

    def _largest_message(self) -> int:
        """Bytes that a message of the log may have, as the topic is; else as it would be made."""
        if not self._config.apply.continuous:
            return 0
        try:
            return int(Topics(self._config).setting(MESSAGE_BYTES))
        except PreflightError as error:
            LOG.warning("taking kafka.max_message_bytes for the topic's", extra={"why": error.message})
            return self._config.kafka.max_message_bytes

    def _asked(self, desk: SignalTable) -> bool:
        """Whether somebody wants us offline. Asked between batches: then nothing is half done."""
        now = self._clock.monotonic()
        if now - self._asked_at < DESK_SECONDS:
            return False
        self._asked_at = now
        self.request = desk.request(self._config.service)
        return self.request is not None

    def _ended(self, core: ApplyCore) -> bool:
        """Whether the time to end at has passed, and the log as it then was is applied.

        What is published later may have been committed before that time; who wants it asks for a later one.
        """
        if not isinstance(self._until, ToTime) or self._clock.now() <= self._until.time:
            return False
        if self._newest is None:
            self._newest = newest_event(self._config)
        return core.position.seqno >= self._newest
