"""The settings of an encoder: sizes, shards, and the next number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.format.partition_map import ShardRule, finds
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes; see `connector.config.publish.Publish` and `connector.config.kafka.Kafka`."""

    fragment: int
    shard: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """The rule by which events get their shards.

    Args:
        rule: the log's.
        since: the first event under it, which is therefore `#UNKNOWN`; NO_SEQNO: the log's first.
        bookkeeping: patterns of tables, as the rule's: an event that touches no other table is marked.
    """

    rule: ShardRule = field(default_factory=ShardRule)
    since: Seqno = NO_SEQNO
    bookkeeping: tuple[str, ...] = ()

    def keeps_books(self, table: TableName) -> bool:
        """True for a table that a pattern of `bookkeeping` finds."""
        return any(finds(pattern, table) for pattern in self.bookkeeping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The number after which events continue, as going online, or going back, has decided.

    Args:
        epoch: of the next event.
        next_seqno: of the next event.
        tails: partition → its last finished event.
        last_barrier: the last finished barrier.
    """

    epoch: Epoch
    next_seqno: Seqno
    tails: Mapping[int, Seqno]
    last_barrier: Seqno
