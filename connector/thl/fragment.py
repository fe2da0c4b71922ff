"""What `encode` gives to `publish`: one encoded fragment and what must be remembered with it."""

from __future__ import annotations

from dataclasses import dataclass

from connector.thl.position import Finished, SourcePosition
from connector.thl.words import Seqno


@dataclass(slots=True)
class Fragment:
    """One Kafka message of the event topic.

    Args:
        partition: where it goes.
        key: the shard, UTF-8.
        value: Avro single-object encoding of `schemas/fragment.avsc`.
        seqno, fragno: its place.
        finished: set on the last fragment: the event is whole with it.
        resume: set on the last fragment: where the source's log is to be read on from after it.
        barrier: whether the event is a barrier (told on the last fragment).
    """

    partition: int
    key: bytes
    value: bytes
    seqno: Seqno
    fragno: int
    finished: Finished | None
    resume: SourcePosition | None
    barrier: bool
    commit_time: int | None
