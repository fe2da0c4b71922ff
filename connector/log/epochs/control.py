"""The records of `thl.<service>.control`: what a log is, its epochs, the source's tables. Compacted, JSON, by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connector.log.epochs.fork import Forked, Range
from connector.log.format.partition_map import ShardRule
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.definition import Definitions


@dataclass(frozen=True, slots=True)
class LogRecord:
    """Key `log`: the log's identity, written once, before anything else."""

    log_id: LogId
    created: int  # µs since 1970 UTC
    format: int = 1


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Key `partitions`: into how many partitions events go. Kafka having another count is refused.

    Args:
        generation: 1, and one more each time the rule is another one.
        count: partitions.
        rule: by which events get their shards.
        begins: the first events, each `#UNKNOWN`, of the generations 2 to this one; ascending.
    """

    generation: int
    count: int
    rule: ShardRule = field(default_factory=ShardRule)
    begins: tuple[Seqno, ...] = ()

    @property
    def since(self) -> Seqno:
        """This generation's first event; NO_SEQNO: the log's."""
        return self.begins[-1] if self.begins else NO_SEQNO

    def at(self, seqno: Seqno) -> int:
        """The generation that an event is of."""
        return 1 + bisect_right(self.begins, seqno)

    def by(self, rule: ShardRule, first: Seqno) -> PartitionMap:
        """The next generation, by another rule from an event on."""
        return PartitionMap(self.generation + 1, self.count, rule, (*self.begins, first))


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
    filters: str | None = None  # fingerprint of what decides which of the source is published, and as what
    capture: Mapping[str, Any] | None = None  # the filters themselves: what is captured from here on


def trapped_of(epochs: Iterable[EpochRecord]) -> tuple[Range, ...]:
    """The events that a later epoch goes on without: a reader passes over them."""
    return tuple(one for record in epochs if record.forked for one in record.forked.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRequest:
    """Key `offline`: somebody asked the producer to end; the only record that others than a producer write."""

    epoch: Epoch  # the newest when it was asked: only who began it is meant
    asked_at: int  # µs since 1970 UTC
    asked_by: str  # user@host
    because: str
    offline_at: int | None = None  # when the producer did as it was asked
    seqno: int | None = None  # the last finished event then


@dataclass(frozen=True, slots=True)
class ControlState:
    """Everything that the control topic says, read to its end."""

    log: LogRecord | None
    partitions: PartitionMap | None
    epochs: tuple[EpochRecord, ...]  # ascending
    tables: Definitions | None = None  # of the source, where the position is; None: they were never told
    offline: OfflineRequest | None = None  # the newest

    @property
    def trapped(self) -> tuple[Range, ...]:
        """As its history tells."""
        return trapped_of(self.epochs)
