"""The positions of the producer and of a target.

`SourcePosition` is a position in the source's log that was *seen*. `PositionRecord` is a position that is safe to
resume from. They are two types so that they cannot be confused. A
stream begins at a `StreamStart`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.finished import Digest, Finished
from connector.log.transaction.layout import TableName
from connector.log.transaction.pending import NOTHING, PendingChecksum
from connector.log.transaction.source_position import SourcePosition

__all__ = ["CAUSES", "Digest", "Finished", "Intent", "Open", "PositionRecord", "SourcePosition", "TargetPosition"]

CAUSES: Final = {
    "channels": "several writers commit",
    "load": "a load is not complete",
    "rewind": "events are to be applied again",
    "quarantine": "tables are excluded",
    "skipped": "events were skipped",
}
"""For which readers of a target may see what the source never showed, as `thl_inconsistent_because` names them."""


@dataclass(frozen=True, slots=True)
class Open:
    """An event that is published in part: its last fragment is missing.

    Args:
        seqno, fragno: the event, and its last published fragment.
        partition: the partition of its fragments.
    """

    seqno: Seqno
    fragno: int
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRecord:
    """The producer's resumable position. The newest record of `thl.<service>.position` is the one that counts.

    Args:
        finished: the last finished event; None in a log without events.
        resume: the position to resume from: after `finished`, and after what was not captured since.
        gtid_set: every GTID of the log and of what was not captured, in MySQL's or MariaDB's text form; None where the
            source has no GTIDs.
        open: set while an event is unfinished in the log. No other field changes while it is set.
        tails: partition → seqno of its last finished event, NO_SEQNO where it has none.
        last_barrier: the last finished barrier.
        snapshot: an initial load has begun and is not finished: going online starts it again.
        server_uuid: the server whose file `resume` names; "" when unknown.
        prepared: the XA transactions that are pending at `resume`.
        created: the creation time in the file of `resume`, seconds since 1970 UTC; 0 when unknown.
    """

    finished: Finished | None
    resume: SourcePosition
    gtid_set: str | None
    open: Open | None
    tails: Mapping[int, Seqno]
    last_barrier: Seqno = NO_SEQNO
    snapshot: bool = False
    server_uuid: str = ""
    prepared: PendingChecksum = NOTHING
    created: int = 0

    @property
    def last_finished(self) -> Seqno:
        """The last finished seqno, NO_SEQNO if none."""
        return self.finished.seqno if self.finished else NO_SEQNO


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A commit that several writers make, each in a transaction of its own, and that not all of them have made.

    Args:
        log_id: the log of the events; before its first commit a target has no other record of it.
        first, last: the events of the commit.
        epoch: of the last event.
        writers: the number of writers that the commit is divided among.
        hash_version: of the division.
        undivided: the tables of which one writer makes all changes.
        committed: the writers, from 0 on, that have made their part.
    """

    log_id: LogId
    first: Seqno
    last: Seqno
    epoch: Epoch
    writers: int
    hash_version: int
    undivided: frozenset[TableName]
    committed: frozenset[int] = frozenset()

    @property
    def span(self) -> str:
        """Its first and last event: `7..9`."""
        return f"{self.first}..{self.last}"

    def __str__(self) -> str:
        """The intent for people."""
        made = ", ".join(map(str, sorted(self.committed))) or "none"
        return f"events {self.span} by {self.writers} writers, committed: {made}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPosition:
    """The position of a target, written in the same target transaction as its data.

    Args:
        service: the log's service.
        log_id, seqno, epoch: the last applied event; "" / NO_SEQNO / NO_EPOCH before the first.
        offsets: partition → the Kafka offset to resume from.
        gtid_set: the GTIDs of what was applied; None where the source has none.
        consistent: the target shows the source's state at `seqno` (false during an initial load).
        commit_time: the commit time of the last applied event, µs since 1970 UTC.
        rewound_from: of a target that was rewound and applies again, its last event before; NO_SEQNO otherwise. Up to
            there it may already hold later events, and `gtid_set` is that of this event.
        intent: the commit after `seqno`, if some of several writers have made their part and others have not. It has to
            be finished before anything else.
    """

    service: str
    log_id: LogId = LogId("")
    seqno: Seqno = NO_SEQNO
    epoch: Epoch = NO_EPOCH
    source_id: str = ""
    event_id: str = ""
    gtid_set: str | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)
    consistent: bool = True
    commit_time: int = 0
    rewound_from: Seqno = NO_SEQNO
    intent: Intent | None = None


@dataclass(frozen=True, slots=True)
class SnapshotCompleted:
    """The end of an initial load; queued in the same work as the load's last event.

    Args:
        gtid_set: the transactions that the load contains; None if the source has no GTIDs.
    """

    gtid_set: str | None


@dataclass(frozen=True, slots=True)
class AfterGtids:
    """Start at the first transaction that is not in a GTID set (text form of MySQL or MariaDB)."""

    gtid_set: str


StreamStart = AfterGtids | SourcePosition
