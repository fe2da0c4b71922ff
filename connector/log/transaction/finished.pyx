"""A finished event in the producer's position. Compiled, as `batch` is: every event makes one."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t, uint32_t

from connector.log.transaction.source_position cimport SourcePosition


@cython.final
@dataclass(frozen=True)
cdef class Digest:
    """The digest of a transaction's content, by which it is recognised when it is read again. Independent of fragments.

    Args:
        rows: the number of rows.
        size: bytes of their Avro encoding, and of its statements' text.
        crc32: over the same bytes in order.
    """

    rows: int64_t
    size: int64_t
    crc32: uint32_t


@cython.final
@cython.no_gc  # never part of a reference cycle
@dataclass(frozen=True, kw_only=True)
cdef class Finished:
    """The last finished event of the log.

    Args:
        start: the position in the source at which the event begins: reading from here reads it again.
    """

    seqno: int64_t
    epoch: int64_t
    event_id: str
    gtid: str | None
    digest: Digest
    start: SourcePosition
