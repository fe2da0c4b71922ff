"""`thl undo`: takes a target's data back to an earlier event, with the before images in the log.

It goes back in steps from the newest event. The events of a step are read, inverted (`invert`), compacted, and written
like any others, with the position before them, in one transaction of the target. So after each step the target shows an
earlier state of the source; after a crash an applier continues from there.

Row counts are checked as always: a target that differs from the log is not changed. Undo is refused before any change
if the range has a DDL that changed the target, an initial load, partial row images, or a skipped event. Memory holds
the events of a step, about `STEP_BYTES`, or one larger event.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Final

from connector.applier.finish_intent import finish_intent
from connector.applier.invert import invert
from connector.applier.replay_check import SecondPass
from connector.applier.rewind import check_no_load, check_replay, offsets_of
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConfigError, LogDamaged, Unsupported
from connector.kafka.arrow_reader import read_in_order
from connector.kafka.handshake import Agreement, handshake
from connector.kafka.message_batch import message_batch
from connector.log.compact.compact import Compactor
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.scan import Messages, Scanner
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import NO_SEQNO, Outcome, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release
from connector.log.transaction.position import TargetPosition
from connector.targets.signal_table import SignalTable
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)

STEP_BYTES: Final = 16 << 20  # bytes of the messages of a step
STAGE_BYTES: Final = 16 << 20

Event = tuple[FragmentHeader, list[bytes]]
Step = tuple[FragmentHeader, FragmentHeader]  # the event to go back to, and the last to undo


def undo(config: Config, target: TargetDatabase, signals: SignalTable, to: Seqno, clock: Clock) -> TargetPosition:
    """Take a target back to the state of the source after an event.

    A commit of several writers that an applier has made in part is finished first.

    Args:
        config: names the log.
        target: the target, not claimed yet: the claim fences a running applier. It has one writer: commits that go back
            are not divided.
        signals: the signal table of the same target.
        to: the event, which the log must still have.
        clock: the clock for latencies.

    Returns:
        The new position.

    Raises:
        ConfigError: the target is not beyond the event, or not consistent, or loads a table; or the event is trapped.
        Unsupported: a later event cannot be undone; nothing was changed.
        TargetDiffers: the target differs from the log; the step was not done.
        HistoriesDiffer, LogDamaged, BrokerUnavailable: see `connector.kafka.handshake.handshake`.
    """
    position = finish_intent(config, target, target.claim(config.service), clock)
    _check_target(position, to)
    check_no_load(target, position)
    if out := sorted(one for one in signals.skipped(config.service) if to < one <= position.seqno):
        raise Unsupported(
            f"event {out[0]} was skipped or done by hand: it cannot be undone",
            hint=SecondPass.UNDO.hint(out[-1]),
            left_out=out[0],
        )
    if past := sorted(
        (entry.since, name) for name, entry in target.target_schema.excluded.items() if to < entry.since - 1
    ):
        since, name = past[0]
        latest = past[-1][0]
        raise Unsupported(
            f"table {name} is excluded since event {since}: earlier events cannot be undone",
            hint=SecondPass.UNDO.hint(latest - 1),
            excluded=name,
            since_seqno=since,
        )
    agreed = handshake(config, position)
    _check_trapped(agreed.history, to)
    start = _before(config, agreed, position, Seqno(to + 1))
    check_replay(config, target, replace(start, rewound_from=position.seqno), agreed.history, command=SecondPass.UNDO)
    for step in reversed(list(pairwise(_steps(config, agreed, position, to)))):
        position = _undo_step(config, agreed, target, position, step)
    return position


def _check_target(position: TargetPosition, to: Seqno) -> None:
    """Check that a target shows a state of the source after an event."""
    if position.seqno == NO_SEQNO:
        raise ConfigError("nothing was applied to this target yet", hint="thl apply", service=position.service)
    if position.rewound_from != NO_SEQNO:
        raise ConfigError(
            f"the target is applying events again, up to {position.rewound_from}: its rows are of a later event than "
            "its position",
            hint=f"thl apply --to-seqno {position.rewound_from} first; nothing was changed",
            seqno=position.seqno,
        )
    if not position.consistent:
        raise ConfigError(
            "the initial load is not complete: there is no event to undo",
            hint="thl apply first; nothing was changed",
            seqno=position.seqno,
        )
    if to >= position.seqno:
        raise ConfigError(
            f"the target is at event {position.seqno}: there is no event after {to} to undo",
            hint=f"--to-seqno less than {position.seqno}; thl apply --to-seqno goes forward",
            seqno=position.seqno,
        )


def _check_trapped(history: History, to: Seqno) -> None:
    """Check that the handshake would accept a target at an event."""
    first = Seqno(to + 1)
    if (trapped := history.beginning(first)) != first:
        raise ConfigError(
            f"no target can be at event {to}: the log continues without event {trapped}, which was trapped",
            hint="nothing was changed" + (f"; --to-seqno {trapped - 1} goes back to before it" if trapped > 1 else ""),
            trapped=trapped,
        )


def _steps(config: Config, agreed: Agreement, position: TargetPosition, to: Seqno) -> list[FragmentHeader]:
    """Return the event to go back to, the events between steps, and the last event."""
    found: list[FragmentHeader] = []
    size = 0
    with closing(_events(config, agreed, position, to, position.seqno)) as events:
        for header, fragments in events:
            size += sum(map(len, fragments))
            if not found or header.seqno == position.seqno or size >= STEP_BYTES:
                found.append(header)
                size = 0
    return found


def _undo_step(
    config: Config,
    agreed: Agreement,
    target: TargetDatabase,
    position: TargetPosition,
    step: Step,
) -> TargetPosition:
    """Undo the events of a step in one transaction of the target."""
    first, last = step
    with closing(_events(config, agreed, position, Seqno(first.seqno + 1), last.seqno)) as found:
        events = list(found)
    # The metadata columns of restored rows are NULL: their earlier transactions are not searched for.
    compactor = Compactor(config.topic, metadata_columns(config.target.metadata_columns.items()), known=False)
    gtids = None if position.gtid_set is None else parse_gtids(position.gtid_set)
    for header, fragments in reversed(events):
        if gtids is not None and header.gtid is not None:
            gtids.remove(header.gtid)
        if header.outcome is not Outcome.VOID:
            compact_inverse(compactor, config.topic, fragments)
        if compactor.size >= STAGE_BYTES:
            target.stage(compactor.drain(), last=False)
    target.stage(compactor.drain(), last=True)
    before = replace(
        position,
        seqno=first.seqno,
        epoch=first.epoch,
        source_id=first.source_id,
        event_id=first.event_id or "",
        gtid_set=None if gtids is None else str(gtids),
        offsets=offsets_of(config, agreed.partitions, Seqno(first.seqno + 1)),
        commit_time=first.commit_time or 0,
    )
    target.commit(before, [])
    LOG.warning("events are undone", extra={"from_seqno": last.seqno, "to_seqno": first.seqno})
    return before


def compact_inverse(compactor: Compactor, topic: str, fragments: Sequence[bytes]) -> None:
    """Compact the inverse of an event."""
    for value in invert(fragments, topic):
        for messages in Scanner(topic).scan(message_batch([0], [0], [value])):
            for message in messages:
                compactor.add(message)


def _before(config: Config, agreed: Agreement, position: TargetPosition, first: Seqno) -> TargetPosition:
    """Return the position of a target directly before an event."""
    covering = agreed.history.covering(Seqno(first - 1))
    return TargetPosition(
        service=position.service,
        log_id=position.log_id,
        seqno=Seqno(first - 1),
        epoch=covering.epoch,
        offsets=offsets_of(config, agreed.partitions, first),
    )


def _events(
    config: Config, agreed: Agreement, position: TargetPosition, first: Seqno, last: Seqno
) -> Generator[Event, None, None]:
    """Yield whole events of the log with their fragments."""
    start = _before(config, agreed, position, first)
    sequencer = EventSequencer[bytes, Messages](
        topic=config.topic, partitions=agreed.partitions, position=start, history=agreed.history
    )
    held: list[bytes] = []
    with closing(read_in_order(config.kafka, config.topic, start.offsets, sequencer)) as releases:
        for release in releases:
            if not isinstance(release, Release):
                held = []
                continue
            held += release.bodies
            if release.complete:
                yield release.header, held
                held = []
                if release.seqno == last:
                    return
    raise LogDamaged("the log ends before the target's last event", seqno=last)
