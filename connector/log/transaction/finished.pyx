"""A finished event, as its producer remembers it. Compiled, as `piece` is: every event makes one."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t, uint32_t

from connector.log.transaction.source_position cimport SourcePosition


@cython.final
@dataclass(frozen=True)
cdef class Digest:
    """The digest of a transaction's content, however it was cut into fragments: recognises it when it is read again.

    Args:
        rows: how many rows.
        size: bytes of their Avro encoding, and of its statements' text.
        crc32: over the same bytes in order.
    """

    rows: int64_t
    size: int64_t
    crc32: uint32_t


@cython.final
@dataclass(frozen=True, kw_only=True)
cdef class Finished:
    """The last finished event of the log, as its producer wrote it down.

    Args:
        start: where the event begins in the source: reading from here meets it again.
    """

    seqno: int64_t
    epoch: int64_t
    event_id: str
    gtid: str | None
    digest: Digest
    start: SourcePosition
