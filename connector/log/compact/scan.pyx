"""Verifies the messages of a batch and decodes their headers, for `EventSequencer`.

Every checksum is verified here, so later code can trust the bytes of the changes. Headers are kept as C structs,
without a Python object each. Whole events of one range stay together as `Messages`, by the rules of
`connector.log.reading.event_range`; a `Message` with a `FragmentHeader` is made on demand. Nothing is copied: both keep
Spark's Arrow buffer alive.
"""

import zlib
from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from connector.errors import LogDamaged
from connector.log.format.avro_reader cimport Reader, read_block, read_byte
from connector.log.format.change_header cimport skip_change
from connector.log.format.header_reader cimport HeaderDecoder, RawHeader, Span, read_header, text_of
from connector.log.format.message cimport Block, Message
from connector.log.format import framing
from connector.log.reading.event_range import EDGES, EventRange
from connector.log.transaction.load import PART, PASSED_OVER, Part, for_others
from connector.log.ids import UNKNOWN_SHARD
from connector.log.rules import BrokenRule, Rule, damaged

cdef str FINGERPRINT = framing.FINGERPRINT
cdef bytes PREFIX = framing.SINGLE_OBJECT + bytes.fromhex(FINGERPRINT)
cdef str LOAD_FINGERPRINT = framing.LOAD_FINGERPRINT
cdef bytes LOAD_PREFIX = framing.SINGLE_OBJECT + bytes.fromhex(LOAD_FINGERPRINT)
cdef Py_ssize_t PREFIX_SIZE = 10
cdef Py_ssize_t REGISTERED_SIZE = 5  # where a registry numbers the schema: a zero byte and the number
cdef str SCHEMA = framing.SCHEMA
cdef Py_ssize_t CRC_SIZE = 4
cdef bytes UNKNOWN = UNKNOWN_SHARD.encode()
cdef object EDGE_NAMES = EDGES
cdef object ROWS_ONLY = (None, Part.ROWS)
cdef object PARTS_OF_OTHERS = PASSED_OVER

cdef enum:
    TRANSACTION = 0  # connector.log.ids.Kind
    DDL = 1
    LOAD = 4
    VOID = 2  # connector.log.ids.Outcome
    STATEMENT = 0  # branch of a change


cdef class ScannedBatch:
    """The headers and positions of one Arrow buffer's messages."""

    def __cinit__(self, Py_ssize_t count):
        self.items = <ScannedMessage*>calloc(count or 1, sizeof(ScannedMessage))
        if self.items is NULL:
            raise MemoryError
        self.count = count

    def __dealloc__(self):
        free(self.items)

    cdef ScannedMessage* at(self, Py_ssize_t index) except NULL:
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
        """The messages from index `first` on."""
        return part(self.scanned, self.first + first, self.end)

    @property
    def any_for_others(self):
        """True if some are of a load for other targets."""
        cdef Py_ssize_t index
        for index in range(self.end - self.first):
            if self.at(index).for_others:
                return True
        return False

    def for_others(self, Py_ssize_t index):
        """True if the message at an index is of a load for other targets."""
        return bool(self.at(index).for_others)

    def message(self, Py_ssize_t index):
        """The message at an index."""
        return self.one(index)

    def header(self, Py_ssize_t index):
        """The header of the message at an index."""
        return self.one(index).header

    def event_range(self):
        """The messages as a range for `EventSequencer`."""
        cdef Py_ssize_t count = self.end - self.first
        cdef ScannedMessage* message = self.at(0)
        cdef ScannedMessage* last = self.at(count - 1)
        return EventRange(
            message.partition,
            self.seqnos(0, count),
            message.header.prev_seqno,
            message.header.last_barrier,
            self.scanned.offsets[self.first : self.end],
            last.offset + 1,
            self.one(count - 1).header,
            self,
        )

    def seqnos(self, Py_ssize_t first, Py_ssize_t end):
        """The seqnos of the messages from `first` to before `end`: a range where each is the next of the log."""
        cdef long long begin = self.at(first).header.seqno
        cdef Py_ssize_t index
        if self.at(end - 1).header.seqno - begin == end - 1 - first:
            return range(begin, begin + end - first)
        found = array("q", bytes(8 * (end - first)))
        cdef long long[::1] numbers = found
        for index in range(end - first):
            numbers[index] = self.at(first + index).header.seqno
        return found

    def offsets(self, Py_ssize_t first, Py_ssize_t end):
        """The offsets of the messages from `first` to before `end`."""
        return self.scanned.offsets[self.first + first : self.first + end]

    def rows(self, Py_ssize_t first, Py_ssize_t end):
        """The number of rows of the messages from `first` to before `end`, by their headers."""
        cdef long long rows = 0
        cdef Py_ssize_t index
        for index in range(first, end):
            rows += self.at(index).header.rows
        return rows

    def commit_time(self, Py_ssize_t index):
        """The commit time of the message at an index; 0 where it is not known."""
        return self.at(index).header.commit_time

    def commit_times(self, Py_ssize_t first, Py_ssize_t end):
        """The commit times of the messages from `first` to before `end` as `array('q')`; 0 where one is not known."""
        cdef Py_ssize_t index
        found = array("q", bytes(8 * (end - first)))
        cdef long long[::1] times = found
        for index in range(end - first):
            times[index] = self.at(first + index).header.commit_time
        return found

    def gtids(self, Py_ssize_t first, Py_ssize_t end):
        """The GTIDs of the messages from `first` to before `end`, in runs whose numbers grow as their seqnos do.

        Returns:
            For each run its first GTID, the index of that message, and the number of messages.
        """
        cdef ScannedMessage* message
        cdef ScannedMessage* before = NULL
        cdef Py_ssize_t index, begin = first
        cdef const unsigned char[::1] data = self.scanned.block.data
        found = []
        for index in range(first, end):
            message = self.at(index)
            if before is not NULL and (not message.header.gtid.start or not in_step(data, before, message)):
                found.append((gtid, begin, index - begin))
                before = NULL
            if not message.header.gtid.start:
                continue
            if before is NULL:
                begin = index
                try:
                    gtid = text_of(data, message.header.gtid)
                except ValueError as error:
                    raise located(error, self.scanned.scanner.topic, message) from error
            before = message
        if before is not NULL:
            found.append((gtid, begin, end - begin))
        return found

    cdef ScannedMessage* at(self, Py_ssize_t index) except NULL:
        if index < 0 or index >= self.end - self.first:
            raise IndexError("a message that is not among these")
        return self.scanned.at(self.first + index)

    cdef Message one(self, Py_ssize_t index):
        cdef ScannedMessage* message = self.at(index)
        cdef Message m = Message.__new__(Message)
        m.block = self.scanned.block
        m.partition = message.partition
        m.offset = message.offset
        m.start = message.start
        m.changes = message.changes
        m.end = message.end
        m.for_others = message.for_others
        try:
            m.header = self.scanned.scanner.headers.header(m.block.data, &message.header)
        except ValueError as error:
            raise located(error, self.scanned.scanner.topic, message) from error
        return m


cdef class Scanner:
    """Reads the headers of one topic's messages.

    Args:
        topic: named in errors.
        interval: 0: messages stay together where they directly follow each other; else see `event_range.joins`.
        target: the ID of the target that they are applied to, as that of `load.for_others`.
        statements: true: an event with a change that was logged as a statement stays alone.
    """

    def __init__(self, topic, interval=0, target=None, *, statements=False):
        self.topic = topic
        self.interval = interval
        self.target = target
        self.statements = statements
        self.headers = HeaderDecoder()
        self.metadata = b"\0"
        self.rows_only = True
        self.of_others = self.passed_over = False
        self.own_schema = False
        self.load_schema = False

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
        cdef ScannedBatch scanned = ScannedBatch(count)
        cdef Reader r = Reader.__new__(Reader)
        cdef ScannedMessage* message
        _, ends_buffer, data_buffer = values.buffers()
        scanned.block = Block(memoryview(data_buffer).cast("B") if data_buffer is not None else b"")
        scanned.scanner = self
        scanned.offsets = numbers(batch.column("offset"), "q")
        partitions = numbers(batch.column("partition"), "i")
        ends = memoryview(ends_buffer).cast("B").cast("q" if str(values.type) == "large_binary" else "i")
        ends = ends[values.offset : values.offset + count + 1]
        whole = memoryview(scanned.block.data)
        r.data = scanned.block.data
        found = []
        for index in range(count):
            message = scanned.at(index)
            message.partition = partitions[index]
            message.offset = scanned.offsets[index]
            message.start = ends[index]
            message.end = <Py_ssize_t>ends[index + 1] - CRC_SIZE
            try:
                if message.end - message.start < PREFIX_SIZE:
                    raise BrokenRule(Rule.NOT_A_FRAGMENT)
                body = message.start + opening(r.data, message.start)
                if zlib.crc32(whole[body : message.end]) != checksum(r.data, message.end):
                    raise BrokenRule(Rule.WRONG_CHECKSUM)
                r.at = body
                r.end = message.end
                self.scan_header(message, r)
                if r.data[message.start] == 0 and not (self.own_schema or self.load_schema):
                    raise BrokenRule(Rule.OTHER_SCHEMA)
                if (message.header.kind == LOAD) != self.of_load(r.data, message.start):
                    raise BrokenRule(Rule.KIND_OF_ANOTHER_SCHEMA)
            except (ValueError, IndexError) as error:
                raise located(error, self.topic, message) from error
            if index and not joins(scanned.at(first), scanned.at(index - 1), message, self.interval):
                found.append(part(scanned, first, index))
                first = index
        found.append(part(scanned, first, count))
        return found

    cdef int scan_header(self, ScannedMessage* message, Reader r) except -1:
        """Read a header, and derive what `joins` compares."""
        cdef RawHeader* header = &message.header
        read_header(r, header)
        message.changes = r.at
        message.newest_barrier = header.last_barrier
        message.barrier = header.kind == DDL or is_unknown(r.data, header.shard)
        if message.barrier:
            message.newest_barrier = header.seqno
        self.read_metadata(r.data, header)
        message.for_others = header.kind == LOAD and self.of_others
        message.plain = (
            (self.passed_over if message.for_others else self.rows_only)
            and header.fragno == 0
            and header.last_frag
            and (header.kind == TRANSACTION or header.kind == LOAD)
            and header.outcome != VOID
        )
        if self.statements and message.plain and message.barrier and has_statement(r):
            message.plain = False  # such an event is a barrier: the log does not tell its tables
        return 0

    cdef bint of_load(self, const unsigned char[::1] data, Py_ssize_t start) except -1:
        """Return whether a message is written with the schema of loads."""
        cdef const char *prefix = LOAD_PREFIX
        return self.load_schema if data[start] == 0 else memcmp(prefix, &data[start], PREFIX_SIZE) == 0

    cdef int read_metadata(self, const unsigned char[::1] data, RawHeader* header) except -1:
        """Note what the metadata says, unless it is the same as before."""
        cdef Py_ssize_t size = header.metadata.end - header.metadata.start
        cdef const char *known = self.metadata
        if size != len(self.metadata) or memcmp(known, &data[header.metadata.start], size) != 0:
            found = self.headers.metadata(data, header.metadata)
            self.rows_only = found.get("snapshot") not in EDGE_NAMES and found.get(PART) in ROWS_ONLY
            self.of_others = for_others(found, self.target)
            self.passed_over = found.get(PART) in PARTS_OF_OTHERS
            self.own_schema = found.get(SCHEMA) == FINGERPRINT
            self.load_schema = found.get(SCHEMA) == LOAD_FINGERPRINT
            self.metadata = PyBytes_FromStringAndSize(<const char *>&data[header.metadata.start], size)
        return 0


cdef bint has_statement(Reader changes) except -1:
    """Return whether there is a statement among the changes of a message."""
    cdef Reader r = Reader.__new__(Reader)
    cdef long long count
    r.data, r.at, r.end = changes.data, changes.at, changes.end
    while count := read_block(r):
        for _ in range(count):
            if read_byte(r) == STATEMENT:
                return True
            r.at -= 1
            skip_change(r)
    return False


cdef Messages part(ScannedBatch scanned, Py_ssize_t first, Py_ssize_t end):
    cdef Messages messages = Messages.__new__(Messages)
    if not 0 <= first < end <= scanned.count:
        raise IndexError("messages that the batch does not have")
    messages.scanned = scanned
    messages.first = first
    messages.end = end
    return messages


cdef bint joins(
    ScannedMessage* first, ScannedMessage* before, ScannedMessage* after, long long interval
) noexcept:
    """`connector.log.reading.event_range.joins` for plain events, and in one partition."""
    if not (
        before.plain
        and after.plain
        and after.partition == before.partition
        and after.offset > before.offset
        and after.header.epoch == before.header.epoch
        and after.header.prev_seqno == before.header.seqno
        and after.header.last_barrier == before.newest_barrier
    ):
        return False
    if interval == 0 or first.barrier:
        return after.header.seqno == before.header.seqno + 1
    return (
        after.header.seqno > before.header.seqno
        and not after.barrier
        and after.header.seqno // interval == before.header.seqno // interval
    )


cdef bint in_step(const unsigned char[::1] data, ScannedMessage* first, ScannedMessage* second) except -1:
    """Return whether two GTIDs are of one source, and as far from each other as their seqnos."""
    cdef Span before = first.header.gtid
    cdef Span after = second.header.gtid
    cdef Py_ssize_t size = before.end - before.start
    cdef Py_ssize_t at = before.end
    cdef long long number = 0, next_number = 0
    while at > before.start and data[at - 1] != c":" and data[at - 1] != c"-":  # MySQL's, MariaDB's
        at -= 1
    cdef Py_ssize_t source = at - before.start
    if source == 0 or source >= after.end - after.start or size - source > 18 or size == source:
        return False
    if memcmp(&data[before.start], &data[after.start], source) != 0 or after.end - after.start - source > 18:
        return False
    for at in range(at, before.end):
        if not c"0" <= data[at] <= c"9":
            return False
        number = number * 10 + data[at] - c"0"
    for at in range(after.start + source, after.end):
        if not c"0" <= data[at] <= c"9":
            return False
        next_number = next_number * 10 + data[at] - c"0"
    return next_number - number == second.header.seqno - first.header.seqno


cdef Py_ssize_t opening(const unsigned char[::1] data, Py_ssize_t start) except -1:
    """The number of bytes before a message's body."""
    cdef const char *prefix = PREFIX
    cdef const char *of_load = LOAD_PREFIX
    if data[start] == 0:
        return REGISTERED_SIZE
    if memcmp(prefix, &data[start], PREFIX_SIZE) != 0 and memcmp(of_load, &data[start], PREFIX_SIZE) != 0:
        raise BrokenRule(Rule.OTHER_SCHEMA if memcmp(prefix, &data[start], 2) == 0 else Rule.NOT_A_FRAGMENT)
    return PREFIX_SIZE


cdef bint is_unknown(const unsigned char[::1] data, Span shard) except -1:
    """Return whether the shard is `#UNKNOWN`."""
    cdef const char *unknown = UNKNOWN
    cdef Py_ssize_t size = shard.end - shard.start
    return size == len(UNKNOWN) and memcmp(unknown, &data[shard.start], <size_t>size) == 0


cdef object numbers(object column, str kind):
    """The numbers of an Arrow column without nulls, as memory."""
    if column.null_count or {"q": "int64", "i": "int32"}[kind] != str(column.type):
        raise LogDamaged(f"a column of a batch is {column.type} instead of {kind}")
    return memoryview(column.buffers()[1]).cast("B").cast(kind)[column.offset : column.offset + len(column)]


cdef long long checksum(const unsigned char[::1] data, Py_ssize_t at) except -1:
    return <long long>data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]


cdef object located(Exception error, str topic, ScannedMessage* message):
    return damaged(
        error,
        hint="nothing of it was applied; check whether anything but the producer writes to the topic",
        at=f"{topic}-{message.partition}@{message.offset}",
    )
