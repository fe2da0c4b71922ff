"""`thl apply --from-seqno`: take a target's position back, so that it applies a part of the log again.

Its data are not undone: the events are applied over them, with inserts, updates and deletes that accept any state of a
row (`connector.log.compact.net_changes.once_more`), and after the last replayed event the data are what they were.
Until then the target says `consistent=false`. Before the position is taken back, `ReplayCheck` reads all events up to
the target's: an event that cannot be applied again refuses the rewind, and nothing is changed.

An empty target may begin at an event, too, for example at a later initial load. It lacks all earlier changes, so it is
not consistent before an initial load has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from connector.applier.replay_check import ReplayCheck
from connector.config.model import Config
from connector.errors import ConfigError, LogDamaged
from connector.kafka.arrow_reader import ArrowReader
from connector.kafka.handshake import handshake
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.compact.scan import Messages, Scanner
from connector.log.epochs.history import History
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.event_id import EventId
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.targets.target import Target

LOG: Final = logging.getLogger(__name__)


def rewind(
    config: Config, target: Target, position: TargetPosition, first: Seqno, left_out: Collection[int] = ()
) -> TargetPosition:
    """Take a claimed target's position back to before an event.

    Args:
        config: the log.
        target: claimed.
        position: the claim's.
        first: the next event to apply.
        left_out: events that were left out, or done by hand.

    Returns:
        The new position, committed.

    Raises:
        ConfigError: the event is after the target's next one, or trapped; or the target has tables and no position.
        Unsupported: a later event cannot be applied again; nothing was changed.
        HistoriesDiffer, LogDamaged, BrokerUnavailable: as for the handshake.
    """
    if first == position.seqno + 1:
        return position
    if position.seqno == NO_SEQNO:
        return _begin_at(config, target, position, first)
    if first > position.seqno:
        raise ConfigError(
            f"the target needs event {position.seqno + 1} next: it cannot begin at event {first}",
            hint="--skip-seqno leaves an event out",
            next_seqno=position.seqno + 1,
        )
    if not (position.consistent or position.head != NO_SEQNO):
        raise ConfigError("the initial load is not complete: there is no event to apply again", seqno=position.seqno)
    agreed = handshake(config, position)
    check_beginning(agreed.history, first)
    before = Seqno(first - 1)
    covering = agreed.history.covering(before)
    taken_back = replace(
        position,
        seqno=before,
        epoch=covering.epoch,
        source_id=covering.source_id,
        event_id="",
        offsets=offsets_of(config, agreed.partitions, first),
        consistent=False,
        commit_time=0,
        head=max(position.head, position.seqno),
    )
    check_replay(config, target, taken_back, agreed.history, left_out=left_out)
    target.commit(taken_back, [])
    LOG.warning(
        "the target's position is taken back",
        extra={"service": position.service, "from_seqno": position.seqno, "to_seqno": before, "head": taken_back.head},
    )
    return taken_back


def seqno_of(config: Config, end: SourcePosition) -> Seqno:
    """The event that ends at a position of the source's binary log; reads the log until it finds it.

    Raises:
        ConfigError: no event that the log still holds ends there.
    """
    with LogReader(config) as reader:
        starts = {number: reader.bounds(number)[0] for number in range(reader.partitions(config.topic))}
    scanner = Scanner(config.topic)
    with ArrowReader(config.kafka, config.topic, starts) as log:
        while (batch := log.next()) is not None:
            for messages in (found for part in batch.to_batches() for found in scanner.scan(part)):
                for message in messages:
                    if message.header.event_id and _end(message.header.event_id) == end:
                        return message.header.seqno
    check_tails(config)  # otherwise it may be one that a partition lost
    raise ConfigError(
        f"no event of the log ends at {end}", hint="thl list --headers shows the ends of events", from_event=end
    )


def _end(event_id: str) -> SourcePosition:
    found = EventId.parse(event_id)
    return SourcePosition(found.file, found.end)


def _begin_at(config: Config, target: Target, position: TargetPosition, first: Seqno) -> TargetPosition:
    """The position of an empty target that begins at an event."""
    if any(True for _ in target.target_schema):
        raise ConfigError("the target has tables of the service and no position", service=position.service)
    with LogReader(config, high_watermark=True) as log:
        control, record = log.control(), log.position()
        partitions = log.partitions(config.topic)
    history = History.of(control, record.last_finished if record else NO_SEQNO)
    check_beginning(history, first)
    covering = history.covering(Seqno(first - 1))
    beginning = TargetPosition(
        service=position.service,
        log_id=history.log_id,
        seqno=Seqno(first - 1),
        epoch=covering.epoch,
        source_id=covering.source_id,
        gtid_set=covering.gtid_set,
        offsets=offsets_of(config, partitions, first),
        consistent=False,
    )
    target.commit(beginning, [])
    return beginning


def check_beginning(history: History, first: Seqno) -> None:
    """Check that a target's position may be right before an event.

    Raises:
        ConfigError: the event before it is trapped: the handshake would refuse such a target.
    """
    if (beginning := history.beginning(first)) != first:
        raise ConfigError(
            f"no target can begin at event {first}: the log goes on without event {beginning}, which was trapped",
            hint=f"the next event at which it can begin is {beginning}; nothing was changed",
        )


def offsets_of(config: Config, partitions: int, first: Seqno) -> Mapping[int, int]:
    """The offsets from which on an event and all later ones are read.

    Raises:
        LogDamaged: the log does not hold the event any more.
    """
    with LogReader(config, high_watermark=True, point_lookup=True) as log:
        found = {number: log.first_of(number, first) for number in range(partitions)}
    seqnos = [seqno for _, seqno in found.values() if seqno is not None]
    if first not in seqnos:
        raise LogDamaged(
            f"the log has no event {first} any more",
            hint="nothing was changed; thl list -first 1 shows the first one that is kept",
            next=min(seqnos, default=None),
        )
    return {number: offset for number, (offset, _) in found.items()}


def check_replay(
    config: Config,
    target: Target,
    position: TargetPosition,
    history: History,
    *,
    keyless: bool = False,
    left_out: Collection[int] = (),
) -> None:
    """Check that all events from a position up to its head can be applied again.

    Args:
        config: the log.
        target: the target, claimed.
        position: its `head` is the last event.
        history: the log's.
        keyless: whether tables without a key are allowed.
        left_out: events that were left out, or done by hand.

    Raises:
        Unsupported: an event or a table cannot be applied again.
    """
    sequencer = EventSequencer[Message, Messages](
        topic=config.topic, partitions=len(position.offsets), position=position, history=history
    )
    check = ReplayCheck(config.topic, sequencer, position, position.head, target.target_schema, left_out=left_out)
    with ArrowReader(config.kafka, config.topic, position.offsets) as log:
        while not check.done:
            batch = log.next()
            if batch is None:
                raise LogDamaged("the log ends before the target's last event", seqno=position.head)
            check.accept(batch)
    check.check(keyless=keyless)
