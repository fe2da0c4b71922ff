"""One encoded fragment, and the facts that the position needs of it."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t

from connector.log.transaction.finished cimport Finished
from connector.log.transaction.source_position cimport SourcePosition


@cython.final
@dataclass
cdef class Fragment:
    """One Kafka message of the event topic.

    Args:
        partition: where it goes.
        key: the shard, UTF-8.
        value: Avro single-object encoding of `schemas/fragment.avsc`.
        seqno, fragno: its place.
        finished: set on the last fragment: the event is whole with it.
        resume: set on the last fragment: where the source's log is to be read on from after it.
        barrier: whether the event is a barrier (told on the last fragment).
        commit_time: the source's, told on the last fragment.
    """

    partition: int
    key: bytes
    value: bytes
    seqno: int64_t
    fragno: int
    finished: Finished | None
    resume: SourcePosition | None
    barrier: cython.bint
    commit_time: object
