# A fragment's header, read from bytes: the one reader of `FragmentHeader`'s fields (schemas/fragment.avsc).

from connector.log.format.avro_reader cimport Reader

cdef enum:
    NO_OUTCOME = -1


cdef struct Span:
    Py_ssize_t start  # 0: there is none
    Py_ssize_t end


cdef struct RawHeader:
    long long seqno
    long long epoch
    long long prev_seqno
    long long last_barrier
    long long rows
    long long server_id
    long long thread_id
    long long last_committed
    long long sequence_number
    long long commit_time  # 0 where there is none
    int fragno
    int kind  # connector.log.ids.Kind
    int outcome  # connector.log.ids.Outcome, or NO_OUTCOME
    bint last_frag
    bint timed
    Span shard
    Span source_id
    Span gtid
    Span metadata
    Span event_id


cdef class HeaderDecoder:
    cdef dict texts
    cdef dict maps
    cdef object header(self, const unsigned char[::1] data, RawHeader* raw)
    cdef str cached_text(self, const unsigned char[::1] data, Span span)
    cdef dict metadata(self, const unsigned char[::1] data, Span span)


cdef int read_first_fields(Reader r, RawHeader* raw) except -1
cdef int read_to_metadata(Reader r, RawHeader* raw) except -1
cdef int read_header(Reader r, RawHeader* raw) except -1
cdef str text_of(const unsigned char[::1] data, Span span)
