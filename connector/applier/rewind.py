"""`thl apply --from-seqno`: moves a target's position back, so that a part of the log is applied again.

The data are not undone: events are applied over them, with inserts, updates and deletes that accept any state of a row
(`connector.log.compact.net_changes.once_more`). After the last replayed event the data are as they were; until then the
target has `consistent=false`. Before the position is moved, `ReplayCheck` reads all events up to the target's position:
if one cannot be applied again, the rewind is refused and nothing changes.

An empty target can also begin at an event, for example at a later initial load. It lacks all earlier changes, so it is
inconsistent until an initial load has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from connector.applier.replay_check import ReplayCheck, SecondPass
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
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)


def rewind(
    config: Config, target: TargetDatabase, position: TargetPosition, first: Seqno, left_out: Collection[int] = ()
) -> TargetPosition:
    """Move a claimed target's position back to before an event.

    Args:
        config: names the log.
        target: the claimed target.
        position: the target's position, which the claim returned.
        first: the next event to apply.
        left_out: events that were skipped or done by hand.

    Returns:
        The new position, committed.

    Raises:
        ConfigError: the event is after the target's next one, or trapped; the target has tables but no position, or a
            table of it is being loaded.
        Unsupported: a later event cannot be applied again; nothing was changed.
        HistoriesDiffer, LogDamaged, BrokerUnavailable: see `connector.kafka.handshake.handshake`.
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
    if not (position.consistent or position.rewound_from != NO_SEQNO):
        raise ConfigError("the initial load is not complete: there is no event to apply again", seqno=position.seqno)
    check_no_load(target, position)
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
        rewound_from=max(position.rewound_from, position.seqno),
    )
    check_replay(config, target, taken_back, agreed.history, left_out=left_out)
    target.commit(taken_back, [])
    LOG.warning(
        "the target's position is moved back",
        extra={
            "service": position.service,
            "from_seqno": position.seqno,
            "to_seqno": before,
            "rewound_from": taken_back.rewound_from,
        },
    )
    return taken_back


def seqno_of(config: Config, end: SourcePosition) -> Seqno:
    """Find the event that ends at a position of the source's binary log; reads the log from its beginning.

    Raises:
        ConfigError: no event in the log ends there.
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
    check_tails(config)  # a partition may have lost the event
    raise ConfigError(
        f"no event of the log ends at {end}", hint="thl list --headers shows the ends of events", from_event=end
    )


def _end(event_id: str) -> SourcePosition:
    found = EventId.parse(event_id)
    return SourcePosition(found.file, found.end)


def _begin_at(config: Config, target: TargetDatabase, position: TargetPosition, first: Seqno) -> TargetPosition:
    """Return the position of an empty target that begins at an event."""
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


def check_no_load(target: TargetDatabase, position: TargetPosition) -> None:
    """Check that no table of the target is being loaded: its rows are not those of the position.

    Raises:
        ConfigError: some tables are.
    """
    if loading := target.target_schema.loading:
        since = ", ".join(f"{name} since event {entry.since}" for name, entry in sorted(loading.items()))
        raise ConfigError(
            f"tables are being loaded, so the target cannot go back: {since}",
            hint="nothing was changed; start again after the end of their loads (thl status shows it)",
            seqno=position.seqno,
        )


def check_beginning(history: History, first: Seqno) -> None:
    """Check that a target's position can be directly before an event.

    Raises:
        ConfigError: the event before it is trapped: the handshake would refuse such a target.
    """
    if (beginning := history.beginning(first)) != first:
        raise ConfigError(
            f"no target can begin at event {first}: the log continues without event {beginning}, which was trapped",
            hint=f"the next event at which it can begin is {beginning}; nothing was changed",
        )


def offsets_of(config: Config, partitions: int, first: Seqno) -> Mapping[int, int]:
    """Return the offsets from which to read an event and all later ones.

    Raises:
        LogDamaged: the log no longer has the event.
    """
    with LogReader(config, high_watermark=True, point_lookup=True) as log:
        found = {number: log.first_of(number, first) for number in range(partitions)}
    seqnos = [seqno for _, seqno in found.values() if seqno is not None]
    if first not in seqnos:
        raise LogDamaged(
            f"the log no longer has event {first}",
            hint="nothing was changed; thl list --first shows the oldest event of the log",
            next=min(seqnos, default=None),
        )
    return {number: offset for number, (offset, _) in found.items()}


def check_replay(
    config: Config,
    target: TargetDatabase,
    position: TargetPosition,
    history: History,
    *,
    command: SecondPass = SecondPass.REWIND,
    left_out: Collection[int] = (),
) -> None:
    """Check that all events from a position up to its `rewound_from` can be applied again, or undone.

    Args:
        config: names the log.
        target: the claimed target.
        position: the position; its `rewound_from` is the last event.
        history: the log's history.
        command: the command that needs them.
        left_out: events that were skipped or done by hand.

    Raises:
        Unsupported: an event or a table cannot be applied again, or undone.
    """
    sequencer = EventSequencer[Message, Messages](
        topic=config.topic, partitions=len(position.offsets), position=position, history=history
    )
    schema = target.target_schema
    check = ReplayCheck(
        config.topic, sequencer, position, position.rewound_from, schema, command=command, left_out=left_out
    )
    with ArrowReader(config.kafka, config.topic, position.offsets) as log:
        while not check.done:
            batch = log.next()
            if batch is None:
                raise LogDamaged("the log ends before the target's last event", seqno=position.rewound_from)
            check.accept(batch)
    check.check()
