"""`thl apply --from-seqno`: take a target's position back, so that it applies a part of the log again.

Nothing of its data is undone. It holds what the head left, and is written over event by event, with inserts, updates
and deletes that find whatever they find (`thl.net.once_more`); at the old head it is what it was. Until then it says
`consistent=false`. Before the position is taken back, all events up to the head are read and looked at (`rehearsal`):
what cannot be applied again refuses it, and nothing is changed.

A target that has nothing yet may begin at an event, too, for example at a later initial load. What came before is
missing there, so it is not consistent before an initial load has ended.
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
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.event_id import EventId
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.log.writing.history import History
from connector.targets.target import Target

LOG: Final = logging.getLogger(__name__)


def rewind(
    config: Config, target: Target, position: TargetPosition, first: Seqno, left_out: Collection[int] = ()
) -> TargetPosition:
    """Take a claimed target's position back to before an event.

    Args:
        config: the log.
        target: claimed.
        position: what the claim returned.
        first: the event that is to be applied next.
        left_out: events that were left out, or done by hand.

    Returns:
        The new position, committed.

    Raises:
        ConfigError: the event is behind what the target applies next, or among trapped ones; or the target has tables
            and no position.
        Unsupported: what was applied since cannot be applied again; nothing was changed.
        HistoriesDiffer, LogDamaged, BrokerUnavailable: as for the handshake.
    """
    if first == position.seqno + 1:
        return position
    if position.seqno == NO_SEQNO:
        return _begun(config, target, position, first)
    if first > position.seqno:
        raise ConfigError(
            f"the target needs event {position.seqno + 1} next: it cannot begin at {first}",
            hint="an event that is to be left out is named by --skip-seqno",
        )
    if not (position.consistent or position.head != NO_SEQNO):
        raise ConfigError("the initial load is not complete: there is nothing to go back over", seqno=position.seqno)
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
    rehearse(config, target, taken_back, agreed.history, left_out=left_out)
    target.commit(taken_back, [])
    LOG.warning(
        "the target's position is taken back",
        extra={"service": position.service, "from_seqno": position.seqno, "to_seqno": before, "head": taken_back.head},
    )
    return taken_back


def seqno_of(config: Config, place: SourcePosition) -> Seqno:
    """The event that ends at a place of the source's binary log; all that is kept of the log is looked through.

    Raises:
        ConfigError: none of those that are kept does.
    """
    with LogReader(config) as reader:
        starts = {number: reader.bounds(number)[0] for number in range(reader.partitions(config.topic))}
    scanner = Scanner(config.topic)
    with ArrowReader(config.kafka, config.topic, starts) as log:
        while (batch := log.next()) is not None:
            for messages in (found for part in batch.to_batches() for found in scanner.scan(part)):
                for message in messages:
                    if message.header.event_id and _end(message.header.event_id) == place:
                        return message.header.seqno
    check_tails(config)  # or it may be what a partition lost
    raise ConfigError(f"no event of the log ends at {place}", hint="thl list -headers shows where they end")


def _end(event_id: str) -> SourcePosition:
    found = EventId.parse(event_id)
    return SourcePosition(found.file, found.end)


def _begun(config: Config, target: Target, position: TargetPosition, first: Seqno) -> TargetPosition:
    """The position of a target that has nothing, and begins at an event."""
    if any(True for _ in target.catalog):
        raise ConfigError("the target has tables of the service and no position", service=position.service)
    with LogReader(config, high_watermark=True) as log:
        control, record = log.control(), log.position()
        partitions = log.partitions(config.topic)
    history = History.of(control, record.last_finished if record else NO_SEQNO)
    check_beginning(history, first)
    covering = history.covering(Seqno(first - 1))
    begun = TargetPosition(
        service=position.service,
        log_id=history.log_id,
        seqno=Seqno(first - 1),
        epoch=covering.epoch,
        source_id=covering.source_id,
        gtid_set=covering.gtid_set,
        offsets=offsets_of(config, partitions, first),
        consistent=False,
    )
    target.commit(begun, [])
    return begun


def check_beginning(history: History, first: Seqno) -> None:
    """Check that a target may stand right before an event.

    Raises:
        ConfigError: what stands there is trapped, or behind what is: no handshake would take such a target again.
    """
    if (beginning := history.beginning(first)) != first:
        raise ConfigError(
            f"no target can stand before event {first}: the log goes on without event {beginning}, which was trapped",
            hint=f"{beginning} is the next one before which it can; nothing was changed",
        )


def offsets_of(config: Config, partitions: int, first: Seqno) -> Mapping[int, int]:
    """Where to read an event, and everything behind it.

    Raises:
        LogDamaged: the log does not hold it any more.
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


def rehearse(
    config: Config,
    target: Target,
    position: TargetPosition,
    history: History,
    *,
    keyless: bool = False,
    left_out: Collection[int] = (),
) -> None:
    """Look at everything from a position up to its head.

    Args:
        left_out: events that were left out, or done by hand.
        keyless: whether tables without a key are as good as others.

    Raises:
        Unsupported: there is what cannot be gone over.
    """
    ledger = EventSequencer[Message, Messages](
        topic=config.topic, partitions=len(position.offsets), position=position, history=history
    )
    rehearsal = ReplayCheck(config.topic, ledger, position, position.head, target.catalog, left_out=left_out)
    with ArrowReader(config.kafka, config.topic, position.offsets) as log:
        while not rehearsal.done:
            batch = log.next()
            if batch is None:
                raise LogDamaged("the log ends before what the target has", seqno=position.head)
            rehearsal.take(batch)
    rehearsal.check(keyless=keyless)
