"""Checks the partitions' ends against the position, and that the log's topics still belong together.

The newest record of a partition is enough, of whatever kind it is: the last fragment of an event is the
partition's last event; a marker, or a fragment of an unfinished event, names it. And as every epoch has a marker on
every partition, the newest record's epoch is the log's newest epoch: an older one means that the partition lost its
tail, even if what it lost was no event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connector.errors import LogDamaged
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.format.first_fields import FirstFields
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, Seqno
from connector.log.rules import NEW_LOG
from connector.log.transaction.pending import NOTHING, PendingChecksum
from connector.log.transaction.position import PositionRecord

_RESTORE: Final = f"do not start over it: restore the topics, or {NEW_LOG}"

REPARTITIONED: Final = (
    "if partitions were added (kafka-topics --alter): that sends shards elsewhere, and Kafka cannot take it back; "
    "restore the topic, or begin another log with an initial load and kafka.partitions as wanted, under another "
    "service, and apply it to an empty target"
)


@dataclass(frozen=True, slots=True)
class TailFound:
    """The last message of a partition.

    Args:
        seqno: the partition's last finished event, NO_SEQNO if it never had one.
        epoch: the newest record's epoch; NO_EPOCH when no record can be read.
        start, end: the log start offset and the end offset, from Kafka.
    """

    seqno: Seqno = NO_SEQNO
    epoch: Epoch = NO_EPOCH
    start: int = 0
    end: int = 0

    @classmethod
    def of(cls, newest: FirstFields | FragmentHeader | None, *, start: int, end: int) -> TailFound:
        """The tail of a partition by its newest committed record; None: the partition has none."""
        if newest is None:
            return cls(start=start, end=end)
        return cls(newest.seqno if newest.finishes else newest.prev_seqno, newest.epoch, start, end)

    @property
    def readable(self) -> bool:
        """True where there is any record."""
        return self.epoch != NO_EPOCH


def check_log(control: ControlState, position: PositionRecord | None, tails_found: Mapping[int, TailFound]) -> None:
    """Check that control, position and event topic belong to one log, and that none lost its end.

    Raises:
        LogDamaged: they do not; the message names the topic and the contradiction.
    """
    if sorted(tails_found) != list(range(len(tails_found))) or not tails_found:
        raise LogDamaged("The event topic's partitions are not numbered from 0", partitions=sorted(tails_found))
    if control.log is None or position is None:
        _check_empty(control, position, tails_found)
        return
    log_id = control.log.log_id
    if control.partitions is None or control.partitions.count != len(tails_found):
        raise LogDamaged(
            "The event topic has another number of partitions than the log was made with",
            hint=REPARTITIONED,
            log_id=log_id,
            expected=control.partitions.count if control.partitions else "unknown",
            found=len(tails_found),
        )
    history = History.of(control, position.last_finished)
    finished = position.finished
    if finished is not None and history.covering(finished.seqno).epoch != finished.epoch:
        raise LogDamaged(
            "The control topic does not know the epoch of the last event: it lost its end",
            hint=_RESTORE,
            log_id=log_id,
            seqno=finished.seqno,
            epoch=finished.epoch,
            newest_epoch=control.epochs[-1].epoch,
        )
    for partition, found in sorted(tails_found.items()):
        _check_tail(partition, found, position.tails.get(partition, NO_SEQNO), control.epochs[-1].epoch)


def lost_tails(topic: str, position: PositionRecord | None, found: Mapping[int, TailFound]) -> LogDamaged | None:
    """The error of partitions that end before events which the producer's position names; None where all are there.

    For readers: a producer may be at work and write more meanwhile, so a partition may end after what the position
    names, and an epoch may have begun since.

    Args:
        topic: the event topic, for the error.
        position: the newest record, read before the tails; None where there is none.
        found: the last message of each partition that is read.
    """
    if position is None:
        events = sorted(p for p, tail in found.items() if tail.readable)
        if not events:
            return None
        return LogDamaged("The position topic is empty, but there are events", hint=_RESTORE, topic=topic)
    wrote = position.finished.epoch if position.finished else NO_EPOCH
    lost = {}
    for partition, tail in sorted(found.items()):
        expected = position.tails.get(partition, NO_SEQNO)
        if not tail.readable and tail.start > 0:  # retention deleted all there was
            continue
        if tail.seqno < expected or (tail.epoch < wrote and expected != NO_SEQNO):
            lost[partition] = tail
    if not lost:
        return None
    partition, tail = next(iter(lost.items()))
    return LogDamaged(
        "A partition lost its end: the producer's position names an event that is not there",
        hint="the broker lost what it had acknowledged; restore the partition from a replica that has it, or begin a "
        "new service with a snapshot",
        at=f"{topic}-{partition}@{tail.end}",
        partition_seqno=tail.seqno,
        position_seqno=position.tails.get(partition, NO_SEQNO),
        partitions=", ".join(map(str, lost)),
    )


def check_prepared(position: PositionRecord | None, found: PendingChecksum) -> None:
    """Check that the topic of prepared transactions holds exactly those that the position says are pending.

    Raises:
        LogDamaged: it is not.
    """
    expected = position.prepared if position is not None else NOTHING
    if found != expected:
        raise LogDamaged(
            "The topic of prepared transactions lost its end: it differs from what the position says is pending",
            hint=_RESTORE,
            expected=expected.count,
            found=found.count,
        )


def _check_empty(control: ControlState, position: PositionRecord | None, tails_found: Mapping[int, TailFound]) -> None:
    """Check that all three topics are empty, as those of a new log are; otherwise one of them was re-created."""
    if control.log is not None:
        raise LogDamaged("The position topic is empty, but the log exists", hint=_RESTORE, log_id=control.log.log_id)
    if position is not None or control.epochs or control.partitions is not None:
        raise LogDamaged("The control topic has no log, but there is a position", hint=_RESTORE)
    for partition, found in sorted(tails_found.items()):
        if found.readable:
            raise LogDamaged(
                "The control and position topics are empty, but there are events",
                hint=_RESTORE,
                partition=partition,
                seqno=found.seqno,
                epoch=found.epoch,
                start=found.start,
                end=found.end,
            )


def _check_tail(partition: int, found: TailFound, tail: Seqno, epoch: Epoch) -> None:
    if not found.readable:
        if found.start > 0:  # retention deleted all; the position has the last seqno
            return
        raise LogDamaged(
            "The partition is empty, but the log wrote to it: it lost its records or was re-created",
            hint=_RESTORE,
            partition=partition,
            seqno=tail,
            epoch=epoch,
            end=found.end,
        )
    if found.epoch != epoch:
        lost = "partition" if found.epoch < epoch else "control topic"
        raise LogDamaged(
            f"The {lost} lost its end: the newest epochs of the two differ",
            hint=_RESTORE,
            partition=partition,
            partition_epoch=found.epoch,
            control_epoch=epoch,
        )
    if found.seqno != tail:
        lost = "partition" if found.seqno < tail else "position topic"
        raise LogDamaged(
            f"The {lost} lost its end: the last events of the two differ",
            hint=_RESTORE,
            partition=partition,
            partition_seqno=found.seqno,
            position_seqno=tail,
        )
