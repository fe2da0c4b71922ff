"""Rules of the order of messages within one partition; `partition_state` applies them.

Every fragment names the finished event before its own, the fragments of an event count from 0, an epoch begins with a
marker of the log. A rule returns what is wrong, None when nothing is; the reader knows the offset and raises.
"""

from __future__ import annotations

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import TRAPPED, TRAPPED_EVENTS, Range, overlaps, parse_ranges
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, Epoch, LogId, Seqno


def unlinked(header: FragmentHeader, tail: Seqno | None, taken: Seqno) -> str | None:
    """Return the reason why an event or a marker cannot begin here.

    Args:
        header: of its first message.
        tail: the last finished event that was read of the partition, None while nothing was.
        taken: events up to this one may precede the offset where reading began.
    """
    prev = header.prev_seqno
    if tail is None:
        if prev > taken:
            return f"Events are missing: those up to {taken} were taken"
    elif prev != tail:
        return f"Events are missing: the last one read here is {tail}"
    if not prev < header.seqno > header.last_barrier:
        return "The event names a later one as an earlier one"
    return None


def interrupted(header: FragmentHeader, seqno: Seqno, fragno: int, rows: int, tail: Seqno | None) -> str | None:
    """Return the reason why a fragment cannot continue an unfinished event.

    Args:
        header: the fragment's.
        seqno: the unfinished event.
        fragno: its next fragment.
        rows: how many it had so far.
        tail: the finished event before it.
    """
    if header.seqno != seqno:
        return f"Event {seqno} is not finished before this one"
    if header.fragno != fragno:
        return f"Fragment {fragno} is missing before this one"
    if header.rows < rows:
        return f"The event has fewer rows than the {rows} it already had"
    if header.prev_seqno != tail:
        return f"The event first said that it follows {tail}"
    return None


def unannounced(header: FragmentHeader, epoch: Epoch) -> str | None:
    """Return the reason why a fragment's epoch cannot follow `epoch` without a marker; NO_EPOCH: nothing was read."""
    if header.epoch < epoch:
        return f"An older producer wrote after epoch {epoch} had begun here"
    if header.epoch > epoch != NO_EPOCH:
        return f"The epoch's marker is missing after epoch {epoch}"
    return None


def unexpected(header: FragmentHeader, epoch: Epoch) -> str | None:
    """Return the reason why a marker's epoch cannot follow `epoch`; NO_EPOCH: nothing was read."""
    if header.epoch != epoch + 1 and epoch != NO_EPOCH:
        return f"An epoch is missing or came late: the last one here is {epoch}"
    return None


def log_of(header: FragmentHeader, expected: LogId, at: str) -> LogId:
    """Return the log id of a marker.

    Args:
        header: the marker's.
        expected: the log that is read, "" while it is not known.
        at: topic-partition@offset of the marker.

    Raises:
        HistoriesDiffer: it is of another one, or of none.
    """
    log_id = LogId(header.metadata.get("log_id", ""))
    if not log_id or log_id != (expected or log_id):
        raise HistoriesDiffer(
            "The log was deleted or re-created: the topic has another log than the one that was read",
            at=at,
            log_id=log_id,
            expected=expected,
        )
    return log_id


def trapped_by(header: FragmentHeader, taken: Seqno, at: str, *, message: str, hint: str) -> tuple[Range, ...]:
    """Return the events that an epoch goes on without, by its marker.

    Args:
        header: the marker's.
        taken: the last event that was accepted.
        at: topic-partition@offset of the marker.
        message, hint: of the error.

    Raises:
        HistoriesDiffer: one of them was accepted before.
    """
    trapped = parse_ranges(header.metadata[TRAPPED_EVENTS], at)
    if overlaps(trapped, Seqno(0), taken):
        raise HistoriesDiffer(
            message,
            hint=hint,
            at=at,
            epoch=header.epoch,
            taken=taken,
            trapped=header.metadata.get(TRAPPED),
            trapped_events=header.metadata[TRAPPED_EVENTS],
        )
    return trapped


def damaged(message: str, at: str, header: FragmentHeader) -> LogDamaged:
    """Return the error of a damaged message, with its header's fields."""
    return LogDamaged(
        message,
        at=at,
        seqno=header.seqno,
        fragno=header.fragno,
        epoch=header.epoch,
        prev_seqno=header.prev_seqno,
        last_barrier=header.last_barrier,
    )
