"""Routes events: caches the partition, key and metadata of each shard's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connector.log.format import avro
from connector.log.format.shard import partition_of
from connector.log.ids import ShardId

KEPT: Final = 4096
MARK: Final = {"is_metadata": "true"}  # Tungsten's mark of events without user data


@dataclass(frozen=True, slots=True)
class Route:
    """The route of a shard's events.

    Args:
        shard: the shard.
        partition, key: partition and key of the Kafka messages.
        bookkeeping: true for events that change only bookkeeping tables.
        facts: metadata of every such event of the shard and server.
        metadata: `facts` as an encoded Avro map.
    """

    shard: ShardId
    partition: int
    key: bytes
    bookkeeping: bool
    facts: dict[str, str]
    metadata: bytes


class Routes:
    """Routes by server, shard and bookkeeping.

    Args:
        service: the service of the log.
        partitions: number of partitions of the event topic.
        facts: further metadata of every event.
    """

    def __init__(self, service: str, partitions: int, facts: Mapping[str, str]) -> None:
        self._service = service
        self._partitions = partitions
        self._facts = facts
        self._kept: dict[tuple[int, ShardId, bool], Route] = {}

    def __call__(self, server_id: int, shard: ShardId, bookkeeping: bool = False) -> Route:
        """Return the route of a shard's events that a server executed first."""
        kept = self._kept.get((server_id, shard, bookkeeping))
        if kept is None:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            facts = {
                "mysql_server_id": str(server_id),
                "dbms_type": "mysql",
                "service": self._service,
                "shard": shard,
                **self._facts,
                **(MARK if bookkeeping else {}),
            }
            partition = partition_of(shard, self._partitions)
            kept = Route(shard, partition, shard.encode(), bookkeeping, facts, avro.string_map(facts))
            self._kept[server_id, shard, bookkeeping] = kept
        return kept
