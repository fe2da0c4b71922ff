"""Proves, before an applier or a consumer reads, that its position lies on the log's history."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    EventsDeleted,
    HistoriesDiffer,
    LogDamaged,
    LogMissing,
    PreflightError,
)
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import AGAIN
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import REFUSED, History, check_before, check_offsets
from connector.log.epochs.loads import loaded_after
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.log.writing.tail import REPARTITIONED, lost_tails

LOG: Final = logging.getLogger(__name__)

EARLIEST: Final = -2  # the number of librdkafka, and of Spark, for a partition's first offset
QUICK: Final = 5.0  # seconds for an answer that decides how to go on, or that only a warning needs


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of a handshake.

    Args:
        history: the log's.
        partitions: number of partitions of the event topic.
        offsets: partition → the offset to read on from; a partition without one is read from its beginning.
        gtid_set: the GTIDs applied at the target's position; None where the source has none.
    """

    history: History
    partitions: int
    offsets: Mapping[int, int]
    gtid_set: str | None

    @property
    def start_offsets(self) -> dict[int, int]:
        """The offset to read on from in every partition; EARLIEST for its beginning."""
        return {number: self.offsets.get(number, EARLIEST) for number in range(self.partitions)}


def handshake(
    config: Config,
    position: TargetPosition,
    chosen: Collection[int] | None = None,
    had: Mapping[int, Seqno] | None = None,
) -> Agreement:
    """Compare a target's position, as its claim returned it, with the log as it is now.

    Both topics are read to the high watermark: an event that the target has may be visible before its epoch is, or
    before the position that finished it. The control topic is read before the position topic, so that an epoch that
    begins in between is missing in the control topic, which does no harm, and not ahead of the position.

    What refuses the target is read twice, some time apart, but for what retention deleted: the second reading decides.

    Args:
        config: the service and its brokers.
        position: the target's.
        chosen: the partitions to read; None: all.
        had: of a reader of some shards: partition → its last event; None: it has every event up to its position.

    Raises:
        HistoriesDiffer: the target followed another log, a deleted one or another history of it, or lacks deleted
            events.
        LogDamaged: the log's topics contradict each other.
        BrokerUnavailable: the brokers do not answer, or the log does not exist yet (`LogMissing`).
        PreflightError: the brokers refuse access.
    """
    try:
        return _prove(config, position, chosen, had)
    except EventsDeleted:
        raise
    except (HistoriesDiffer, LogDamaged) as error:
        # Seen after kill -9 of a broker: for a moment it did not show a topic's last records, as if they were lost.
        LOG.info("the log seems to be damaged or another; it is read again", extra={"why": error.message})
        SystemClock().sleep(AGAIN)
        return _prove(config, position, chosen, had)


def _prove(
    config: Config, position: TargetPosition, chosen: Collection[int] | None, had: Mapping[int, Seqno] | None
) -> Agreement:
    with LogReader(config, high_watermark=True) as log:
        control = _control(config, log, position)
        record = log.position()
        history = History.of(control, record.last_finished if record else NO_SEQNO)
        partitions = _partitions(config, log, control)
        bounds = {number: log.bounds(number) for number in (range(partitions) if chosen is None else chosen)}
        offsets = {number: position.offsets[number] for number in bounds if number in position.offsets}
        before = {number: log.tail(number, before=offset) for number, offset in offsets.items()}
        tails = {number: log.tail(number) for number in bounds}
        left = {
            number: log.retained(number, span, history, record)
            for number, span in bounds.items()
            if span[0] and not (number in before and before[number].readable)  # nothing is left before the offset
        }
    incomplete = {number: one.incomplete for number, one in left.items()}
    from_first = all(seqno == NO_SEQNO for seqno in incomplete.values())
    starts = {number: low for number, (low, _) in bounds.items()}
    ends = {number: high for number, (_, high) in bounds.items()}
    history.prove_target(position, from_first=from_first)
    unfinished = [number for number, one in left.items() if one.unfinished]
    check_offsets(position, starts, ends, incomplete, unfinished, had=had)
    check_before(position, {number: found.seqno for number, found in before.items()})
    if (lost := lost_tails(config.topic, record, tails)) is not None:
        raise lost
    gtid_set = history.epochs[0].gtid_set if position.seqno == NO_SEQNO else position.gtid_set
    next_offsets = offsets | {number: one.offset for number, one in left.items()}
    return Agreement(history, partitions, next_offsets, gtid_set)


def _control(config: Config, log: LogReader, position: TargetPosition) -> ControlState:
    """The control records of the log that the target follows, or of a log that exists."""
    control = log.control() if log.partitions(config.control_topic) else None
    if control is None and position.seqno != NO_SEQNO:
        raise HistoriesDiffer(
            f"{REFUSED}the log that the target follows does not exist: the brokers have no such topics",
            hint="set kafka.bootstrap to the brokers that have it; if it is lost, load an empty target from a new log"
            + ("; thl apply --relay finishes the commit that the target is within" if position.intent else ""),
            service=config.service,
            topic=config.topic,
            log_id=position.log_id,
            seqno=position.seqno,
            epoch=position.epoch,
        )
    if control is None or (control.log is None and position.seqno == NO_SEQNO):
        raise log_missing(config)
    return control


def _partitions(config: Config, log: LogReader, control: ControlState) -> int:
    """The number of partitions of the event topic, which is the one that the log was created with."""
    found = log.partitions(config.topic)
    if control.partitions is None or found != control.partitions.count:
        raise LogDamaged(
            "the number of partitions of the event topic has changed since the log was created",
            hint=REPARTITIONED,
            topic=config.topic,
            expected=control.partitions.count if control.partitions else "unknown",
            found=found,
        )
    return found


def newest_event(config: Config) -> Seqno:
    """The log's last finished event; NO_SEQNO if none.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        PreflightError: the brokers refuse access.
    """
    with LogReader(config, high_watermark=True) as log:
        record = log.position()
    return record.last_finished if record else NO_SEQNO


def tables_loaded_after(config: Config, seqno: Seqno) -> frozenset[TableName]:
    """The tables, by their names in the log, of which a load for this target begins after an event, or is asked for.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        PreflightError: the brokers refuse access.
    """
    with LogReader(config, high_watermark=True) as log:
        control = log.control()
    return loaded_after(seqno, config.target.id, control.load_requests.values(), control.loads, control.trapped)


def lost(config: Config, position: TargetPosition) -> BrokerUnavailable | EventsDeleted | None:
    """Return the error if no broker answers, or retention has deleted what a target needs next; None if not.

    Whatever else a handshake refuses is not an answer to that.
    """
    if (error := _unreachable(config)) is not None:
        return error
    try:
        handshake(config, position)
    except EventsDeleted as deleted:
        return deleted
    except ConnectorError as other:
        LOG.debug("the handshake refuses the target", extra={"why": other.message})
    return None


def _unreachable(config: Config) -> BrokerUnavailable | None:
    """Return the error if no broker answers, within seconds; None if one does, whatever it answers."""
    try:
        with LogReader(config, patience=QUICK) as log:
            log.partitions(config.control_topic)
    except BrokerUnavailable as error:
        return error
    except PreflightError:
        return None
    return None


def log_missing(config: Config) -> LogMissing:
    """Return the error of those who wait until a producer has begun the log."""
    hint = f"thl produce begins it (service {config.service})"
    return LogMissing("the log does not exist yet", hint=hint, topic=config.topic)


def log_exists(config: Config) -> bool:
    """True if the log's topics exist.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        PreflightError: the brokers refuse access.
    """
    with LogReader(config) as log:
        return not _missing_topics(config, log)


def warn_of_missing_log(config: Config) -> None:
    """Log a warning if an applier has to wait: for the brokers, or for a log that no producer has begun.

    Raises:
        ConfigError, PreflightError: librdkafka refuses a property, or the brokers refuse access.
    """
    fields = {"service": config.service, "bootstrap": config.kafka.bootstrap}
    try:
        with LogReader(config, patience=QUICK) as log:
            missing = _missing_topics(config, log)
    except BrokerUnavailable as error:
        LOG.warning("waiting for the brokers of kafka.bootstrap", extra={**fields, "why": error.message})
        return
    if missing:
        LOG.warning(
            "waiting for a log that does not exist yet: thl produce begins it", extra={**fields, "topics": missing}
        )


def _missing_topics(config: Config, log: LogReader) -> list[str]:
    return [topic for topic in (config.control_topic, config.topic) if not log.partitions(topic)]
