"""The settings of an encoder: sizes, shards, and the next number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.format.shard_rule import ShardRule
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.layout import TableName
from connector.patterns import table_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes; see `connector.config.publish.Publish` and `connector.config.kafka.Kafka`."""

    fragment: int
    shard: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """The rule that assigns shards to events.

    Args:
        rule: the log's rule.
        since: the first event under it, which is therefore `#UNKNOWN`; NO_SEQNO: the rule of the whole log.
        bookkeeping: patterns of bookkeeping tables; an event that changes no other table is marked.
    """

    rule: ShardRule = field(default_factory=ShardRule)
    since: Seqno = NO_SEQNO
    bookkeeping: tuple[str, ...] = ()

    def keeps_books(self, table: TableName) -> bool:
        """True if a pattern of `bookkeeping` matches the table."""
        return any(
            table_pattern(pattern, ignore_case=True).finds(table.schema, table.table) for pattern in self.bookkeeping
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The numbers with which events continue after going online or going back.

    Args:
        epoch: epoch of the next event.
        next_seqno: seqno of the next event.
        tails: partition → its last finished event.
        last_barrier: the last finished barrier.
    """

    epoch: Epoch
    next_seqno: Seqno
    tails: Mapping[int, Seqno]
    last_barrier: Seqno
