"""Applies a relay to a target, without Kafka and Spark: one with retention, or the rest of a commit of several writers.

    Relay (the next messages) ─► ApplyCore (applies them) ─► target

The log's history is with the brokers. A relay proves its part of it by its log ID, its seqnos without gaps, and the
epoch of the event that the target has applied last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

import pyarrow as pa

from connector.applier.claimant import Claimant
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.quarantine import Quarantine
from connector.applier.stop_condition import StopCondition
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import (
    BrokerUnavailable,
    ConfigError,
    ConnectorError,
    HistoriesDiffer,
    LogDamaged,
    TargetUnavailable,
)
from connector.kafka.handshake import lost
from connector.kafka.message_batch import message_batch
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading.relay_sequencer import RelaySequencer
from connector.log.transaction.position import Intent, TargetPosition
from connector.relay.folder import Lock, check_private
from connector.relay.frames import RelayFragment
from connector.relay.reader import RelayReader, TrappedEvents, WholeEvent
from connector.retrying import Stopped, retry
from connector.targets.open import open_signal_table, open_target
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)


class RelayApplier:
    """One run of `thl apply` from a relay, to its end.

    Args:
        config: the configuration.
        folder: the relay.
        clock: the clock for latencies.
        stop: set from outside to end the run after the current commit.
        until: the stop condition.
        opened: opens a target; tests replace `open_target`.
    """

    def __init__(
        self,
        config: Config,
        folder: Path,
        clock: Clock,
        stop: Event,
        *,
        until: StopCondition | None = None,
        opened: Callable[[], TargetDatabase] | None = None,
    ) -> None:
        self._config = config
        self._folder = folder
        self._clock = clock
        self._stop = stop
        self._until = until
        self._opened = opened or (lambda: open_target(config.target, clock))
        self._quarantine = Quarantine(clock, config.target.on_error)
        self._claimant = Claimant()
        self._position: TargetPosition | None = None
        self._done = False

    def run(self, *, intent_alone: bool = False) -> TargetPosition | None:
        """Apply until the relay's end, or until asked to stop.

        Args:
            intent_alone: finish the target's intent, and apply nothing else.

        Returns:
            The target's position; None when the run was stopped before the claim.

        Raises:
            ConfigError, LogDamaged: other users can write to the folder, it has no relay, or lacks events that the
                target needs next.
            HistoriesDiffer: the target's last event is not in the relay's log.
            ConnectorError: the target refuses a change, or does not answer.
        """
        service, retries = self._config.service, self._config.target.retries
        check_private(self._folder)
        try:
            while not self._done and not self._stop.is_set():
                retry(
                    lambda: self._attempt(intent_alone=intent_alone),
                    (TargetUnavailable,),
                    retries=retries,
                    service=service,
                    stage="apply",
                    stop=self._stop,
                    clock=self._clock,
                )
        except Stopped:
            LOG.debug("stopped while waiting")
        return self._position

    def _attempt(self, *, intent_alone: bool) -> None:
        """Claim, verify the position, and apply; an intent is finished in an attempt of its own."""
        with closing(self._opened()) as target:
            position = self._position = self._claimant.claim(target, self._config.service)
            relay = self._open_relay(position)
            intent = position.intent
            if intent is None and intent_alone:
                self._done = True
                return
            order = RelaySequencer[Message, Messages | Segment](folder=str(self._folder), position=position)
            core = ApplyCore(
                target,
                position,
                order,
                PartitionBuffers(
                    self._config.topic,
                    _Nothing(),
                    _Nothing(),
                    self._config.target.id,
                    executes_statements=self._config.target.executes_statements,
                ),
                log_id=relay.log_id,
                gtid_set=relay.files[0].head.gtid_set if position.seqno == NO_SEQNO else position.gtid_set,
                topic=self._config.topic,
                clock=self._clock,
                until=self._until,
                columns=metadata_columns(self._config.target.metadata_columns.items()),
                history=history_tables(self._config.target.history),
                quarantine=self._quarantine,
            )
            self._quarantine.begin(target, position)
            try:
                for batch in _batches(relay, position, order, self._config.apply.batch_bytes):
                    core.accept([batch])
                    if core.done or self._stop.is_set():
                        break
            except ConnectorError as error:
                if not self._quarantine.accepts(self._config.service, core.refused, error):
                    error.where = {"folder": str(self._folder), **error.where}
                    raise
                return
            finally:
                self._position = core.position
            self._done = intent is None or core.position.intent is not None

    def _open_relay(self, position: TargetPosition) -> RelayReader:
        """Return the relay, which continues where the target is."""
        needed = f"{position.seqno + 1}.." if position.intent is None else position.intent.span
        try:
            relay = RelayReader(self._folder)
            self._verify(relay, position)
            if position.intent is not None:
                _verify_intent(relay, position, position.intent)
        except ConnectorError as error:
            error.where = {"service": self._config.service, "needed": needed, **error.where}
            raise
        return relay

    def _verify(self, relay: RelayReader, position: TargetPosition) -> None:
        if relay.service != self._config.service:
            raise ConfigError(
                "the relay is of another service", hint="--set service=…", found=relay.service, folder=str(self._folder)
            )
        intended = relay.log_id if position.intent is None else position.intent.log_id
        if position.log_id not in ("", relay.log_id) or intended != relay.log_id:
            raise HistoriesDiffer(
                "the relay is of another log than the one that the target follows",
                hint="nothing was changed",
                folder=str(self._folder),
                relay_log_id=relay.log_id,
                target_log_id=position.log_id or intended,
                seqno=position.seqno,
            )
        epoch = None if position.seqno == NO_SEQNO else relay.epoch_of(position.seqno)
        if epoch is not None and epoch != position.epoch:
            raise HistoriesDiffer(
                f"Log epoch numbers do not match: client source ID={position.source_id} seqno={position.seqno} "
                f"server epoch number={epoch} client epoch number={position.epoch}",
                hint="the target holds events that are not in this relay: nothing was changed",
                folder=str(self._folder),
            )


class FinishedFromRelay(NamedTuple):
    """A commit of several writers that a relay has finished.

    Args:
        position: the position after it.
        reason: why the relay did, in words.
    """

    position: TargetPosition
    reason: str


def finish_intent_from_relay(config: Config, clock: Clock, stop: Callable[[], Event]) -> FinishedFromRelay | None:
    """Make a target consistent that an applier left within a commit of several writers, if Kafka cannot serve for it.

    That is so if no broker answers, or if the topic's retention has deleted what the commit needs.

    Args:
        config: the configuration; `relay.dir` names the relay.
        clock: the clock for retries.
        stop: returns what is set from outside to end early; called if there is something to do.

    Returns:
        The commit; None if there is nothing to do here: the target is not within one, or was not claimed before the
        stop, or Kafka has the events, so that the applier finishes it as always.

    Raises:
        ConnectorError: the relay lacks what is needed; nothing was changed. Or as `RelayApplier.run`.
    """
    if config.relay.dir is None:
        return None
    try:
        with open_signal_table(config.target) as signals:
            before = signals.position(config.service)
    except TargetUnavailable:
        return None  # the applier tries again
    if before is None or before.intent is None or (error := lost(config, before)) is None:
        return None
    reason = "no broker answers" if isinstance(error, BrokerUnavailable) else "the topic's retention has deleted events"
    fields = {"service": config.service, "needed": before.intent.span}
    why = {"why": error.message}
    LOG.warning(f"the target is within a commit, and {reason}: the relay finishes it", extra=fields | why)
    try:
        check_private(config.relay.dir)
        with closing(Lock(config.relay.dir, clock)):
            position = RelayApplier(config, config.relay.dir, clock, stop()).run(intent_alone=True)
        return None if position is None else FinishedFromRelay(position, reason)
    except ConnectorError as failure:
        failure.where = {**fields, **failure.where}
        raise


def causes_left(config: Config, position: TargetPosition) -> list[str]:
    """Return the causes for which a target is not, or not in all tables, the source's state at its position."""
    found = []
    with open_signal_table(config.target) as signals:
        if not position.consistent or signals.loading(config.service):
            found.append("rewind" if position.rewound_from > position.seqno else "load")
        if signals.excluded(config.service):
            found.append("quarantine")
        if signals.inconsistent(config.service):
            found.append("skipped")
    return found


class _Nothing:
    """Stands for what fetches from Kafka what was not read: a relay has all messages."""

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """Fail."""
        raise LogDamaged("a message of the relay has no value", partition=partition, offset=offset)

    def rest(self) -> None:
        """Do nothing."""

    def batches(self, partition: int, begin: int, end: int, *, large: bool = False) -> Generator[pa.RecordBatch]:
        """Fail."""
        raise LogDamaged("offsets that a relay does not have", partition=partition, begin=begin, end=end)


def _batches(
    relay: RelayReader, position: TargetPosition, order: RelaySequencer[Message, Messages | Segment], most: int
) -> Iterator[pa.RecordBatch]:
    """Yield the messages after a position, in batches of about `most` bytes."""
    last = None if position.intent is None else position.intent.last
    waiting: list[RelayFragment] = []
    size = 0
    for found in relay.fragments(Seqno(position.seqno + 1), last):
        if isinstance(found, TrappedEvents) or size >= most:
            if waiting:
                yield _batch(waiting)
            waiting, size = [], 0
        if isinstance(found, TrappedEvents):
            order.pass_over(found.last)
            continue
        waiting.append(found.fragment)
        size += len(found.fragment.value)
    if waiting:
        yield _batch(waiting)


def _batch(fragments: list[RelayFragment]) -> pa.RecordBatch:
    return message_batch(
        [one.partition for one in fragments], [one.offset for one in fragments], [one.value for one in fragments]
    )


def _verify_intent(relay: RelayReader, position: TargetPosition, intent: Intent) -> None:
    """Refuse a relay that lacks an event of an intent, before anything of it is staged."""
    last, epoch = position.seqno, position.epoch
    for found in relay.events(Seqno(position.seqno + 1), intent.last):
        if isinstance(found, WholeEvent):
            last, epoch = found.last.seqno, found.last.epoch
        else:
            last = found.last
    if (last, epoch) != (intent.last, intent.epoch):
        has = "none of them" if last == position.seqno else f"them up to event {last} of epoch {epoch}"
        raise LogDamaged(
            f"the target needs events {intent.span} up to epoch {intent.epoch}; the relay has {has}",
            hint="nothing was changed; start thl apply where a broker of kafka.bootstrap answers",
            folder=str(relay.folder),
        )
