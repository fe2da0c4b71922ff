# cython: cdivision=True
"""Decodes events into batches of transactions: the loop, checks common to all events, GTIDs and rows.

Formats are those of MySQL's `libs/mysql/binlog/event/*.h`. Other events have modules beside this one: the log's own
events, statements, XA, MariaDB's events, old logs. The bodies of rare events are decoded in Python (`events`).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from connector.mysql.binlog.event cimport (
    ANONYMOUS_GTID,
    ARTIFICIAL,
    DELETE_ROWS,
    DELETE_ROWS_V1,
    EXECUTE_LOAD_QUERY,
    FORMAT_DESCRIPTION,
    GTID,
    GTID_TAGGED,
    HEARTBEAT,
    HEARTBEAT_V2,
    IGNORABLE,
    MARIADB,
    MARIADB_LAST,
    PARTIAL_UPDATE_ROWS,
    QUERY,
    ROTATE,
    ROWS_QUERY,
    START_V3,
    TABLE_MAP,
    TRANSACTION_PAYLOAD,
    WRITE_ROWS,
    WRITE_ROWS_V1,
    XA_PREPARE,
    XID,
    Event,
    read_header,
)
from connector.mysql.binlog.frames cimport EventFrames, Frames, PacketFrames
from connector.mysql.binlog.transaction_buffer cimport TransactionBuffer
from connector.mysql.binlog.mariadb_events cimport of_mariadb
from connector.mysql.memory cimport Cursor, damaged, digits_of, left, little, little4, little8, put_digits, take
from connector.mysql.binlog.old_events cimport old_event, old_start, translate
from connector.mysql.binlog.events.tables cimport CapturedTable, Tables
from connector.mysql.binlog.control_events cimport artificial_rotate, dump_heartbeat_event, format_event, rotate, step
from connector.mysql.binlog.statement_events cimport load_event, next_block, part_event, query_event
from connector.mysql.binlog.xa_events cimport prepared
from connector.log.format.crc32 cimport crc32
from connector.log.transaction.source_position cimport SourcePosition, source_position

import uuid

from connector import metrics
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.binlog_statement import RowsHeader, binlog_statement
from connector.mysql.binlog.events.gtid_tagged import tagged_gtid
from connector.mysql.binlog.events.payload import payload as open_payload
from connector.mysql.binlog.events.query import rows_query
from connector.mysql.binlog.events.statements import OLD_LOADS, PARTS, Statements
from connector.ddl.mariadb import FROM_SERVER, FULL_AGAIN, HALF_LOGGED, HALF_REPLACED, NOT_LOGGED, NOT_TOLD, folded
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.ids import Outcome

cdef extern from "Python.h":
    str PyUnicode_FromStringAndSize(const char* text, Py_ssize_t size)

cdef object COMMIT = Outcome.COMMIT
cdef dict NOTHING = {}

cdef enum:
    NUMBER = 20  # digits of 64 bits
    UPDATE = 1  # connector.log.ids.Action


cdef class Decoder:
    """Decodes frames into batches of transactions.

    Args:
        frames: source of events.
        filters: a `connector.mysql.binlog.events.capture_filter.CaptureFilter`.
        resolver: a `ColumnNameResolver`, for tables whose TABLE_MAP does not name the columns.
        batch_bytes: encoded bytes of a transaction after which a batch is handed out.
        service: label of the metrics of ignored events.
        file: the log file's name, until a ROTATE event names it.
        known: GTIDs of transactions whose rows are skipped; None: no rows are.
    """

    def __init__(self, Frames frames, filters, resolver, Py_ssize_t batch_bytes, service, str file="", known=None):
        if batch_bytes < 1:
            raise ValueError("a batch has at least one byte")
        self.frames = frames
        self.buffer = TransactionBuffer(filters.ignored_servers, filters.always_read)
        self.filters = filters
        self.resolver = resolver
        self.known = known
        self.service = service
        self.batch_bytes = batch_bytes
        self.file = file
        self.start = self.offset = 4
        self.reported = -1
        self.streamed = isinstance(frames, PacketFrames)
        self.tables = Tables(filters, resolver)
        self.statements = Statements(filters)
        self.pending = self.statements.pending
        self.query_bytes = filters.rows_query_bytes
        self.largest = filters.largest_event
        self.unlogged_options = dict(filters.unlogged_options)
        self.replays = filters.replays
        self.shows = filters.shows
        self.virtual_tables = filters.virtual_tables
        self.unique_tables = filters.unique_tables
        self.partial = set()
        self.table_maps = {}
        self.format = b""
        self.begin_event = b""
        self.uuids = {}
        self.created = {}
        self.items = []

    @property
    def position(self):
        """Position of the next event."""
        return SourcePosition(self.file, self.offset)

    @property
    def inside(self):
        """True inside of a transaction."""
        return (self.buffer.announced and not self.emptied) or self.buffer.open or bool(self.pending)

    def decode(self):
        """Decodes the events received so far, up to about `batch_bytes` twice.

        Returns:
            Batches, position advances and table definitions, in order; may be empty.

        Raises:
            ConnectorError: with file, position and type of the event; items before it are returned first. Every later
                call raises it again.
        """
        cdef Cursor event
        if self.failure is not None:
            raise self.failure
        self.produced = 0
        try:
            while self.produced < self.batch_bytes:
                if self.blocks is not None:
                    next_block(self)
                elif self._next(&event):
                    self._event(&event)
                else:
                    break
        except ConnectorError as error:
            where = {"file": self.file or None, "pos": self.start if self.file else None}
            if self.type:
                where["event"] = event_types.name(self.type)
            error.where = where | error.where
            self.failure = error
            if not self.items:
                raise
        found = self.items
        self.items = []
        return found

    cdef bint _next(self, Cursor* event) except -1:
        """Reads the next event, first from an open compressed transaction."""
        self.type = 0
        while self.inner is not None:
            if self.inner.next(event):
                return True
            if not self.inner.receive(self.payload, 0):
                if self.inner.left:
                    damaged(b"a compressed transaction ends inside an event")
                self.inner = self.payload = None
        self.start = self.offset  # right for an event that is refused before `step`, too
        return self.frames.next(event)

    cdef SourcePosition _event_end(self):
        """Position after the current event."""
        if self.end_position is None or self.end_position_offset != self.offset:
            self.end_position = source_position(self.file, self.offset)
            self.end_position_offset = self.offset
        return self.end_position

    cdef SourcePosition _event_start(self):
        """Position of the current event, mostly the end of the last one."""
        if self.end_position is not None and self.end_position_offset == self.start:
            return self.end_position
        return source_position(self.file, self.start)

    cdef int _event(self, Cursor* body) except -1:
        cdef const uint8_t* all = body.data
        cdef Event event
        if self.old_format:
            return old_event(self, body)
        read_header(body, &event)
        self.type = event.type
        if event.size != body.end - all:
            damaged(b"an event's length is not that of its packet")
        if self.inner is None:
            if event.type == ROTATE and event.flags & ARTIFICIAL:
                return artificial_rotate(self, &event, all, body)
            if event.type == FORMAT_DESCRIPTION:
                return format_event(self, &event, all, body)
            if not self.formatted:
                if event.type == START_V3:
                    return old_start(self, all, body)
                damaged(b"an event comes before the format description")
            if self.checksum:
                if left(body) < 4:
                    damaged(b"an event has no room for its checksum")
                body.end -= 4
                if crc32(all, body.end - all, 0) != little4(body.end):
                    raise CorruptBinlog("an event's checksum is wrong", checksum=f"{little4(body.end):08x}")
            if event.type == HEARTBEAT or event.type == HEARTBEAT_V2:
                return dump_heartbeat_event(self, &event, body)
            step(self, &event)
            if self.dialect is not None:
                translate(self, all, body)
        return self._handle(&event, body)

    cdef int _handle(self, Event* event, Cursor* body) except -1:
        """Decodes an event. If its type allows it, `leave_out` may take its error."""
        if self.leave_out is None or not event_types.stands_alone(event.type):
            return self._dispatch(event, body)
        try:
            return self._dispatch(event, body)
        except ConnectorError as error:
            return self._left_out(event, error)

    cdef int _left_out(self, Event* event, object error) except -1:
        """Leaves out an event that cannot be read; the values before it were its own if it is a statement."""
        where = {"file": self.file or None, "pos": self.start, "event": event_types.name(event.type)}
        error.where = where | error.where
        self.leave_out(error, self.start, event.size)
        if event.type in event_types.LOADS:
            self.statements.leave_out()
        self.emptied = not self.buffer.open
        return 0

    cdef int _dispatch(self, Event* event, Cursor* body) except -1:
        cdef uint8_t type = event.type
        if WRITE_ROWS <= type <= DELETE_ROWS:
            return self._rows(event, type - WRITE_ROWS, True, False, body)
        if type == TABLE_MAP:
            return self._table_map(event, body)
        if type == GTID or type == ANONYMOUS_GTID:
            return self._gtid(type, body)
        if type == QUERY:
            return query_event(self, event, body)
        if type == XID:
            take(body, 8)
            return self._finish(event.timestamp, COMMIT)
        if WRITE_ROWS_V1 <= type <= DELETE_ROWS_V1:
            return self._rows(event, type - WRITE_ROWS_V1, False, False, body)
        if type == ROTATE:
            return rotate(self, event, body)
        if type == TRANSACTION_PAYLOAD:
            return self._payload(body)
        if type == GTID_TAGGED:
            return self._tagged(body)
        if MARIADB <= type <= MARIADB_LAST:
            return of_mariadb(self, event, body)
        if type == PARTIAL_UPDATE_ROWS:
            return self._rows(event, UPDATE, True, True, body)
        if type == XA_PREPARE:
            return prepared(self, event, body)
        if type in PARTS:
            return part_event(self, type, body)
        if type == EXECUTE_LOAD_QUERY or type in OLD_LOADS:
            return load_event(self, event, body)
        if type == ROWS_QUERY and self.query_bytes:
            take(body, 1)
            return self._rows_query(body)
        event_types.refuse(type, bool(event.flags & IGNORABLE), rest(body), self.service)
        return 0

    # Transactions

    cdef int _gtid(self, uint8_t type, Cursor* body) except -1:
        """GTID: flags, uuid, number; the logical clock; commit times in µs of 7 bytes, with the top bit set if two."""
        cdef const uint8_t* p = take(body, 25)
        cdef int64_t last_committed = 0
        cdef int64_t sequence_number = 0
        cdef int64_t committed = 0
        cdef object gtid = None
        cdef object metadata = NOTHING
        self._check_between_transactions()
        if type == GTID:
            gtid = self._gtid_text(p + 1, little8(p + 17))
        if self.known is not None:
            self.tables.skipping = gtid is not None and gtid in self.known
        if left(body) >= 17 and body.data[0] == 2:
            p = take(body, 17)
            last_committed = <int64_t>little8(p + 1)
            sequence_number = <int64_t>little8(p + 9)
        if left(body) >= 7:
            committed = <int64_t>little(take(body, 7), 7)
            if committed >> 55:
                committed &= (<int64_t>1 << 55) - 1
                metadata = {"original_commit_time": str(little(take(body, 7), 7))}
        return self.buffer.announce(
            self._event_start(), gtid, last_committed, sequence_number, committed, metadata
        )

    cdef str _gtid_text(self, const uint8_t* p, uint64_t number):
        cdef bytes raw = p[:16]
        cdef uint8_t[NUMBER] digits
        cdef int width = digits_of(number, 1)
        if not 0 < number < <uint64_t>1 << 63:
            damaged(b"a GTID with an impossible number")
        prefix = self.uuids.get(raw)
        if prefix is None:
            prefix = self.uuids[raw] = f"{uuid.UUID(bytes=raw)}:"
        put_digits(digits, number, width)
        return prefix + PyUnicode_FromStringAndSize(<const char*>digits, width)

    cdef int _tagged(self, Cursor* body) except -1:
        self._check_between_transactions()
        gtid = tagged_gtid(rest(body))
        self.tables.skipping = self.known is not None and gtid.gtid in self.known
        return self.buffer.announce(
            self._event_start(), gtid.gtid, gtid.last_committed, gtid.sequence_number, gtid.commit_time, gtid.metadata
        )

    cdef int _check_between_transactions(self) except -1:
        if self.emptied and not self.buffer.open:
            self.buffer._clear()
        self.emptied = False
        if self.buffer.announced or self.buffer.open:
            damaged(b"a transaction begins inside another transaction")
        if self.pending:
            damaged(b"values for a statement without the statement")
        return 0

    cdef int _flush(self) except -1:
        """Hands out the changes gathered so far as a batch."""
        batch = self.buffer.flush()
        if batch is not None:
            self.items.append(batch)
        return 0

    cdef int _finish(self, uint32_t timestamp, object outcome) except -1:
        if not self.buffer.open:
            damaged(b"a transaction ends without a beginning")
        if self.pending:
            damaged(b"values for a statement without the statement")
        if self.buffer.xid is not None:
            damaged(b"an XA transaction ends without having been prepared")
        if self.buffer.ignored:
            self._count_ignored()
        self.produced += self.buffer.size
        self.items.append(self.buffer.finish(self._event_end(), timestamp, outcome))
        self.reported = self.offset
        self.without_begin = False
        if self.redefined:
            self.redefined = False
            self.items.append(self.resolver.drain())
        return 0

    cdef int _count_ignored(self) except -1:
        metrics.ignored_transactions.labels(self.service, str(self.buffer.server_id)).inc()
        return 0

    # Rows

    cdef int _table_map(self, Event* event, Cursor* body) except -1:
        """TABLE_MAP. Only 5.1 wrote one outside of a transaction: for tables without transactions, instead of BEGIN."""
        if not self.buffer.open:
            if not self.early_server or self.buffer.announced:
                damaged(b"a table is described outside of a transaction")
            self.without_begin = True
            self.buffer.begin(self._event_start(), event.server_id, 0)
        if self.buffer.ignored:
            return 0
        if self.replays and left(body) >= 6:
            self.table_maps[little(body.data, 6)] = rest(body)
        if self.tables.skipping and not self.buffer.announced:
            self.tables.skipping = False  # set by the GTID of the last transaction; this one has none
        return self.tables.describe(body)

    cdef int _rows_query(self, Cursor* body) except -1:
        """ROWS_QUERY: the text of the statement whose rows follow."""
        cdef Py_ssize_t size = left(body)
        text = body.data[: min(size, self.query_bytes)]
        return self.buffer.set_query(rows_query(text, size, self.begin_event, self.query_bytes))

    cdef int _rows(self, Event* event, int action, bint second, bint diffs, Cursor* body) except -1:
        cdef bint last = ends_statement(body)
        if not self.buffer.open:
            damaged(b"rows outside of a transaction")
        if not self.buffer.ignored and self.replays:
            self._add_binlog(event, action, second, diffs, rest(body))
        elif not self.buffer.ignored:
            self._decode_rows(action, second, diffs, body)
            if last and self.buffer.query is not None:
                self.buffer.set_query(None)
        return self._finish(event.timestamp, COMMIT) if self.without_begin and last else 0

    cdef int _decode_rows(self, int action, bint second, bint diffs, Cursor* body) except -1:
        cdef CapturedTable table
        table = self.tables.of_rows(body, second, action)
        if self.virtual_definition is not None and self.tables.after and table is not None:
            raise Unsupported(
                NOT_LOGGED,
                hint="SET GLOBAL binlog_row_image = FULL",
                definition=self.virtual_definition,
            ).with_file_hint("--ignore leaves the table out")
        if self.virtual_tables is None and self.tables.mariadb and self.tables.after and table is not None:
            raise Unsupported(NOT_TOLD, hint=FROM_SERVER, table=table.layout.name)
        if self.virtual_tables and self.tables.after and table is not None and table.layout.name in self.virtual_tables:
            raise Unsupported(NOT_LOGGED, hint=FULL_AGAIN, table=table.layout.name)
        if self.tables.mariadb and action == UPDATE and self.tables.before and table is not None and not self.shows:
            raise Unsupported(HALF_LOGGED, hint=FULL_AGAIN, table=table.layout.name)
        if (
            self.tables.mariadb and action == UPDATE and self.tables.after and not self.tables.before
            and table is not None and not self.shows and self._half_replaced(table.layout)
        ):
            raise Unsupported(HALF_REPLACED, hint=FULL_AGAIN, table=table.layout.name)
        if self.tables.mariadb and self.tables.after and table is not None:
            self.partial.add(folded(table.layout.name))
        while table is not None:
            self.buffer.rows(table, action, self.tables.before, self.tables.after, diffs, body, self.batch_bytes)
            if self.buffer.size >= self.batch_bytes:
                self.produced += self.buffer.size
                self._flush()
            if not left(body):
                break
        return 0

    cdef bint _half_replaced(self, layout) except -1:
        """True if a REPLACE with MINIMAL may look like an update with FULL_NODUP: all columns are the key's."""
        if len(layout.key) < len(layout.columns):
            return False
        return self.unique_defined or layout.name in self.unique_tables

    cdef int _add_binlog(self, Event* event, int action, bint second, bint diffs, bytes body) except -1:
        """Adds the rows of a captured table as a statement that executes their event."""
        cdef Cursor ahead
        ahead.data = body
        ahead.end = ahead.data + len(body)
        if self.tables.of_rows(&ahead, second, action) is None or not left(&ahead):
            return 0
        header = RowsHeader(event.timestamp, event.server_id, action, second, diffs)
        self.buffer.add_statement(
            binlog_statement(self.format, header, self.table_maps[little(<const uint8_t*>body, 6)], body), False
        )
        if self.buffer.size >= self.batch_bytes:
            self.produced += self.buffer.size
            self._flush()
        return 0

    cdef int _payload(self, Cursor* body) except -1:
        """TRANSACTION_PAYLOAD: the compressed events of a transaction, without checksums of their own."""
        if self.inner is not None:
            damaged(b"a compressed transaction inside another")
        self.payload = open_payload(rest(body))
        self.inner = EventFrames(256 << 10, False, self.largest)
        return 0


cdef bint ends_statement(const Cursor* body) noexcept:
    """True if a rows event has the flag STMT_END_F: 2 bytes of flags follow 6 of the table id."""
    return left(body) > 6 and body.data[6] & 1
