"""The rest of a partition whose first messages retention has deleted: where to read it, and what it lacks.

Retention deletes messages, so also a part of an event: of a finished one, of one that was given up and published again,
or of one that no producer has finished yet. Only the first is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from connector.log.epochs.history import History
from connector.log.format.first_fields import FirstFields
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.position import PositionRecord


@dataclass(frozen=True, slots=True)
class Retained:
    """The rest of a partition.

    Args:
        offset: the first one from which it can be read.
        incomplete: the last finished event of which messages may be deleted; NO_SEQNO: there is none.
        unfinished: messages of the event that is not finished are deleted, too: it is lost if a producer still finishes
            it, and given up by the next producer if that one has died.
    """

    offset: int
    incomplete: Seqno
    unfinished: bool = False


def retained(
    messages: Iterable[tuple[int, FirstFields]],
    partition: int,
    end: int,
    history: History,
    position: PositionRecord | None,
) -> Retained:
    """Find what is left of a partition.

    Args:
        messages: offset and first fields of its messages, from the first on.
        partition, end: its number, and its end.
        history: the log's; read before the messages.
        position: the producer's; as the history is. It counts where no message is left.
    """
    for offset, first in messages:
        if not first.fragno:
            return Retained(offset, first.prev_seqno)
        if history.gave_up(first.seqno, first.epoch):
            continue
        unfinished = first.seqno > history.last_finished
        return Retained(offset, first.prev_seqno if unfinished else first.seqno, unfinished)
    if position is None:  # nobody knows
        return Retained(end, Seqno(max(history.last_finished, 0)))
    unfinished = position.open is not None and position.open.partition == partition
    return Retained(end, position.tails.get(partition, NO_SEQNO), unfinished)
