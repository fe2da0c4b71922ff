"""Seqno, epoch, shard, log id: the words that everything else is said in."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NewType

Seqno = NewType("Seqno", int)
"""0, 1, 2 … one per finished event of a log, no holes. `NO_SEQNO` before the first."""

Epoch = NewType("Epoch", int)
"""+1 each time a producer goes online or goes back over a published fragment. The first is 1."""

LogId = NewType("LogId", str)
"""The random identity (32 hex digits) a log gets when its topics are created."""

ShardId = NewType("ShardId", str)
"""The part of the data that an event touches: the Kafka message's key."""

NO_SEQNO: Final = Seqno(-1)
NO_EPOCH: Final = Epoch(0)
UNKNOWN_SHARD: Final = ShardId("#UNKNOWN")


class Kind(IntEnum):
    """The kind of an event. The numbers are the Avro enum's indexes."""

    TRANSACTION = 0
    DDL = 1
    HEARTBEAT = 2
    EPOCH = 3  # a marker, not an event: voids what is unfinished on its partition
    LOAD = 4  # a part of the load of a table (connector.log.transaction.load); in schemas/load.avsc alone


class Outcome(IntEnum):
    """The outcome of an event, in its last fragment. The numbers are the Avro enum's indexes."""

    COMMIT = 0
    ROLLBACK = 1
    VOID = 2


class Action(IntEnum):
    """The action of a row change. The numbers are the Avro enum's indexes."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    READ = 3  # the row is as this, whether it was there or not; in events of the kind LOAD alone


def is_barrier(kind: Kind, shard: ShardId) -> bool:
    """Return whether an event is a barrier: all events before it are applied before it, all after it after it."""
    return kind is Kind.DDL or shard == UNKNOWN_SHARD


def ends_event(last_frag: bool, kind: Kind) -> bool:
    """Return whether a fragment is the last one of an event; an epoch's marker is no event."""
    return last_frag and kind is not Kind.EPOCH
