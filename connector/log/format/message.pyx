"""One message of the log: its header decoded, its changes still bytes.

A message is an opening (`connector.log.format.framing`) and the body, Avro by schemas/fragment.avsc; the body's last four bytes
are the CRC-32 of those before them.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.format.avro_reader cimport Reader, read_block, read_byte, read_long, skip, skip_map
from connector.errors import LogDamaged
from connector.log.format.header import FragmentHeader
from connector.log.transaction.batch import Statement
from connector.log.ids import Kind, Outcome

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object target, object name, object value) except -1

cdef Py_ssize_t CRC_SIZE = 4
cdef tuple KINDS = tuple(Kind)
cdef tuple OUTCOMES = tuple(Outcome)
cdef int CACHED = 4096  # distinct strings and metadata maps remembered; forgotten together when there are more
cdef Py_ssize_t LARGE = 1024  # bytes of a map that is not worth remembering: it holds a statement's text


cdef class Block:
    """Bytes that messages stand in, kept alive by them."""

    def __init__(self, data):
        self.data = data


cdef class Message:
    """One fragment where Kafka had it."""

    @property
    def size(self):
        """Bytes of the message."""
        return self.end + CRC_SIZE - self.start

    def own(self):
        """Keep a copy of the message's bytes instead of the buffer that it shares with others."""
        self.block = Block(bytes(self.block.data[self.start : self.end + CRC_SIZE]))
        self.changes -= self.start
        self.end -= self.start
        self.start = 0

    def statements(self, str topic=""):
        """The statements that a fragment begins with; row changes may follow them (CREATE TABLE … SELECT).

        Args:
            topic: named in errors.

        Raises:
            LogDamaged: the bytes are not what the schema says.
        """
        try:
            return self.read_statements()
        except (ValueError, IndexError) as error:
            raise LogDamaged(
                f"the statements of an event are wrong: {error}",
                seqno=self.header.seqno,
                at=f"{topic}-{self.partition}@{self.offset}",
            ) from error

    cdef list read_statements(self):
        cdef Reader r = Reader.__new__(Reader)
        cdef long long count
        r.data = self.block.data
        r.at = self.changes
        r.end = self.end
        found = []
        while count := read_block(r):
            for _ in range(count):
                if read_byte(r) != 0:
                    return found
                schema = text(r)
                sql = text(r)
                found.append(Statement(schema, sql, text_map(r)))
        if r.at != r.end:
            raise ValueError("bytes after the last change")
        return found


cdef class Headers:
    """Decodes headers; strings that come again are the same object."""

    def __init__(self):
        self.texts = {}
        self.maps = {}

    cdef object read(self, Reader r):
        # A frozen dataclass's own __init__ takes three times as long; the fields are those of FragmentHeader.
        cdef object h = FragmentHeader.__new__(FragmentHeader)
        PyObject_GenericSetAttr(h, "seqno", read_long(r))
        PyObject_GenericSetAttr(h, "fragno", read_long(r))
        PyObject_GenericSetAttr(h, "last_frag", read_byte(r) == 1)
        PyObject_GenericSetAttr(h, "epoch", read_long(r))
        PyObject_GenericSetAttr(h, "kind", KINDS[read_byte(r) >> 1])
        PyObject_GenericSetAttr(h, "shard", self.cached_text(r))
        PyObject_GenericSetAttr(h, "prev_seqno", read_long(r))
        PyObject_GenericSetAttr(h, "last_barrier", read_long(r))
        PyObject_GenericSetAttr(h, "rows", read_long(r))
        PyObject_GenericSetAttr(h, "source_id", self.cached_text(r))
        PyObject_GenericSetAttr(h, "server_id", read_long(r))
        PyObject_GenericSetAttr(h, "thread_id", read_long(r))
        PyObject_GenericSetAttr(h, "gtid", text(r) if present(r) else None)
        PyObject_GenericSetAttr(h, "last_committed", read_long(r))
        PyObject_GenericSetAttr(h, "sequence_number", read_long(r))
        PyObject_GenericSetAttr(h, "metadata", self.metadata(r))
        PyObject_GenericSetAttr(h, "event_id", text(r) if present(r) else None)
        PyObject_GenericSetAttr(h, "commit_time", read_long(r) if present(r) else None)
        PyObject_GenericSetAttr(h, "outcome", OUTCOMES[read_byte(r) >> 1] if present(r) else None)
        return h

    cdef str cached_text(self, Reader r):
        cdef bytes raw = raw_text(r)
        found = self.texts.get(raw)
        if found is None:
            if len(self.texts) >= CACHED:
                self.texts.clear()
            found = self.texts[raw] = raw.decode()
        return found

    cdef dict metadata(self, Reader r):
        cdef Py_ssize_t start = r.at
        skip_map(r)
        if r.at - start > LARGE:
            r.at = start
            return text_map(r)
        cdef bytes raw = PyBytes_FromStringAndSize(<const char *>&r.data[start], r.at - start)
        found = self.maps.get(raw)
        if found is None:
            if len(self.maps) >= CACHED:
                self.maps.clear()
            r.at = start
            found = self.maps[raw] = text_map(r)
        return found


cdef bint present(Reader r) except -1:
    """Which branch of a union with null."""
    cdef unsigned char branch = read_byte(r)
    if branch > 2 or branch & 1:
        raise ValueError("a union branch that the schema does not have")
    return branch == 2


cdef bytes raw_text(Reader r):
    cdef long long size = read_long(r)
    cdef Py_ssize_t start = r.at
    skip(r, size)
    return PyBytes_FromStringAndSize(<const char *>&r.data[start], <Py_ssize_t>size) if size else b""


cdef str text(Reader r):
    return raw_text(r).decode()


cdef dict text_map(Reader r):
    cdef long long count
    found = {}
    while count := read_block(r):
        for _ in range(count):
            key = text(r)
            found[key] = text(r)
    return found
