"""The positions of the producer and of a target.

`SourcePosition` is a place in the source's log: *seen*. `PositionRecord` is what is safe to start again from.
They are two types so that neither can be taken for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.finished import Digest, Finished
from connector.log.transaction.pending import NOTHING, Kept
from connector.log.transaction.source_position import SourcePosition

__all__ = ["Digest", "Finished", "Open", "PositionRecord", "SourcePosition", "TargetPosition"]


@dataclass(frozen=True, slots=True)
class Open:
    """An event of which fragments are published and the last is not."""

    seqno: Seqno
    fragno: int
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRecord:
    """The producer's resumable position: the one record of `thl.<service>.position` that counts, the newest.

    Args:
        finished: the last finished event; None in a log without any.
        resume: where to read on: after `finished`, and after whatever was passed over since.
        gtid_set: every GTID the log has or has passed over, MySQL's or MariaDB's text form; None where the source has
            none.
        open: set while an event is unfinished in the log. Nothing else in the record moves while it is set.
        tails: partition → seqno of its last finished event, NO_SEQNO where it has none.
        last_barrier: the last finished barrier.
        snapshot: an initial load has begun and is not finished: going online starts it over.
        server_uuid: the server whose files `resume` speaks of; "" when unknown.
        prepared: the XA transactions that are pending at `resume`.
        created: when the file of `resume` was begun, as the file says, seconds since 1970 UTC; 0 when unknown.
    """

    finished: Finished | None
    resume: SourcePosition
    gtid_set: str | None
    open: Open | None
    tails: Mapping[int, Seqno]
    last_barrier: Seqno = NO_SEQNO
    snapshot: bool = False
    server_uuid: str = ""
    prepared: Kept = NOTHING
    created: int = 0

    @property
    def last_finished(self) -> Seqno:
        """The last finished seqno, NO_SEQNO if none."""
        return self.finished.seqno if self.finished else NO_SEQNO


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPosition:
    """The position of a target, written in the same target transaction as its data.

    Args:
        service: whose log.
        log_id, seqno, epoch: the last applied event; "" / NO_SEQNO / NO_EPOCH before the first.
        offsets: partition → the Kafka offset to read on from. Resumable.
        gtid_set: what was applied, MySQL's text form; None where the source has none.
        consistent: whether the target shows the source's state at `seqno` (false during an initial load).
        commit_time: the last applied event's, µs since 1970 UTC.
        head: of a target that was taken back and applies again, the last event that it had; NO_SEQNO otherwise. Up to
            there it may hold what comes later in the log already, and `gtid_set` is that of the head.
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
    head: Seqno = NO_SEQNO
