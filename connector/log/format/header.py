"""The header of a fragment: a reader can route the fragment by its first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connector.log.ids import Epoch, Kind, Outcome, Seqno, ShardId, ends_event, is_barrier

HEARTBEAT: Final = "heartbeat"
"""The key of a heartbeat's name in the metadata of its event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentHeader:
    """The header fields of `schemas/fragment.avsc`, in its order.

    An EPOCH marker (kind `EPOCH`) is not an event: its `seqno` is the first one that the epoch will give,
    and its metadata holds `log_id`, `last_finished` and `gtid_set`; a fork's also `trapped` and `trapped_events`.
    """

    seqno: Seqno
    fragno: int  # int32, 0, 1 …
    last_frag: bool
    epoch: Epoch
    kind: Kind
    shard: ShardId
    prev_seqno: Seqno  # the previous finished event of this partition, NO_SEQNO if none
    last_barrier: Seqno  # the last barrier before this event, NO_SEQNO if none
    rows: int  # rows of the event so far, this fragment's included
    source_id: str  # who wrote it: the source's host:port, as configured
    server_id: int  # MySQL's server_id of the server that executed it first
    thread_id: int  # the connection's id there, 0 when unknown
    gtid: str | None  # "uuid:n", "uuid:tag:n", "domain-server-n"
    last_committed: int  # MySQL's logical clock, 0 when unknown
    sequence_number: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    event_id: str | None = None  # may be None until the last fragment
    commit_time: int | None = None  # µs since 1970 UTC; may be None until the last fragment
    outcome: Outcome | None = None  # set on the last fragment only

    @property
    def finishes(self) -> bool:
        """True for the last fragment of an event."""
        return ends_event(self.last_frag, self.kind)

    @property
    def barrier(self) -> bool:
        """True for a barrier between all shards."""
        return is_barrier(self.kind, self.shard)
