"""The records of `thl.<service>.control`: what a log is, its epochs, the source's tables. Compacted, JSON, by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.loads import LoadRequest, TableLoad
from connector.log.format.shard_rule import ShardRule
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True)
class LogRecord:
    """Key `log`: the log's identity, written once, before anything else."""

    log_id: LogId
    created: int  # µs since 1970 UTC
    format: int = 1


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Key `partitions`: the number of partitions and the rule of shards. Another count in Kafka is refused.

    Args:
        version: 1, and one more each time the rule changes.
        count: partitions.
        rule: the rule by which events get their shards.
        begins: the first events, each `#UNKNOWN`, of the versions 2 to this one; ascending.
    """

    version: int
    count: int
    rule: ShardRule = field(default_factory=ShardRule)
    begins: tuple[Seqno, ...] = ()

    @property
    def since(self) -> Seqno:
        """The first event of this version; NO_SEQNO: the log's first."""
        return self.begins[-1] if self.begins else NO_SEQNO

    def at(self, seqno: Seqno) -> int:
        """The version that an event belongs to."""
        return 1 + bisect_right(self.begins, seqno)

    def by(self, rule: ShardRule, first: Seqno) -> PartitionMap:
        """The next version: another rule from an event on."""
        return PartitionMap(self.version + 1, self.count, rule, (*self.begins, first))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """Key `epoch:<n>`: a producer went online, or went back over published fragments."""

    epoch: Epoch
    first_seqno: Seqno  # the first seqno that this epoch may give
    source_id: str
    server_uuid: str
    started: int  # µs since 1970 UTC
    reason: str  # "online" | "went back" | "forked"
    gtid_set: str | None = None
    forked: Forked | None = None  # what it goes on without
    filters: str | None = None  # fingerprint of the filters
    capture: Mapping[str, Any] | None = None  # the filters themselves

    def has_filters(self, filters: str | None, capture: Mapping[str, Any] | None) -> bool:
        """True if the epoch has these filters, as far as both are known.

        Args:
            filters: their fingerprint.
            capture: the filters themselves.
        """
        if self.capture is not None and capture is not None:
            return self.capture == capture
        return self.filters is None or filters is None or self.filters == filters


def trapped_of(epochs: Iterable[EpochRecord]) -> tuple[Range, ...]:
    """The trapped events: a later epoch goes on without them, and readers skip them."""
    return tuple(one for record in epochs if record.forked for one in record.forked.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRequest:
    """Key `offline`: a request to end the producer; the only record that is not written by a producer."""

    epoch: Epoch  # the newest at the request: only the producer that began it obeys
    asked_at: int  # µs since 1970 UTC
    asked_by: str  # user@host
    reason: str  # the option --reason
    offline_at: int | None = None  # when the producer ended
    seqno: int | None = None  # the last finished event then


@dataclass(frozen=True, slots=True)
class ControlState:
    """Everything that the control topic says, read to its end."""

    log: LogRecord | None
    partitions: PartitionMap | None
    epochs: tuple[EpochRecord, ...]  # ascending
    tables: Definitions | None = None  # of the source, at the position; None: never recorded
    offline: OfflineRequest | None = None  # the newest
    load_requests: Mapping[TableName, LoadRequest] = field(default_factory=dict)  # the newest of each table
    loads: Mapping[TableName, TableLoad] = field(default_factory=dict)

    @property
    def trapped(self) -> tuple[Range, ...]:
        """The events that a later epoch goes on without."""
        return trapped_of(self.epochs)
