"""From a Kafka message's bytes to its header: what the ledger needs, before any row is looked at.

A message is the Avro single-object encoding of schemas/fragment.avsc: C3 01, the schema's fingerprint, the body;
the body's last four bytes are the CRC-32 of those before them. Checked here, so that whoever walks the changes
later knows that they are what was published. Nothing is copied: a `Message` keeps the Arrow buffer alive in which
Spark handed it over, until it gets its `own`.
"""

import zlib

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.errors import LogDamaged
from connector.reassemble.avro cimport Reader, read_block, read_byte, read_long, skip, skip_map
from connector.thl.header import FragmentHeader
from connector.thl.piece import Statement
from connector.thl.words import Kind, Outcome

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object target, object name, object value) except -1

# CRC-64-AVRO of the schema's parsing canonical form, little endian; a test compares it with the schema.
cdef bytes PREFIX = b"\xc3\x01" + bytes.fromhex("eaa93894cc949c6c")
cdef Py_ssize_t PREFIX_SIZE = 10
cdef Py_ssize_t CRC_SIZE = 4
cdef tuple KINDS = tuple(Kind)
cdef tuple OUTCOMES = tuple(Outcome)
cdef int CACHED = 4096  # distinct strings and metadata maps remembered; forgotten together when there are more


cdef class Block:
    """Bytes that messages stand in, kept alive by them."""

    def __cinit__(self, data):
        self.data = data


cdef class Message:
    """One fragment where Kafka had it: its header decoded, its changes still bytes."""

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

    def statements(self):
        """The statements that a fragment begins with; row changes may follow them (CREATE TABLE … SELECT).

        Raises:
            ValueError: the bytes are not what the schema says.
        """
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


cdef class Scanner:
    """Decodes the headers of one topic's messages; strings that come again are the same object.

    Args:
        topic: named in errors.
    """

    cdef str topic
    cdef dict texts
    cdef dict maps

    def __init__(self, topic):
        self.topic = topic
        self.texts = {}
        self.maps = {}

    def scan(self, batch):
        """The messages of an Arrow record batch with the columns partition, offset, value, in its order.

        Raises:
            LogDamaged: a message is no fragment, or its checksum does not match.
        """
        values = batch.column("value")
        partitions = batch.column("partition").to_pylist()
        offsets = batch.column("offset").to_pylist()
        cdef Py_ssize_t first = values.offset
        cdef Py_ssize_t count = len(values)
        cdef Py_ssize_t i
        if count == 0:
            return []
        _, ends_buffer, data_buffer = values.buffers()
        cdef Block block = Block(memoryview(data_buffer).cast("B") if data_buffer is not None else b"")
        found = []
        wide = str(values.type) == "large_binary"
        ends = memoryview(ends_buffer).cast("B").cast("q" if wide else "i")
        whole = memoryview(block.data)
        for i in range(count):
            found.append(self.one(block, whole, ends[first + i], ends[first + i + 1], partitions[i], offsets[i]))
        return found

    cdef Message one(self, Block block, object whole, Py_ssize_t start, Py_ssize_t end, int partition, long long offset):
        cdef Message m = Message.__new__(Message)
        cdef Reader r = Reader.__new__(Reader)
        m.block = block
        m.partition = partition
        m.offset = offset
        m.start = start
        m.end = end - CRC_SIZE
        try:
            if end - start < PREFIX_SIZE + CRC_SIZE or whole[start : start + PREFIX_SIZE] != PREFIX:
                raise ValueError("not a fragment of this schema")
            if zlib.crc32(whole[start + PREFIX_SIZE : m.end]) != int.from_bytes(whole[m.end : end], "big"):
                raise ValueError("the checksum does not match")
            r.data = block.data
            r.at = start + PREFIX_SIZE
            r.end = m.end
            m.header = self.header(r)
            m.changes = r.at
        except (ValueError, IndexError) as error:
            raise LogDamaged(
                f"a message of the log is damaged: {error}",
                hint="nothing was applied of it; see whether the topic is written by anything but the producer",
                at=f"{self.topic}-{partition}@{offset}",
            ) from error
        return m

    cdef object header(self, Reader r):
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
        PyObject_GenericSetAttr(h, "metadata", self.cached_map(r))
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

    cdef dict cached_map(self, Reader r):
        cdef Py_ssize_t start = r.at
        skip_map(r)
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
