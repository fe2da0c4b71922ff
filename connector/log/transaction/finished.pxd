# A finished event in the producer's position.

from libc.stdint cimport int64_t, uint32_t

from connector.log.transaction.source_position cimport SourcePosition

cdef class Digest:
    cdef readonly int64_t rows, size
    cdef readonly uint32_t crc32

cdef class Finished:
    cdef readonly int64_t seqno, epoch
    cdef readonly str event_id, gtid
    cdef readonly Digest digest
    cdef readonly SourcePosition start


cdef inline Digest digest_of(int64_t rows, int64_t size, uint32_t crc32):
    cdef Digest made = Digest.__new__(Digest)
    made.rows = rows
    made.size = size
    made.crc32 = crc32
    return made


cdef inline Finished finished_event(
    int64_t seqno, int64_t epoch, str event_id, str gtid, Digest digest, SourcePosition start
):
    cdef Finished made = Finished.__new__(Finished)
    made.seqno = seqno
    made.epoch = epoch
    made.event_id = event_id
    made.gtid = gtid
    made.digest = digest
    made.start = start
    return made
