"""One encoded fragment, and the facts that the position needs of it."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t

from connector.log.transaction.finished cimport Finished
from connector.log.transaction.source_position cimport SourcePosition


@cython.final
@cython.no_gc  # one for each event, and never part of a reference cycle
@dataclass
cdef class Fragment:
    """One Kafka message of the event topic.

    Args:
        partition: the partition of the event topic.
        key: the shard, UTF-8.
        value: Avro single-object encoding of `schemas/fragment.avsc`.
        seqno, fragno: the event, and the fragment's number within it.
        finished: the finished event; set on its last fragment only.
        resume: the position of the source's log to resume from after the event; set on the last fragment only.
        barrier: true on the last fragment of a barrier event.
        commit_time: the source's, µs since 1970 UTC; set on the last fragment only.
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
