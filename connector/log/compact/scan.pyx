"""From the messages of a batch to what the ledger needs, before any row is looked at.

Every checksum is verified here, so that whoever walks the changes later knows that they are what was published.
Headers become numbers in a table of C, no Python object each; events that simply follow each other stay together as
`Messages`, by the rule of `connector.log.reading.event_range`, and become a `Message` with a `FragmentHeader` only when one is asked
for. Nothing is copied: both keep the Arrow buffer alive in which Spark handed it over.
"""

import zlib

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from connector.errors import LogDamaged
from connector.log.format.avro_reader cimport Reader, read_byte, read_long, skip, skip_map, skip_text
from connector.log.format.message cimport Block, Headers, Message, present
from connector.log.format import checked
from connector.log.format import framing
from connector.log.reading.event_range import EDGES, EventRange
from connector.log.ids import UNKNOWN_SHARD

# CRC-64-AVRO of the schema's parsing canonical form, little endian; a test compares it with the schema.
cdef str FINGERPRINT = "dba8cdb91f7e3c7e"
cdef bytes PREFIX = framing.SINGLE_OBJECT + bytes.fromhex(FINGERPRINT)
cdef Py_ssize_t PREFIX_SIZE = 10
cdef Py_ssize_t REGISTERED_SIZE = 5  # where a registry numbers the schema: a zero byte and the number
cdef str SCHEMA = framing.SCHEMA
cdef Py_ssize_t CRC_SIZE = 4
cdef bytes UNKNOWN = UNKNOWN_SHARD.encode()
cdef object EDGE_NAMES = EDGES

cdef long long LATEST = checked.LATEST

cdef enum:
    TRANSACTION = 0  # connector.log.ids.Kind, as Avro writes it
    DDL = 2
    LAST_KIND = 6
    VOID = 4  # connector.log.ids.Outcome
    LAST_OUTCOME = 4


cdef class Places:
    """What the headers of one Arrow buffer's messages say, and where each stands."""

    def __cinit__(self, Py_ssize_t count):
        self.items = <Place*>calloc(count or 1, sizeof(Place))
        if self.items is NULL:
            raise MemoryError
        self.count = count

    def __dealloc__(self):
        free(self.items)

    cdef Place* at(self, Py_ssize_t index) except NULL:
        if index < 0 or index >= self.count:
            raise IndexError("a message that the batch does not have")
        return &self.items[index]


cdef class Messages:
    """One message, or several of whole events that follow each other as `connector.log.reading.event_range` says."""

    def __len__(self):
        return self.end - self.first

    def __iter__(self):
        for index in range(self.end - self.first):
            yield self.one(index)

    @property
    def size(self):
        """Bytes of the messages."""
        return self.at(self.end - self.first - 1).end + CRC_SIZE - self.at(0).start

    def since(self, Py_ssize_t first):
        """Those from the `first` on."""
        return part(self.places, self.first + first, self.end)

    def message(self, Py_ssize_t index):
        """One of them."""
        return self.one(index)

    def header(self, Py_ssize_t index):
        """One's header."""
        return self.one(index).header

    def run(self):
        """What the ledger is to know of them."""
        cdef Place* place = self.at(0)
        return EventRange(
            place.partition,
            place.seqno,
            place.prev_seqno,
            place.last_barrier,
            self.places.offsets[self.first : self.end],
            self.one(self.end - self.first - 1).header,
            self,
        )

    def rows(self, Py_ssize_t first, Py_ssize_t end):
        """How many rows the headers of some count."""
        cdef long long rows = 0
        cdef Py_ssize_t index
        for index in range(first, end):
            rows += self.at(index).rows
        return rows

    def commit_time(self, Py_ssize_t index):
        """One's commit time, 0 where it is not known."""
        return self.at(index).commit_time

    def gtids(self, Py_ssize_t first, Py_ssize_t end):
        """The GTIDs of some: each with how many follow it, counting by one, itself included."""
        cdef Place* place
        cdef Place* last = NULL
        cdef Py_ssize_t index, count = 0
        cdef const unsigned char[::1] data = self.places.block.data
        found = []
        for index in range(first, end):
            place = self.at(index)
            if not place.gtid:
                continue
            if last is not NULL and next_gtid(data, last, place):
                count += 1
            else:
                if last is not NULL:
                    found.append((gtid, count))
                try:
                    gtid = bytes(data[place.gtid : place.gtid_end]).decode()
                except ValueError as error:
                    raise damaged(error, self.places.scanner.topic, place) from error
                count = 1
            last = place
        if last is not NULL:
            found.append((gtid, count))
        return found

    cdef Place* at(self, Py_ssize_t index) except NULL:
        if index < 0 or index >= self.end - self.first:
            raise IndexError("a message that is not among these")
        return self.places.at(self.first + index)

    cdef Message one(self, Py_ssize_t index):
        cdef Place* place = self.at(index)
        cdef Message m = Message.__new__(Message)
        cdef Reader r = Reader.__new__(Reader)
        m.block = self.places.block
        m.partition = place.partition
        m.offset = place.offset
        m.start = place.start
        m.changes = place.changes
        m.end = place.end
        r.data = m.block.data
        r.at = place.start + opening(r.data, place.start)
        r.end = place.end
        try:
            m.header = self.places.scanner.headers.read(r)
        except ValueError as error:
            raise damaged(error, self.places.scanner.topic, place) from error
        return m


cdef class Scanner:
    """Reads the headers of one topic's messages.

    Args:
        topic: named in errors.
    """

    def __init__(self, topic):
        self.topic = topic
        self.headers = Headers()
        self.metadata = b"\0"
        self.rows_only = True
        self.ours = False

    def scan(self, batch):
        """The messages of an Arrow record batch with the columns partition, offset, value, in its order.

        Raises:
            LogDamaged: a message is no fragment, or its checksum does not match.
        """
        values = batch.column("value")
        cdef Py_ssize_t count = len(values)
        cdef Py_ssize_t index, body, first = 0
        if count == 0:
            return []
        cdef Places places = Places(count)
        cdef Reader r = Reader.__new__(Reader)
        cdef Place* place
        _, ends_buffer, data_buffer = values.buffers()
        places.block = Block(memoryview(data_buffer).cast("B") if data_buffer is not None else b"")
        places.scanner = self
        places.offsets = numbers(batch.column("offset"), "q")
        partitions = numbers(batch.column("partition"), "i")
        ends = memoryview(ends_buffer).cast("B").cast("q" if str(values.type) == "large_binary" else "i")
        ends = ends[values.offset : values.offset + count + 1]
        whole = memoryview(places.block.data)
        r.data = places.block.data
        found = []
        for index in range(count):
            place = places.at(index)
            place.partition = partitions[index]
            place.offset = places.offsets[index]
            place.start = ends[index]
            place.end = <Py_ssize_t>ends[index + 1] - CRC_SIZE
            try:
                if place.end - place.start < PREFIX_SIZE:
                    raise ValueError("not a fragment")
                body = place.start + opening(r.data, place.start)
                if zlib.crc32(whole[body : place.end]) != checksum(r.data, place.end):
                    raise ValueError("the checksum does not match")
                r.at = body
                r.end = place.end
                self.place(place, r)
                if r.data[place.start] == 0 and not self.ours:
                    raise ValueError("not a fragment of this schema, by its metadata")
            except (ValueError, IndexError) as error:
                raise damaged(error, self.topic, place) from error
            if index and not follows(places.at(index - 1), place):
                found.append(part(places, first, index))
                first = index
        found.append(part(places, first, count))
        return found

    cdef int place(self, Place* place, Reader r) except -1:
        """Read a header, in the order of `FragmentHeader`."""
        cdef long long fragno
        cdef unsigned char kind, outcome = 0
        cdef bint last_frag, barrier
        place.seqno = read_long(r)
        fragno = read_long(r)
        last_frag = read_byte(r) == 1
        place.epoch = read_long(r)
        kind = read_byte(r)
        if kind & 1 or kind > LAST_KIND:
            raise ValueError("a kind that the schema does not have")
        barrier = is_unknown(r) or kind == DDL
        place.prev_seqno = read_long(r)
        place.last_barrier = read_long(r)
        place.newest_barrier = place.seqno if barrier else place.last_barrier
        place.rows = read_long(r)
        skip_text(r)  # source_id
        read_long(r)  # server_id
        read_long(r)  # thread_id
        if present(r):
            place.gtid_end = <Py_ssize_t>read_long(r)
            place.gtid = r.at
            skip(r, place.gtid_end)
            place.gtid_end = r.at
        read_long(r)  # last_committed
        read_long(r)  # sequence_number
        place.plain = self.only_rows(r)
        if present(r):
            skip_text(r)  # event_id
        if present(r):
            place.commit_time = read_long(r)
            if not 0 <= place.commit_time <= LATEST:
                raise ValueError("a commit time that is none")
        if present(r):
            outcome = read_byte(r)
            if outcome & 1 or outcome > LAST_OUTCOME:
                raise ValueError("an outcome that the schema does not have")
        place.changes = r.at
        place.plain = place.plain and fragno == 0 and last_frag and kind == TRANSACTION and outcome != VOID
        return 0

    cdef bint only_rows(self, Reader r) except -1:
        """Go past the metadata; whether it lets an event be nothing but its rows."""
        cdef Py_ssize_t start = r.at
        cdef Py_ssize_t size
        cdef const char *known = self.metadata
        skip_map(r)
        size = r.at - start
        if size != len(self.metadata) or memcmp(known, &r.data[start], size) != 0:
            r.at = start
            found = self.headers.metadata(r)
            self.rows_only = found.get("snapshot") not in EDGE_NAMES
            self.ours = found.get(SCHEMA) == FINGERPRINT
            self.metadata = PyBytes_FromStringAndSize(<const char *>&r.data[start], size)
        return self.rows_only


cdef Messages part(Places places, Py_ssize_t first, Py_ssize_t end):
    cdef Messages messages = Messages.__new__(Messages)
    if not 0 <= first < end <= places.count:
        raise IndexError("messages that the batch does not have")
    messages.places = places
    messages.first = first
    messages.end = end
    return messages


cdef bint follows(Place* before, Place* after) noexcept:
    """`connector.log.reading.event_range.follows`, and in one partition."""
    return (
        before.plain
        and after.plain
        and after.partition == before.partition
        and after.offset > before.offset
        and after.epoch == before.epoch
        and after.seqno == before.seqno + 1
        and after.prev_seqno == before.seqno
        and after.last_barrier == before.newest_barrier
    )


cdef bint next_gtid(const unsigned char[::1] data, Place* before, Place* after) except -1:
    """Whether one GTID is of the same source as another, and counts one more."""
    cdef Py_ssize_t size = before.gtid_end - before.gtid
    cdef Py_ssize_t at = before.gtid_end
    cdef long long number = 0, next_number = 0
    while at > before.gtid and data[at - 1] != c":":
        at -= 1
    cdef Py_ssize_t source = at - before.gtid
    if source == 0 or source >= after.gtid_end - after.gtid or size - source > 18 or size == source:
        return False
    if memcmp(&data[before.gtid], &data[after.gtid], source) != 0 or after.gtid_end - after.gtid - source > 18:
        return False
    for at in range(at, before.gtid_end):
        if not c"0" <= data[at] <= c"9":
            return False
        number = number * 10 + data[at] - c"0"
    for at in range(after.gtid + source, after.gtid_end):
        if not c"0" <= data[at] <= c"9":
            return False
        next_number = next_number * 10 + data[at] - c"0"
    return next_number == number + 1


cdef Py_ssize_t opening(const unsigned char[::1] data, Py_ssize_t start) except -1:
    """How many bytes stand before a message's body."""
    cdef const char *prefix = PREFIX
    if data[start] == 0:
        return REGISTERED_SIZE
    if memcmp(prefix, &data[start], PREFIX_SIZE) != 0:
        raise ValueError("not a fragment of this schema")
    return PREFIX_SIZE


cdef bint is_unknown(Reader r) except -1:
    """Go past the shard; whether it is `#UNKNOWN`."""
    cdef const char *unknown = UNKNOWN
    cdef long long size = read_long(r)
    cdef Py_ssize_t start = r.at
    skip(r, size)
    return size == len(UNKNOWN) and memcmp(unknown, &r.data[start], <size_t>size) == 0


cdef object numbers(object column, str kind):
    """The numbers of an Arrow column without nulls, as memory."""
    if column.null_count or {"q": "int64", "i": "int32"}[kind] != str(column.type):
        raise LogDamaged(f"a batch has {column.type} where numbers are to be")
    return memoryview(column.buffers()[1]).cast("B").cast(kind)[column.offset : column.offset + len(column)]


cdef long long checksum(const unsigned char[::1] data, Py_ssize_t at) except -1:
    return <long long>data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]


cdef object damaged(Exception error, str topic, Place* place):
    return LogDamaged(
        f"a message of the log is damaged: {error}",
        hint="nothing was applied of it; see whether the topic is written by anything but the producer",
        at=f"{topic}-{place.partition}@{place.offset}",
    )
