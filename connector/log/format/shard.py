"""Shards: the one that an event belongs to, and the partition of each."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from connector.log.ids import UNKNOWN_SHARD, ShardId

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_WORD: Final = 0xFFFFFFFF


def shard_of(shards: Collection[str]) -> ShardId:
    """The shard of an event that touches these: the only one, else `#UNKNOWN`. "" is a shard that is not known."""
    if len(shards) != 1:
        return UNKNOWN_SHARD
    (shard,) = shards
    return ShardId(shard) if shard else UNKNOWN_SHARD


@lru_cache(maxsize=4096)
def partition_of(shard: ShardId, count: int) -> int:
    """The partition of a shard: Kafka's default for its name, but 0 for `#UNKNOWN`.

    Readers find all barriers in partition 0, so a DDL, which is a barrier, gets the shard `#UNKNOWN`.

    Args:
        shard: the shard.
        count: the number of partitions in the log's partition map.
    """
    if count < 1:
        raise ValueError(f"a log of {count} partitions")
    if shard == UNKNOWN_SHARD:
        return 0
    return (murmur2(shard.encode()) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, unsigned, with the seed of Kafka's own partitioner.

    The algorithm is Austin Appleby's, public domain; Kafka's variant is described in its class
    `org.apache.kafka.common.utils.Utils`.
    """
    whole = len(data) & ~3
    h = _SEED ^ len(data)
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _WORD
        k = (k ^ k >> 24) * _M & _WORD
        h = h * _M & _WORD ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _WORD
    h = (h ^ h >> 13) * _M & _WORD
    return h ^ h >> 15
