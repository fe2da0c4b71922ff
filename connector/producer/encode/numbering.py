"""What an encoder is told: how large things may be, which shards there are, and where numbering goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.format.partition_map import ShardRule, finds
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large things may be, in bytes; see `connector.config.model.Publish` and `Kafka`."""

    fragment: int
    shard: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Which shards there are.

    Args:
        rule: the log's.
        since: the event from which on it holds, which is therefore `#UNKNOWN`; NO_SEQNO: from the log's beginning.
        bookkeeping: patterns of tables, as the rule's: an event that touches these alone is marked.
    """

    rule: ShardRule = field(default_factory=ShardRule)
    since: Seqno = NO_SEQNO
    bookkeeping: tuple[str, ...] = ()

    def keeps_books(self, table: TableName) -> bool:
        """Whether a table is somebody's bookkeeping."""
        return any(finds(pattern, table) for pattern in self.bookkeeping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Where numbering goes on: what going online, or going back, has decided.

    Args:
        epoch: the epoch of what follows.
        next_seqno: of the next event.
        tails: partition → its last finished event.
        last_barrier: the last finished barrier.
    """

    epoch: Epoch
    next_seqno: Seqno
    tails: Mapping[int, Seqno]
    last_barrier: Seqno
