"""Rules of the order of messages within one partition; `partition_state` applies them.

Every fragment names the finished event before its own, the fragments of an event count from 0, an epoch begins with a
marker of the log. A check returns the broken rule, or None; the reader knows the offset and raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import TRAPPED, TRAPPED_EVENTS, Range, overlaps, parse_ranges
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, Epoch, LogId, Seqno
from connector.log.rules import Rule, broken


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a message breaks.

    Args:
        rule: the rule.
        where: fields of the error beside the message's own: what was read before.
    """

    rule: Rule
    where: Mapping[str, object]


def unlinked(header: FragmentHeader, tail: Seqno | None, floor: Seqno) -> Breach | None:
    """Return the rule that an event or a marker breaks by beginning here.

    Args:
        header: the header of its first message.
        tail: the last finished event that was read of the partition, None while nothing was.
        floor: events up to this one may precede the offset where reading began.
    """
    prev = header.prev_seqno
    if tail is None:
        if prev > floor:
            return Breach(Rule.EVENT_MISSING, {"applied": floor})
    elif prev != tail:
        return Breach(Rule.EVENT_MISSING, {"last_read": tail})
    if not prev < header.seqno > header.last_barrier:
        return Breach(Rule.LATER_EVENT_NAMED, {})
    return None


def interrupted(header: FragmentHeader, seqno: Seqno, fragno: int, rows: int, tail: Seqno | None) -> Breach | None:
    """Return the rule that a fragment breaks by continuing an unfinished event.

    Args:
        header: the fragment's header.
        seqno: the unfinished event.
        fragno: the number of its next fragment.
        rows: its rows so far.
        tail: the finished event before it.
    """
    if header.seqno != seqno:
        return Breach(Rule.EVENT_UNFINISHED, {"unfinished": seqno})
    if header.fragno != fragno:
        return Breach(Rule.FRAGMENT_MISSING, {"unfinished": seqno, "next_fragno": fragno})
    if header.rows < rows:
        return Breach(Rule.ROWS_DECREASED, {"rows": header.rows, "rows_before": rows})
    if header.prev_seqno != tail:
        return Breach(Rule.PREVIOUS_CHANGED, {"last_read": tail})
    return None


def unannounced(header: FragmentHeader, epoch: Epoch) -> Breach | None:
    """Return the rule that a fragment breaks whose epoch follows another one without a marker.

    Args:
        header: the fragment's header.
        epoch: the epoch before; NO_EPOCH: nothing was read.
    """
    if header.epoch < epoch:
        return Breach(Rule.OLDER_PRODUCER, {"epoch_read": epoch})
    if header.epoch > epoch != NO_EPOCH:
        return Breach(Rule.MARKER_MISSING, {"epoch_read": epoch})
    return None


def unexpected(header: FragmentHeader, epoch: Epoch) -> Breach | None:
    """Return the rule that a marker breaks whose epoch follows `epoch`; NO_EPOCH: nothing was read."""
    if header.epoch != epoch + 1 and epoch != NO_EPOCH:
        return Breach(Rule.EPOCH_MISSING, {"epoch_read": epoch})
    return None


def log_of(header: FragmentHeader, expected: LogId, at: str) -> LogId:
    """Return the log id of a marker.

    Args:
        header: the marker's header.
        expected: the id of the log that is read, "" while it is not known.
        at: topic-partition@offset of the marker.

    Raises:
        HistoriesDiffer: the marker is of another log, or names none.
    """
    log_id = LogId(header.metadata.get("log_id", ""))
    if not log_id or log_id != (expected or log_id):
        raise broken(HistoriesDiffer, Rule.OTHER_LOG, at=at, log_id=log_id, expected=expected)
    return log_id


def trapped_by(header: FragmentHeader, applied: Seqno, at: str, *, hint: str) -> tuple[Range, ...]:
    """Return the events that an epoch continues without, as its marker names them.

    Args:
        header: the marker's header.
        applied: the last event that may have been applied.
        at: topic-partition@offset of the marker.
        hint: the error's remedy.

    Raises:
        HistoriesDiffer: one of them may have been applied.
    """
    trapped = parse_ranges(header.metadata[TRAPPED_EVENTS], at)
    if overlaps(trapped, Seqno(0), applied):
        raise broken(
            HistoriesDiffer,
            Rule.TRAPPED_APPLIED,
            hint=hint,
            at=at,
            epoch=header.epoch,
            applied=applied,
            trapped=header.metadata.get(TRAPPED),
            trapped_events=header.metadata[TRAPPED_EVENTS],
        )
    return trapped


def misplaced(rule: Rule, at: str, header: FragmentHeader, where: Mapping[str, Any]) -> LogDamaged:
    """Return the error of a message that cannot be where it is, with its header's fields."""
    return broken(
        LogDamaged,
        rule,
        at=at,
        seqno=header.seqno,
        fragno=header.fragno,
        epoch=header.epoch,
        prev_seqno=header.prev_seqno,
        last_barrier=header.last_barrier,
        **where,
    )
