"""Encodes transaction batches as numbered fragments.

An event is kept until its end, because only then its shard is known: that of its tables, or `#UNKNOWN`. An event of
more than `shard_bytes` is `#UNKNOWN`, which is always safe, and is returned fragment by fragment; this depends only on
its size, not on its batches. Between two calls the encoder keeps these changes, or those of one fragment. The numbers
advance when an event ends.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from connector.producer.encode.fragment cimport ABSENT, EventHeader, FragmentWriter
from connector.producer.encode.change_headers cimport ChangeHeaders, TableHeaders
from connector.producer.encode.routes cimport Route
from connector.log.format.crc32 cimport crc32
from connector.log.transaction.finished cimport Digest, Finished, digest_of, finished_event
from connector.log.writing.fragment cimport Fragment
from connector.mysql.memory cimport digits_of, put_digits
from connector.log.transaction.batch cimport TransactionStart, TransactionEnd, TransactionBatch, Rows

from connector.producer.encode.row_parts import row_parts
from connector.producer.encode.event import EncodedEvent
from connector.producer.encode.numbering import Sharding
from connector.producer.encode.routes import Routes
from connector.schema import framing as framed
from connector.errors import CorruptBinlog, Unsupported
from connector.log.format import avro
from connector.log.transaction import xa
from connector.log.transaction.load import PART, Part
from connector.log.format.shard import shard_of
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD, Kind

cdef extern from "Python.h":
    str PyUnicode_FromStringAndSize(const char* text, Py_ssize_t size)

cdef Py_ssize_t BATCH_OVERHEAD = 512  # maximum bytes that Kafka's record batch adds to one message
cdef Py_ssize_t LEAST_ROOM = 1024  # minimum bytes of a part of a change: the message's overhead exceeds smaller parts
cdef enum:
    ID_TAIL = 42  # two numbers of 20 digits at most, and what precedes each

cdef object DDL = Kind.DDL
cdef object LOAD = Kind.LOAD
cdef object ROWS = Part.ROWS
cdef str PREPARED = xa.PREPARED
cdef str XID = xa.XID


cdef class Encoder:
    """Encodes one log's events.

    Args:
        service: the service of the log.
        source_id: the source's host:port.
        partitions: number of partitions of the event topic.
        limits: the sizes.
        framing: the first bytes of messages; None: the framing without a registry.
        sharding: the rule of the shards; by default one shard per schema.
    """

    cdef Py_ssize_t shard_bytes, fragment_bytes, message_bytes
    cdef FragmentWriter writer, load_writer
    cdef ChangeHeaders headers
    cdef object routes
    cdef Route route  # the route of the newest event's server and shard
    cdef int64_t since  # the event that must be #UNKNOWN
    cdef object event  # the unfinished event
    cdef int64_t epoch, next, last_barrier
    cdef dict tails
    cdef dict facts  # metadata of every message
    cdef dict load_facts  # of messages of loads
    cdef public object completion  # completes partial images before they are encoded; None: they stay partial

    def __init__(self, *, service, source_id, partitions, limits, framing=None, sharding=None):
        framing = framing or framed()
        sharding = sharding or Sharding()
        self.shard_bytes, self.fragment_bytes, self.message_bytes = limits.shard, limits.fragment, limits.message
        self.writer = FragmentWriter(framing.opening, source_id)
        self.load_writer = FragmentWriter(framing.load_opening, source_id)
        self.facts, self.load_facts = dict(framing.facts), dict(framing.load_facts)
        self.headers = ChangeHeaders(sharding)
        self.since = sharding.since
        self.routes = Routes(service, partitions, self.facts)
        self.tails = {}
        self.last_barrier = NO_SEQNO

    @property
    def open(self):
        """True while an event has begun and not ended."""
        return self.event is not None

    @property
    def next_seqno(self):
        """The unfinished event, or else the next one."""
        return self.next

    def begin(self, numbering):
        """Continue with these numbers; an unfinished event is dropped."""
        self.event = None
        self.epoch = numbering.epoch
        self.next = numbering.next_seqno
        self.tails = dict(numbering.tails)
        self.last_barrier = numbering.last_barrier

    def encode_on(self, list items not None, Py_ssize_t at, Py_ssize_t limit, list fragments not None):
        """Encode batches up to another item, or until their fragments reach a number of bytes.

        Args:
            items: batches, and other items.
            at: index of the first batch.
            limit: the bytes.
            fragments: the list to which fragments are added.

        Returns:
            The index of the first item that is not encoded; the bytes of the fragments that were added.

        Raises:
            As `encode`.
        """
        cdef Py_ssize_t size = 0
        cdef Fragment fragment
        while at < len(items) and size < limit and type(items[at]) is TransactionBatch:
            for fragment in self._completed(items[at]):
                size += len(fragment.value)
                fragments.append(fragment)
            at += 1
        return at, size

    def encode(self, TransactionBatch batch not None):
        """Encode a batch.

        Args:
            batch: the source's next batch. Its rows must not change afterwards.

        Returns:
            The fragments that are ready, perhaps none. The last has `finished` set if the batch ended the event.

        Raises:
            CorruptBinlog: the batches are out of order.
            Unsupported: the metadata of an event leaves no room in a Kafka message.
        """
        return self._completed(batch)

    def encode_logged(self, TransactionBatch batch not None):
        """Encode a batch as the source logged it, to compare its event with the log's: it is not completed."""
        return self._encode(batch)

    cdef list _completed(self, TransactionBatch batch):
        if self.completion is not None:
            if batch.begin is None and self.event is None:
                raise CorruptBinlog("changes outside of a transaction", seqno=self.next)
            batch = self.completion.complete(batch, self.next, self.epoch)
        return self._encode(batch)

    cdef list _encode(self, TransactionBatch batch):
        cdef Fragment last
        if batch.begin is not None:
            if self.event is not None:
                raise CorruptBinlog("a transaction begins within another", start=batch.begin.start, seqno=self.next)
            if batch.ending is not None:
                last = self._small(batch.begin, batch.changes, batch.ending)
                if last is not None:
                    return [last]
            self.event = EncodedEvent(batch.begin, self.fragment_bytes, self.headers, self.headers.shard_of)
        event = self.event
        if event is None:
            raise CorruptBinlog("changes outside of a transaction", seqno=self.next)
        for change in batch.changes:
            event.add(change)
        if event.header is None:
            large = event.size + event.query_bytes > self.shard_bytes
            if batch.ending is None and not large:
                return []
            shard = UNKNOWN_SHARD if large else shard_of(event.shards)
            event.route = self._route(event.begin, shard, event.shards and event.bookkeeping and not large)
            event.header = self._event_header(event.begin, event.route)
        plans = [plan for change in event.held for plan in event.cutter.add(change)]
        event.held.clear()
        cdef list fragments = []
        for plan in plans:
            self._put(event, plan, False, fragments)
        if batch.ending is not None:
            event_id = _end(event.header, event.begin, batch.ending)
            self._put(event, event.cutter.drain(), True, fragments)
            self._finish(fragments[-1], event.begin, batch.ending, event_id, event.digest)
            for layout, rows, size in event.counts:
                self.headers.count_of(layout, rows, size)
        return fragments

    def drain_counts(self):
        """Return (table's name, rows, bytes of their images) of the events that ended since the last call, by layout."""
        return self.headers.drain_counts()

    def marker(self, partition, header):
        """Encode an EPOCH marker for a partition, which voids an unfinished event there.

        Args:
            partition: the partition.
            header: a header of kind EPOCH.

        Returns:
            A fragment without changes that finishes no event.
        """
        event_header = EventHeader(
            header.seqno,
            header.epoch,
            header.kind,
            header.shard,
            header.prev_seqno,
            header.last_barrier,
            header.server_id,
            header.thread_id,
            header.gtid,
            header.last_committed,
            header.sequence_number,
            avro.string_map({**header.metadata, **self.facts}),
        )
        if header.outcome is not None:
            event_header.end(header.event_id, header.commit_time, header.outcome)
        value = self.writer.write(event_header, header.fragno, header.last_frag, header.rows, [])
        return _unfinished(partition, header.shard.encode(), value, header.seqno, header.fragno)

    cdef Fragment _small(self, TransactionStart begin, list changes, TransactionEnd ending):
        """Encode an event of rows that is one fragment, as nearly all are: quicker than `EncodedEvent`, same result.

        Returns None where `EncodedEvent` must encode it.
        """
        cdef Rows change
        cdef TableHeaders table = None
        cdef bytes data, row_header, value
        cdef list row_headers = []
        cdef bytes logged
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t logged_size = 0
        cdef Py_ssize_t encoded = 0
        cdef int64_t rows = 0
        cdef uint32_t check = 0
        cdef str shard = None
        cdef bint several = False
        cdef bint bookkeeping = True
        for item in changes:
            if not isinstance(item, Rows) or not isinstance((<Rows>item).data, bytes):
                return None
            change = item
            if change.query is not None:
                return None
            data = change.data
            table = self.headers.of(change.layout)
            if shard is None:
                shard = table.shard
            elif shard != table.shard:
                several = True
            bookkeeping = bookkeeping and table.bookkeeping
            row_header = table.header(change.action, change.before, change.after)
            row_headers.append(row_header)
            rows += change.count
            size += len(data)
            encoded += len(row_header) + len(data)
            logged = data if change.logged is None else change.logged
            logged_size += len(logged)
            check = crc32(logged, len(logged), check)
        if size > self.shard_bytes or encoded > self.fragment_bytes:
            return None
        cdef Route route = self._route(begin, shard if shard and not several else UNKNOWN_SHARD, bookkeeping and rows > 0)
        cdef EventHeader event = self._event_header(begin, route)
        cdef str event_id = _end(event, begin, ending)
        value = self.writer_of(begin).whole(event, rows, row_headers, changes)
        if not self._fits(value, route):
            return None
        for change in changes:
            self.headers.count(self.headers.of(change.layout), change.count, len(change.data))
        return self._finish(
            _unfinished(route.partition, route.key, value, self.next, 0),
            begin, ending, event_id, digest_of(rows, logged_size, check),
        )

    cdef Route _route(self, TransactionStart begin, str shard, bint bookkeeping):
        cdef bint definition = begin.kind is DDL or (begin.kind is LOAD and begin.metadata[PART] != ROWS)
        if definition or self.next == self.since:
            shard = UNKNOWN_SHARD
        cdef Route route = self.route
        if (
            route is None or route.server_id != begin.server_id or route.shard != shard
            or route.bookkeeping != bookkeeping or route.definition != definition
        ):
            self.route = self.routes(begin.server_id, shard, bookkeeping, definition)
        return self.route

    cdef EventHeader _event_header(self, TransactionStart begin, Route route):
        cdef EventHeader header = EventHeader.__new__(EventHeader)
        header.seqno = self.next
        header.epoch = self.epoch
        header.kind = begin.kind
        header.shard = route.shard
        header.prev_seqno = self.tails.get(route.partition, NO_SEQNO)
        header.last_barrier = self.last_barrier
        header.server_id = begin.server_id
        header.thread_id = begin.thread_id
        header.gtid = begin.gtid
        header.last_committed = begin.last_committed
        header.sequence_number = begin.sequence_number
        header.metadata = avro.string_map(self.facts_of(begin, route)) if begin.metadata else route.metadata
        header.outcome = ABSENT
        return header

    cdef int _put(self, object event, object plan, bint last, list fragments) except -1:
        """Write a planned fragment; several if it is one change that is too large for a message."""
        cdef EventHeader header = event.header
        event.written += plan.rows
        if plan.metadata or event.query_bytes:
            header.metadata = avro.string_map({**self.facts_of(event.begin, event.route), **plan.metadata})
        if plan.size < self.message_bytes:
            value = self.writer_of(event.begin).write(header, event.fragno, last, event.written, plan.items)
            if self._fits(value, event.route):
                fragments.append(self._next(event, value))
                return 0
        return self._put_parts(event, plan, last, fragments)

    cdef int _put_parts(self, object event, object plan, bint last, list fragments) except -1:
        """Write the fragments of a change in parts. The last one has the number of rows and the statement's text."""
        cdef EventHeader header = event.header
        cdef bytes metadata = header.metadata
        (change,) = plan.items  # only a single change is larger than a message
        writer = self.writer_of(event.begin)
        beside = len(writer.write(header, event.fragno, last, event.written, []))
        room = self.message_bytes - BATCH_OVERHEAD - len(event.route.key) - beside
        if room < LEAST_ROOM:
            raise Unsupported(
                f"the metadata in a fragment of {plan.table or 'a statement'} has {beside} bytes: a Kafka message has no room"
                " for a change beside it",
                hint="raise kafka.max_message_bytes, and on the topic max.message.bytes; or lower source.rows_query_bytes",
                seqno=self.next,
                table=plan.table,
                limit=self.message_bytes,
            )
        if plan.metadata:
            header.metadata = avro.string_map(self.facts_of(event.begin, event.route))
        for part, whole in row_parts(change, room):
            if whole:
                header.metadata = metadata
            rows = event.written if whole else event.written - plan.rows
            fragments.append(self._next(event, writer.write(header, event.fragno, last and whole, rows, [part])))
        return 0

    cdef FragmentWriter writer_of(self, TransactionStart begin):
        return self.load_writer if begin.kind is LOAD else self.writer

    cdef dict facts_of(self, TransactionStart begin, Route route):
        """The metadata of an event's fragments."""
        facts = {**route.facts, **begin.metadata}
        return {**facts, **self.load_facts} if begin.kind is LOAD else facts

    cdef bint _fits(self, bytes value, Route route):
        return len(value) + len(route.key) + BATCH_OVERHEAD <= self.message_bytes

    cdef Fragment _next(self, object event, bytes value):
        event.fragno += 1
        return _unfinished(event.route.partition, event.route.key, value, self.next, event.fragno - 1)

    cdef Fragment _finish(self, Fragment last, TransactionStart begin, TransactionEnd ending, str event_id, Digest digest):
        """Finish the event with a fragment, and advance to the next number."""
        cdef int64_t seqno = last.seqno
        if begin.metadata and PREPARED in begin.metadata:
            digest = _known_by_xid(begin, digest)
        last.finished = finished_event(seqno, self.epoch, event_id, begin.gtid, digest, begin.start)
        last.resume = ending.end
        last.commit_time = ending.commit_time
        last.barrier = self.route.barrier
        self.event = None
        self.next = seqno + 1
        self.tails[last.partition] = seqno
        if last.barrier:
            self.last_barrier = seqno
        return last


cdef Fragment _unfinished(int partition, bytes key, bytes value, int64_t seqno, int fragno):
    cdef Fragment fragment = Fragment.__new__(Fragment)
    fragment.partition = partition
    fragment.key = key
    fragment.value = value
    fragment.seqno = seqno
    fragment.fragno = fragno
    return fragment


cdef Digest _known_by_xid(TransactionStart begin, Digest digest):
    """Return the digest of an XA COMMIT, by its xid: when it is read again, its changes are not there."""
    cdef bytes xid = begin.metadata[XID].encode()
    return digest_of(digest.rows, digest.size, crc32(xid, len(xid), 0))


cdef str _end(EventHeader header, TransactionStart begin, TransactionEnd ending):
    """Set how the event ended; returns its event id (`connector.log.transaction.event_id.EventId` as text)."""
    cdef uint8_t[ID_TAIL] tail
    cdef uint8_t* p = tail
    p[0] = b":"
    p = put_digits(p + 1, <uint64_t>ending.end.offset, digits_of(<uint64_t>ending.end.offset, 16))
    p[0] = b";"
    p = put_digits(p + 1, <uint64_t>begin.thread_id, digits_of(<uint64_t>begin.thread_id, 1))
    header.event_id = ending.end.file + PyUnicode_FromStringAndSize(<const char*>tail, p - tail)
    header.timed = True
    header.commit_time = ending.commit_time
    header.outcome = ending.outcome
    return header.event_id
