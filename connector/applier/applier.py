"""`thl apply`: claims the target, verifies its position against the log, and applies what Spark reads until it stops.

    Kafka ─► Spark ─► LogStream (the next messages) ─► ApplyCore (applies them) ─► target

An attempt is a claim, a handshake and a stream; it ends with a stop or an error. Where an applier was ended within a
commit of several writers, the first attempt finishes that commit and does nothing else. After a retryable error (the
target or the brokers do not answer) the outcome of a commit may be unknown, so the next attempt claims the target again
and continues from the target's position. The run ends with the error after `retries` attempts without progress.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import Event
from typing import Final

from connector import failpoints as faults
from connector import metrics
from connector.applier.claimant import Claimant
from connector.applier.core import ApplyCore
from connector.applier.opening import open_core, warn_of_intent
from connector.applier.quarantine import Quarantine
from connector.applier.rewind import rewind, seqno_of
from connector.applier.skips import ExcludedTables, Skips
from connector.applier.stop_condition import StopCondition, ToSeqno, ToTime
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError, ConnectorError, PreflightError, TargetUnavailable
from connector.health import ProcessHealth
from connector.kafka.handshake import handshake, log_exists, log_missing, newest_event, tables_loaded_after
from connector.kafka.large_messages import LargeMessages
from connector.kafka.range_reader import RangeReader
from connector.kafka.tails import TailWatch
from connector.kafka.topics import MESSAGE_BYTES, Topics
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.position import Intent, SourcePosition, TargetPosition
from connector.relay.folder import Owner
from connector.relay.writer import RelayWriter
from connector.retrying import Stopped, retry
from connector.spark.executors import Executors
from connector.spark.session import SparkRun
from connector.spark.stream.load_monitor import LoadMonitor
from connector.spark.stream.range_task import Compaction
from connector.spark.stream.stream import LogStream
from connector.targets.open import open_signal_table, open_target, read_position
from connector.targets.signal_table import Request, SignalTable
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)

WAKE_SECONDS: Final = 0.2  # after which a wait for messages ends, so that a stop is noticed
REQUEST_SECONDS: Final = 1.0  # between two queries for a request to go offline
PASSING: Final = (BrokerUnavailable, TargetUnavailable)


class Applier:
    """One run of `thl apply`.

    Args:
        config: the configuration.
        session: the Spark session.
        clock: the clock for latencies.
        stop: set from outside to end the run after the current commit.
        until: the stop condition; a seqno is the last event.
        first: the first event to apply, again or without the earlier ones; see `rewind`.
        skips: events to leave out; the target must not have applied them.
        excluded: tables to exclude, from the next event on.
        opened: opens a target; tests replace `open_target`.
        health: what probes are told of this applier.
    """

    def __init__(
        self,
        config: Config,
        session: SparkRun,
        clock: Clock,
        stop: Event,
        *,
        until: StopCondition | Seqno | None = None,
        first: Seqno | SourcePosition | None = None,
        skips: Skips | None = None,
        excluded: ExcludedTables | None = None,
        opened: Callable[[], TargetDatabase] | None = None,
        health: ProcessHealth | None = None,
    ) -> None:
        self._config = config
        self._session = session
        self._executors = Executors(session, config, clock)
        self._clock = clock
        self._stop = stop
        self._until = ToSeqno(until) if isinstance(until, int) else until
        self._first = first
        self._skips = skips or Skips()
        self._excluded = excluded
        self._quarantine = Quarantine(clock, config.target.on_error, partial(tables_loaded_after, config))
        self._relay: RelayWriter | None = None
        self._opened = opened or (lambda: open_target(config.target, clock))
        self._load = LoadMonitor(clock.monotonic())
        self._health = health or ProcessHealth(clock)
        self._reading = self._health.loop("reading by Spark")
        self._position: TargetPosition | None = None
        self._claimant = Claimant()
        self._done = False
        self.request: Request | None = None  # the request that ended the run
        self._request_polled = 0.0
        self._log_found = False
        self._first_attempt = True  # an older request is for an earlier applier
        self._consistent: bool | None = None  # None: not known yet
        self._newest: Seqno | None = None  # the log's last event when the time of `until` had passed

    def run(self) -> TargetPosition | None:
        """Apply until asked to stop.

        Returns:
            The target's position; None when the run was stopped before the claim.

        Raises:
            ConnectorError: an error that is not retryable, or that persisted after all retries.
        """
        self._executors.prepare(self._stop)
        self._relay = self._relay_writer()
        try:
            while not self._done and not self._stop.is_set():
                self._retry(
                    lambda: self._retry(self._attempt, BrokerUnavailable, self._config.kafka.retries),
                    TargetUnavailable,
                    self._config.target.retries,
                )
        except Stopped:
            LOG.debug("stopped while waiting")
        finally:
            if self._relay is not None:
                self._relay.close()
        if self.request is not None and self._position is not None:
            with open_signal_table(
                self._config.target
            ) as signals:  # answered last: this applier has no open transaction then
                signals.went_offline(self._config.service, self._clock.now(), self._position.seqno)
        return self._position

    def _relay_writer(self) -> RelayWriter | None:
        """Return what writes the relay; None without `relay.dir`."""
        relay = self._config.relay
        if relay.dir is None:
            return None
        if not self._session.slots:
            raise ConfigError(
                "relay.dir: on a cluster there is no relay", hint="set apply.master: local[N], or remove relay.dir"
            )
        metrics.watch_relay(self._config.service, relay.dir)
        return RelayWriter(relay.dir, max_file_bytes=relay.max_file_bytes, retention=relay.retention, clock=self._clock)

    def _retry(self, call: Callable[[], None], passing: type[ConnectorError], retries: int) -> None:
        """Call, and retry after a retryable error."""
        service = self._config.service
        retry(call, (passing,), retries=retries, service=service, stage="apply", stop=self._stop, clock=self._clock)

    def _attempt(self) -> None:
        """Claim, verify the position, and stream. Returns also after a retryable error if there was progress."""
        self._executors.check()
        target = self._opened()
        core = claimed = None
        try:
            self._check_log()
            claimed = self._position = self._claimant.claim(target, self._config.service)
            faults.point("apply.after_claim")
            with (
                open_signal_table(self._config.target) as signals,
                LargeMessages(self._config.kafka, self._config.topic) as large,
                closing(RangeReader(self._config.kafka, self._config.topic, self._clock)) as ranges,
            ):
                if self._first_attempt:
                    signals.forget_request(self._config.service)
                intent = claimed.intent
                if intent is None:
                    claimed = self._position = self._first_position(target, signals, claimed)
                else:
                    warn_of_intent(self._config.service, intent)
                core, offsets = self._handshake(target, claimed, large, ranges)
                self._quarantine.begin(target, claimed)
                if self._excluded is not None and intent is None:  # last: all other options are accepted by now
                    self._excluded.exclude(target, claimed, self._clock)
                    self._excluded = None
                try:
                    self._follow(target, core, offsets, signals)
                finally:
                    self._health.enter("not applying", ready=False)
                    self._position = core.position
                self._done = intent is None or self.request is not None
        except PASSING as error:
            if self._position is claimed:
                raise
            LOG.warning("continuing from the target's position", extra={"why": error})
        except ConnectorError as error:
            refused = None if core is None else core.refused
            if not self._quarantine.accepts(self._config.service, refused, error):
                raise
        finally:
            target.close()

    def _check_log(self) -> None:
        """Check, before the first claim, that the log exists: a claim is a restart for who watches the target.

        Raises:
            LogMissing: it does not, and nothing was applied to the target. Else the handshake refuses the target.
        """
        config = self._config
        self._log_found = self._log_found or log_exists(config)
        if not self._log_found:
            found = read_position(config.target.url.get_secret_value(), config.service)
            if found is None or found.seqno == NO_SEQNO:
                raise log_missing(config)

    def _first_position(self, target: TargetDatabase, signals: SignalTable, position: TargetPosition) -> TargetPosition:
        """Do what the first attempt alone does; return the position before the first event to apply."""
        if self._first is not None:
            position = self._rewound(target, signals, position, self._first)
            self._first = None
        if self._first_attempt:
            self._check_skips(signals, position)
            self._first_attempt = False
        return position

    def _check_skips(self, signals: SignalTable, position: TargetPosition) -> None:
        """Refuse to skip an event that is applied; an event that was skipped before may be named again."""
        past = {seqno for seqno in self._skips if seqno <= position.seqno} - signals.skipped(position.service)
        if past:
            raise ConfigError(
                f"event {min(past)} is applied already: it cannot be skipped", seqno=position.seqno, applied=min(past)
            )
        done, following = self._skips.done, position.seqno + 1
        if done is not None and done > following:
            raise ConfigError(
                f"event {done} cannot be done by hand yet: the target needs event {following} next",
                hint=f"thl apply --to-seqno {done - 1} first",
                seqno=position.seqno,
                next_seqno=following,
            )

    def _rewound(
        self, target: TargetDatabase, signals: SignalTable, position: TargetPosition, first: Seqno | SourcePosition
    ) -> TargetPosition:
        """Return the position before the first event to apply."""
        seqno = first if isinstance(first, int) else seqno_of(self._config, first)
        return rewind(self._config, target, position, seqno, signals.skipped(position.service))

    def _handshake(
        self, target: TargetDatabase, position: TargetPosition, large: LargeMessages, ranges: RangeReader
    ) -> tuple[ApplyCore, dict[int, int]]:
        """Verify the position against the log.

        Returns:
            The core that continues from it, and the offsets to read from.
        """
        agreed = handshake(self._config, position)
        faults.point("apply.after_handshake")
        if self._relay is not None:
            self._relay.begin(position, agreed.history, agreed.gtid_set, Owner(target.token, target.identity))
        core = open_core(
            self._config,
            target,
            position,
            agreed,
            large=large,
            ranges=ranges,
            clock=self._clock,
            until=self._until,
            skips=self._skips,
            relay=self._relay,
            quarantine=self._quarantine,
        )
        fields = {"service": position.service, "from_seqno": position.seqno + 1, "offsets": dict(position.offsets)}
        LOG.info("applying", extra=fields)
        return core, agreed.start_offsets

    def _follow(self, target: TargetDatabase, core: ApplyCore, offsets: dict[int, int], signals: SignalTable) -> None:
        """Apply the stream's messages until stopped."""
        tails = TailWatch(self._config, self._clock)
        with (
            self._reading.under_way(),
            LogStream(
                self._session,
                self._config,
                offsets,
                self._clock,
                self._load,
                largest=self._largest_message(),
                compaction=self._compaction(core.position.intent),
            ) as stream,
        ):
            self._health.enter("applying", ready=True)
            while not (self._stop.is_set() or core.done or self._requested(signals)):
                self._tell_of_consistency(target, core)
                batch = stream.next(WAKE_SECONDS)
                if batch is not None or not stream.tasks_run:
                    self._reading.turn()
                if batch is not None:
                    with self._reading.waits():  # for the target
                        core.accept(batch.parts, more=batch.full)
                        stream.leave_out(core.full())
                    continue
                if core.waiting:
                    with self._reading.waits():
                        core.accept(())
                self._executors.check()
                tails.check(core.position.seqno)
                if self._ended(core):
                    break

    def _tell_of_consistency(self, target: TargetDatabase, core: ApplyCore) -> None:
        """Log that a load has ended, as the producer does."""
        consistent = core.position.consistent and not target.target_schema.loading
        if consistent and self._consistent is False:
            fields = {"service": self._config.service, "seqno": core.position.seqno}
            LOG.info("the target is consistent: all tables are loaded", extra=fields)
        self._consistent = consistent

    def _compaction(self, intent: Intent | None) -> Compaction:
        """Return how Spark's tasks compact: not if events are needed one by one.

        The events of an intent are compacted as one, by the core. What is moved or kept apart by its events as a
        whole was so in any segments; segments that end elsewhere than those of the first try may have more.
        """
        target = self._config.target
        return Compaction(
            compact=intent is None and isinstance(self._until, ToSeqno | None),
            columns=metadata_columns(target.metadata_columns.items()),
            history=history_tables(target.history),
            events=target.audit,
            target=target.id,
            records=self._relay is not None,
        )

    def _largest_message(self) -> int:
        """Return the maximum bytes of a message: the topic's setting, else the configured one."""
        if not self._config.apply.continuous:
            return 0
        try:
            return int(Topics(self._config).setting(MESSAGE_BYTES))
        except PreflightError as error:
            LOG.warning(
                "the topic's max.message.bytes is unknown: using kafka.max_message_bytes", extra={"why": error.message}
            )
            return self._config.kafka.max_message_bytes

    def _requested(self, signals: SignalTable) -> bool:
        """True once there is a request to go offline; called between batches, when no commit is open."""
        now = self._clock.monotonic()
        if now - self._request_polled < REQUEST_SECONDS:
            return False
        self._request_polled = now
        with self._reading.waits():
            self.request = signals.request(self._config.service)
        return self.request is not None

    def _ended(self, core: ApplyCore) -> bool:
        """True once the time of `until` has passed, and the log as it was then is applied.

        A transaction that was committed before that time may be published later; a later time includes it.
        """
        if not isinstance(self._until, ToTime) or self._clock.now() <= self._until.time:
            return False
        if self._newest is None:
            self._newest = newest_event(self._config)
        return core.position.seqno >= self._newest
