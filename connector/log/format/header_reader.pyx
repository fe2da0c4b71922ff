"""Reads a fragment's header: the one reader of its fields, for compiled code into a struct, for Python as `FragmentHeader`.

Every version of the schema begins with the same fields, to `metadata`; those alone can be read of a message whose schema
is not known. What the schema does not allow raises ValueError.
"""

import zlib

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.format.avro_reader cimport (
    Reader,
    read_boolean,
    read_branch,
    read_index,
    read_long,
    read_map,
    skip,
    skip_map,
)
from connector.log.format.change_header cimport skip_change, skip_changes
from connector.log.format import checked
from connector.log.format.header import FragmentHeader
from connector.log.ids import Kind, Outcome
from connector.log.rules import BrokenRule, Rule

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object target, object name, object value) except -1

cdef tuple KINDS = tuple(Kind)
cdef tuple OUTCOMES = tuple(Outcome)
cdef long long LATEST = checked.LATEST

cdef enum:
    CRC_SIZE = 4  # bytes after the body
    KIND_COUNT = 5
    KINDS_AT_MOST = 63
    OUTCOME_COUNT = 3
    LARGEST_FRAGNO = 0x7FFFFFFF
    CACHED = 4096  # distinct strings and metadata maps remembered; forgotten together when there are more
    LARGE = 1024  # bytes of a map that is not worth remembering: it holds a statement's text


def first_fields(const unsigned char[::1] value not None, Py_ssize_t body):
    """Read the fields of `FirstFields`.

    Args:
        value: a message.
        body: the index where its Avro value begins.

    Raises:
        ValueError: the header is damaged.
    """
    cdef RawHeader raw
    read_first_fields(reader(value, body), &raw)
    return raw.seqno, raw.fragno, bool(raw.last_frag), raw.epoch, KINDS[raw.kind], raw.prev_seqno


def metadata(const unsigned char[::1] value not None, Py_ssize_t body):
    """Read the metadata, and check the fields before it, which are the same in every version of the schema.

    Raises:
        ValueError: the header is damaged.
    """
    cdef RawHeader raw
    read_to_metadata(reader(value, body), &raw)
    return map_of(value, raw.metadata)


def header(const unsigned char[::1] value not None, Py_ssize_t body):
    """Read the header of a message of this version's schema.

    Raises:
        ValueError: the header is damaged.
    """
    cdef RawHeader raw
    read_header(reader(value, body), &raw)
    return HeaderDecoder().header(value, &raw)


def without_changes(const unsigned char[::1] value not None, Py_ssize_t body):
    """The message with no changes after its header, and the checksum of that.

    Args:
        value: a message of this version's schema, whose checksum is right.
        body: the index where its Avro value begins.

    Raises:
        ValueError: the header is damaged.
    """
    cdef RawHeader raw
    cdef Reader r = reader(value, body)
    read_header(r, &raw)
    short = bytes(value[: r.at]) + b"\0"
    return short + zlib.crc32(short[body:]).to_bytes(CRC_SIZE, "big")


def check_fragment(const unsigned char[::1] value not None, Py_ssize_t body):
    """Check that all of a message of this version's schema can be read, its changes too, and that nothing follows them.

    Raises:
        ValueError: the message is damaged.
    """
    cdef RawHeader raw
    cdef Reader r = reader(value, body)
    read_header(r, &raw)
    skip_changes(r)


def check_change(const unsigned char[::1] data not None):
    """Check that the bytes are one change, which was cut into parts.

    Raises:
        ValueError: they are not.
    """
    cdef Reader r = Reader.__new__(Reader)
    r.data = data
    r.end = data.shape[0]
    skip_change(r)
    if r.at != r.end:
        raise ValueError("bytes after a change")


cdef Reader reader(const unsigned char[::1] value, Py_ssize_t body):
    """At the beginning of a message's body; the CRC-32 after the body is no part of it."""
    cdef Reader r = Reader.__new__(Reader)
    r.data = value
    r.at = body
    r.end = value.shape[0] - CRC_SIZE
    if body < 0 or body > r.end:
        raise ValueError("a message without a body")
    return r


cdef int read_first_fields(Reader r, RawHeader* raw) except -1:
    cdef long long fragno
    raw.seqno = read_long(r)
    fragno = read_long(r)
    if not 0 <= fragno <= LARGEST_FRAGNO:
        raise ValueError("a fragment number that the schema does not allow")
    raw.fragno = <int>fragno
    raw.last_frag = read_boolean(r)
    raw.epoch = read_long(r)
    raw.kind = read_index(r, KINDS_AT_MOST)
    if raw.kind >= KIND_COUNT:  # a later version's
        raise BrokenRule(Rule.OTHER_SCHEMA, kind=raw.kind)
    raw.shard = read_span(r)
    raw.prev_seqno = read_long(r)
    return 0


cdef int read_to_metadata(Reader r, RawHeader* raw) except -1:
    read_first_fields(r, raw)
    raw.last_barrier = read_long(r)
    raw.rows = read_long(r)
    raw.source_id = read_span(r)
    raw.server_id = read_long(r)
    raw.thread_id = read_long(r)
    raw.gtid = read_optional_span(r)
    raw.last_committed = read_long(r)
    raw.sequence_number = read_long(r)
    raw.metadata.start = r.at
    skip_map(r)
    raw.metadata.end = r.at
    return 0


cdef int read_header(Reader r, RawHeader* raw) except -1:
    read_to_metadata(r, raw)
    raw.event_id = read_optional_span(r)
    raw.timed = read_branch(r)
    raw.commit_time = read_long(r) if raw.timed else 0
    if not 0 <= raw.commit_time <= LATEST:
        raise ValueError("a commit time that is none")
    raw.outcome = read_index(r, OUTCOME_COUNT) if read_branch(r) else NO_OUTCOME
    return 0


cdef inline Span read_span(Reader r) except *:
    """A string: where it is."""
    cdef Span span
    cdef long long size = read_long(r)
    span.start = r.at
    skip(r, size)
    span.end = r.at
    return span


cdef inline Span read_optional_span(Reader r) except *:
    """A string or null."""
    cdef Span span
    if read_branch(r):
        return read_span(r)
    span.start = span.end = 0
    return span


cdef class HeaderDecoder:
    """Makes `FragmentHeader` of what was read; strings that come again are the same object."""

    def __init__(self):
        self.texts = {}
        self.maps = {}

    cdef object header(self, const unsigned char[::1] data, RawHeader* raw):
        # A frozen dataclass's own __init__ takes three times as long; the fields are those of FragmentHeader.
        cdef object h = FragmentHeader.__new__(FragmentHeader)
        PyObject_GenericSetAttr(h, "seqno", raw.seqno)
        PyObject_GenericSetAttr(h, "fragno", raw.fragno)
        PyObject_GenericSetAttr(h, "last_frag", bool(raw.last_frag))
        PyObject_GenericSetAttr(h, "epoch", raw.epoch)
        PyObject_GenericSetAttr(h, "kind", KINDS[raw.kind])
        PyObject_GenericSetAttr(h, "shard", self.cached_text(data, raw.shard))
        PyObject_GenericSetAttr(h, "prev_seqno", raw.prev_seqno)
        PyObject_GenericSetAttr(h, "last_barrier", raw.last_barrier)
        PyObject_GenericSetAttr(h, "rows", raw.rows)
        PyObject_GenericSetAttr(h, "source_id", self.cached_text(data, raw.source_id))
        PyObject_GenericSetAttr(h, "server_id", raw.server_id)
        PyObject_GenericSetAttr(h, "thread_id", raw.thread_id)
        PyObject_GenericSetAttr(h, "gtid", text_of(data, raw.gtid) if raw.gtid.start else None)
        PyObject_GenericSetAttr(h, "last_committed", raw.last_committed)
        PyObject_GenericSetAttr(h, "sequence_number", raw.sequence_number)
        PyObject_GenericSetAttr(h, "metadata", self.metadata(data, raw.metadata))
        PyObject_GenericSetAttr(h, "event_id", text_of(data, raw.event_id) if raw.event_id.start else None)
        PyObject_GenericSetAttr(h, "commit_time", raw.commit_time if raw.timed else None)
        PyObject_GenericSetAttr(h, "outcome", None if raw.outcome == NO_OUTCOME else OUTCOMES[raw.outcome])
        return h

    cdef str cached_text(self, const unsigned char[::1] data, Span span):
        cdef bytes raw = bytes_of(data, span)
        found = self.texts.get(raw)
        if found is None:
            if len(self.texts) >= CACHED:
                self.texts.clear()
            found = self.texts[raw] = raw.decode()
        return found

    cdef dict metadata(self, const unsigned char[::1] data, Span span):
        if span.end - span.start > LARGE:
            return map_of(data, span)
        cdef bytes raw = bytes_of(data, span)
        found = self.maps.get(raw)
        if found is None:
            if len(self.maps) >= CACHED:
                self.maps.clear()
            found = self.maps[raw] = map_of(data, span)
        return found


cdef bytes bytes_of(const unsigned char[::1] data, Span span):
    if span.end <= span.start:
        return b""
    if span.end > data.shape[0]:
        raise ValueError("text outside of its message")
    return PyBytes_FromStringAndSize(<const char *>&data[span.start], span.end - span.start)


cdef str text_of(const unsigned char[::1] data, Span span):
    return bytes_of(data, span).decode()


cdef dict map_of(const unsigned char[::1] data, Span span):
    cdef Reader r = Reader.__new__(Reader)
    r.data = data
    r.at = span.start
    r.end = span.end
    return read_map(r)
