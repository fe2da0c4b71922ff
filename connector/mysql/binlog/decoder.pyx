# cython: cdivision=True
"""Events into pieces of transactions: the loop, what every event has in common, and the frequent events.

Formats are those of MySQL's `libs/mysql/binlog/event/*.h`. Rare events are decoded in Python; what else is rare stands
beside it: MariaDB's events, those of old logs, XA.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

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
    IN_USE,
    MARIADB,
    MARIADB_LAST,
    PARTIAL_UPDATE_ROWS,
    QUERY,
    RELAY_LOG,
    ROTATE,
    ROWS_QUERY,
    START_V3,
    STOP,
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
from connector.mysql.memory cimport Cursor, damaged, left, little, little4, little8, take
from connector.mysql.binlog.old_events cimport old_event, old_start, translate
from connector.mysql.binlog.events.tables cimport Table, Tables
from connector.mysql.binlog.xa_events cimport decided, prepared
from connector.log.format.crc32 cimport crc32
from connector.log.transaction.source_position cimport SourcePosition, source_position

import uuid

from connector import metrics
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events import mariadb
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.events.gtid_tagged import tagged_gtid
from connector.mysql.binlog.events.heartbeat import heartbeat
from connector.mysql.binlog.events.payload import payload as open_payload
from connector.mysql.binlog.events.query import query as read_query
from connector.mysql.binlog.events.query import may_want, told
from connector.mysql.binlog.events.rows_query import rows_query
from connector.mysql.binlog.events.statements import HINT, PARTS, Statements
from connector.ddl.mariadb import NOT_LOGGED, brings_virtual
from connector.errors import ConnectorError, CorruptBinlog, Unsupported
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT
from connector.log.ids import Outcome

cdef object COMMIT = Outcome.COMMIT
cdef object ROLLBACK = Outcome.ROLLBACK
cdef dict NOTHING = {}

cdef enum:
    UPDATE = 1  # connector.log.ids.Action


cdef class Decoder:
    """Turns frames into pieces.

    Args:
        frames: where events come from.
        filters: a `connector.mysql.binlog.events.query.Wanted`.
        naming: names the columns that the log does not.
        piece_bytes: encoded bytes after which a piece is handed out.
        service: the name under which ignored events are counted.
        file: the log file's name, until a Rotate event tells it.
        known: GTIDs of transactions whose rows are not decoded; None: there is none.
    """

    def __init__(self, Frames frames, filters, naming, Py_ssize_t piece_bytes, service, str file="", known=None):
        if piece_bytes < 1:
            raise ValueError("a piece has at least one byte")
        self.frames = frames
        self.group = TransactionBuffer(filters.ignored_servers, filters.spared)
        self.filters = filters
        self.naming = naming
        self.known = known
        self.service = service
        self.piece_bytes = piece_bytes
        self.file = file
        self.start = self.offset = 4
        self.reported = -1
        self.streamed = isinstance(frames, PacketFrames)
        self.tables = Tables(filters, naming)
        self.statements = Statements(filters)
        self.pending = self.statements.pending
        self.query_bytes = filters.rows_query_bytes
        self.largest = filters.largest_event
        self.untold = dict(filters.untold)
        self.begun = b""
        self.uuids = {}
        self.created = {}
        self.found = []

    @property
    def position(self):
        """Where the next event begins."""
        return SourcePosition(self.file, self.offset)

    @property
    def inside(self):
        """Whether a transaction has begun and not ended."""
        return self.group.announced or self.group.open or bool(self.pending)

    def decode(self):
        """What can be made of what was received, about two pieces' bytes at most; empty when that is nothing.

        Raises:
            ConnectorError: with file, position and type of the event that it is about; from then on at every call.
        """
        cdef Cursor event
        if self.failure is not None:
            raise self.failure
        self.produced = 0
        try:
            while self.produced < self.piece_bytes:
                if self.blocks is not None:
                    self._block()
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
            if not self.found:
                raise
        found = self.found
        self.found = []
        return found

    cdef bint _next(self, Cursor* event) except -1:
        """The next event: of a compressed transaction first."""
        self.type = 0
        while self.inner is not None:
            if self.inner.next(event):
                return True
            if not self.inner.receive(self.payload, 0):
                if self.inner.left:
                    damaged(b"a compressed transaction ends inside an event")
                self.inner = self.payload = None
        self.start = self.offset  # also of an event that is refused before it is stepped over
        return self.frames.next(event)

    cdef SourcePosition _here(self):
        """The place behind this event."""
        if self.here is None or self.here_offset != self.offset:
            self.here = source_position(self.file, self.offset)
            self.here_offset = self.offset
        return self.here

    cdef SourcePosition _started(self):
        """The place where this event begins: mostly the end of the one before it."""
        if self.here is not None and self.here_offset == self.start:
            return self.here
        return source_position(self.file, self.start)

    cdef int _event(self, Cursor* body) except -1:
        cdef const uint8_t* all = body.data
        cdef Event event
        if self.old:
            return old_event(self, body)
        read_header(body, &event)
        self.type = event.type
        if event.size != body.end - all:
            damaged(b"an event's length is not that of its packet")
        if self.inner is None:
            if event.type == ROTATE and event.flags & ARTIFICIAL:
                return self._artificial_rotate(&event, all, body)
            if event.type == FORMAT_DESCRIPTION:
                return self._format(&event, all, body)
            if not self.formatted:
                if event.type == START_V3:
                    return old_start(self, all, body)
                damaged(b"an event comes before the format description")
            if self.checksum:
                if left(body) < 4:
                    damaged(b"an event has no room for its checksum")
                body.end -= 4
                if crc32(all, body.end - all, 0) != little4(body.end):
                    damaged(b"an event's checksum is wrong")
            if event.type == HEARTBEAT or event.type == HEARTBEAT_V2:
                return self._heartbeat(&event, body)
            self._move(&event)
            if self.dialect is not None:
                translate(self, all, body)
        return self._dispatch(&event, body)

    cdef int _move(self, Event* event) except -1:
        """Step to the event's end, which must follow the last one's; the log writes it modulo 2^32.

        MariaDB writes no places inside of a transaction (since 11.4), and streams on behind what we have without a word.
        """
        if self._unnamed():
            self.start = self.offset
            self.offset += event.size
            return 0
        if self._replicas(event):
            return 0
        if event.flags & ARTIFICIAL or (event.log_pos == 0 and not self.mariadb):
            return 0
        if self.mariadb and self.streamed and event.log_pos and not self.group.announced and not self.group.open:
            self.offset = mariadb.start_of(event.log_pos, event.size, self.offset)
        self.start = self.offset
        self.offset += event.size
        if event.log_pos == 0:
            return 0
        if <uint32_t>self.offset != event.log_pos and not self._cached(event):
            if self.relay:
                return self._relayed(event)
            raise CorruptBinlog(
                "the binary log jumps: an event does not begin where the last one ended",
                ends=event.log_pos, size=event.size,
            )
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
            return self._query(event, body)
        if type == XID:
            take(body, 8)
            return self._finish(event.timestamp, COMMIT)
        if WRITE_ROWS_V1 <= type <= DELETE_ROWS_V1:
            return self._rows(event, type - WRITE_ROWS_V1, False, False, body)
        if type == ROTATE:
            return self._rotate(event, body)
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
            return self._part(type, body)
        if type == EXECUTE_LOAD_QUERY:
            return self._load(event, body)
        if type == ROWS_QUERY and self.query_bytes:
            take(body, 1)
            return self._rows_query(body)
        event_types.refuse(type, bool(event.flags & IGNORABLE), rest(body), self.service)
        return 0

    # What begins and ends a transaction

    cdef int _gtid(self, uint8_t type, Cursor* body) except -1:
        """Flags, source's uuid, number; the logical clock; commit times in µs, 7 bytes, the first says if two."""
        cdef const uint8_t* p = take(body, 25)
        cdef int64_t last_committed = 0
        cdef int64_t sequence_number = 0
        cdef int64_t committed = 0
        cdef object gtid = None
        cdef object metadata = NOTHING
        self._between()
        if type == GTID:
            gtid = f"{self._uuid(p + 1)}:{<int64_t>little8(p + 17)}"
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
        return self.group.announce(
            self._started(), gtid, last_committed, sequence_number, committed, metadata
        )

    cdef object _uuid(self, const uint8_t* p):
        cdef bytes raw = p[:16]
        text = self.uuids.get(raw)
        if text is None:
            text = self.uuids[raw] = str(uuid.UUID(bytes=raw))
        return text

    cdef int _tagged(self, Cursor* body) except -1:
        self._between()
        gtid = tagged_gtid(rest(body))
        self.tables.skipping = self.known is not None and gtid.gtid in self.known
        return self.group.announce(
            self._started(), gtid.gtid, gtid.last_committed, gtid.sequence_number, gtid.commit_time, gtid.metadata
        )

    cdef int _between(self) except -1:
        if self.group.announced or self.group.open:
            damaged(b"a transaction begins before the last one has ended")
        if self.pending:
            damaged(b"values for a statement come without it")
        return 0

    cdef int _query(self, Event* event, Cursor* body) except -1:
        """BEGIN is decoded here, every other statement in Python."""
        cdef Cursor ahead = body[0]
        cdef const uint8_t* p = take(&ahead, 13)
        cdef uint32_t thread_id = little4(p)
        take(&ahead, <Py_ssize_t>little(p + 11, 2) + p[8] + 1)
        if self.query_bytes:
            self.begun = rest(body)
        if left(&ahead) == 5 and memcmp(ahead.data, b"BEGIN", 5) == 0:
            if self.group.open:
                damaged(b"a transaction begins before the last one has ended")
            self.cache = self.offset
            return self.group.begin(self._started(), event.server_id, thread_id)
        query = read_query(rest(body), event.timestamp, event.flags, self.statements.charset, mariadb=self.mariadb)
        if self.old and self.statements.one_shot(query):
            if self.group.start is None:
                self.group.start = self._started()
            return 0
        if query.control == "commit" or query.control == "rollback":
            return self._finish(event.timestamp, COMMIT if query.control == "commit" else ROLLBACK)
        if query.xid:
            return decided(self, event, thread_id, query)
        if self.untold and not query.control:
            query.statement.options.update({**self.untold, **query.statement.options})
        if self.mariadb and not query.control:
            query.statement.options[DIALECT] = MARIADB_DIALECT
            if brings_virtual(query.statement) and may_want(query, self.filters):
                self.virtual = query.statement.sql[:200]
        if not query.control and self.naming.statement(query, self.group.gtid, self._here()):
            self.tables.renamed()
            self.redefined = True
        return self._statement(event, thread_id, query, None)

    cdef int _part(self, uint8_t type, Cursor* body) except -1:
        """What a statement was executed with comes before it, and before what else its transaction may have."""
        self.statements.part(type, rest(body))
        if self.pending and self.group.start is None:
            self.group.start = self._started()
        return 0

    cdef int _load(self, Event* event, Cursor* body) except -1:
        """LOAD DATA: a QUERY with the file that it reads."""
        cdef Cursor ahead = body[0]
        query, blocks = self.statements.loading(rest(body), event.timestamp, event.flags)
        return self._statement(event, little4(take(&ahead, 4)), query, blocks)

    cdef int _statement(self, Event* event, uint32_t thread_id, object query, object blocks) except -1:
        """A statement; outside of a transaction it is one of its own."""
        cdef bint alone = not self.group.open
        cdef bint definition = not query.control
        cdef object statement
        cdef object parts
        if alone:
            self.group.begin(self._started(), event.server_id, thread_id)
        if self.group.ignored:
            self.statements.leave_out()
            return self._finish(event.timestamp, COMMIT) if alone else 0
        statement = self.statements.of(query)
        parts = () if statement is None else (statement,)
        if definition and statement is not None:
            parts = self.filters.definitions(statement, query.schemas)
            parts = [self.filters.published(part, self.naming.known) for part in parts]
        if definition and self.group.changed() and not self.statements.keeps:
            raise Unsupported(
                "a definition follows changes of its own transaction", hint=HINT, sql=query.statement.sql[:200]
            )
        if statement is not None and blocks is not None:
            self.blocks = blocks
            self.loading = statement, alone, event.timestamp
            return 0
        for part in parts:
            if part is not None:
                self._add(part, definition)
        return self._finish(event.timestamp, COMMIT) if alone else 0

    cdef int _block(self) except -1:
        """The next block of a file, then the statement that reads it."""
        block = next(self.blocks, None)
        if block is not None:
            return self._add(block, False)
        statement, alone, timestamp = self.loading
        self.blocks = self.loading = None
        self._add(statement, False)
        return self._finish(timestamp, COMMIT) if alone else 0

    cdef int _add(self, object statement, bint definition) except -1:
        self.group.statement(told(statement), definition)
        if self.group.size >= self.piece_bytes:
            self.produced += self.group.size
            self._cut()
        return 0

    cdef int _cut(self) except -1:
        """Hand out what the transaction has gathered."""
        piece = self.group.cut()
        if piece is not None:
            self.found.append(piece)
        return 0

    cdef int _finish(self, uint32_t timestamp, object outcome) except -1:
        if not self.group.open:
            damaged(b"a transaction ends that has not begun")
        if self.pending:
            damaged(b"values for a statement come without it")
        if self.group.xid is not None:
            damaged(b"an XA transaction ends without having been prepared")
        if self.group.ignored:
            self._count_ignored()
        self.produced += self.group.size
        self.found.append(self.group.finish(self._here(), timestamp, outcome))
        self.reported = self.offset
        self.bare = False
        if self.redefined:
            self.redefined = False
            self.found.append(self.naming.taken())
        return 0

    cdef int _count_ignored(self) except -1:
        metrics.ignored_transactions.labels(self.service, str(self.group.server_id)).inc()
        return 0

    # Rows

    cdef int _table_map(self, Event* event, Cursor* body) except -1:
        """5.1 wrote rows of tables without transactions so, without BEGIN and COMMIT; later servers do not."""
        if not self.group.open:
            if not self.early or self.group.announced:
                damaged(b"a table is described outside of a transaction")
            self.bare = True
            self.group.begin(self._started(), event.server_id, 0)
        if self.group.ignored:
            return 0
        if self.tables.skipping and not self.group.announced:
            self.tables.skipping = False  # it was for one with a GTID, and this has none
        return self.tables.describe(body)

    cdef int _rows_query(self, Cursor* body) except -1:
        """The text of the statement whose rows follow."""
        cdef Py_ssize_t size = left(body)
        text = body.data[: min(size, self.query_bytes)]
        return self.group.ask(rows_query(text, size, self.begun, self.query_bytes))

    cdef int _rows(self, Event* event, int action, bint second, bint diffs, Cursor* body) except -1:
        cdef bint last = ends_statement(body)
        if not self.group.open:
            damaged(b"rows stand outside of a transaction")
        if not self.group.ignored:
            self._decode_rows(action, second, diffs, body)
            if last and self.group.query is not None:
                self.group.ask(None)
        return self._finish(event.timestamp, COMMIT) if self.bare and last else 0

    cdef int _decode_rows(self, int action, bint second, bint diffs, Cursor* body) except -1:
        cdef Table table
        table = self.tables.of_rows(body, second, action)
        if self.virtual is not None and self.tables.after and table is not None:
            raise Unsupported(NOT_LOGGED, hint="SET GLOBAL binlog_row_image = FULL", definition=self.virtual)
        while table is not None:
            self.group.rows(table, action, self.tables.before, self.tables.after, diffs, body, self.piece_bytes)
            if self.group.size >= self.piece_bytes:
                self.produced += self.group.size
                self._cut()
            if not left(body):
                break
        return 0

    # The log itself

    cdef bint _replicas(self, const Event* event) noexcept:
        """Whether a replica wrote this event into its own log for itself, where that counts the source's places.

        Replicas before 5.1 do not mark what ends their files.
        """
        if event.flags & RELAY_LOG:
            return True
        return self.relay and event.server_id == self.replica and (event.type == STOP or event.type == ROTATE)

    cdef bint _cached(self, const Event* event) noexcept:
        """Whether the event tells its place in the cache that held its transaction, as servers before 5.0.34 wrote
        it: the cache has what stands behind BEGIN."""
        return self.early and self.group.open and <uint32_t>(self.offset - self.cache) == event.log_pos

    cdef int _relayed(self, Event* event) except -1:
        """In a replica's log: go to the source's place, which is further on where the replica left something out."""
        cdef int64_t place = (self.start & ~<int64_t>0xFFFFFFFF) + event.log_pos
        if place < self.start:
            place += <int64_t>1 << 32
        self.offset = place
        self.start = place - event.size
        return 0

    cdef int _format(self, Event* event, const uint8_t* all, Cursor* body) except -1:
        """The checksum of this event is computed with the in-use flag cleared."""
        cdef bytes whole = all[: body.end - all]
        if event.flags & IN_USE:
            whole = whole[:17] + bytes([whole[17] & ~IN_USE]) + whole[18:]
        described = format_description(whole)
        self.checksum = described.checksum
        self.dialect = described.dialect
        self.early = described.early
        if not self.formatted:
            self.relay = event.flags & RELAY_LOG
            self.replica = event.server_id
        elif event.log_pos == 0 and not self.streamed:
            self.relay = True  # only a replica copies the format of another server's file
        self.formatted = True
        self.mariadb = mariadb.is_mariadb(whole)
        if self.file:
            self.created[self.file] = event.timestamp
        if self.group.announced or self.group.open:
            if not (event.flags & ARTIFICIAL or event.log_pos == 0):
                damaged(b"a transaction is cut off by a new format description")
        else:
            self.tables.forget(self.mariadb)
        return 0 if event.log_pos == 0 and not self._unnamed() else self._move(event)

    cdef bint _unnamed(self) noexcept:
        """Whether it is a replica's log that has not told the source's file: the places are those of this file."""
        return self.relay and not self.named

    cdef int _artificial_rotate(self, Event* event, const uint8_t* all, Cursor* body) except -1:
        """The server says which file comes now; it may come before the format that tells whether it has a checksum.

        In a file that names another one, so does a replica: also one before 5.1, which marks its files by nothing else.
        """
        if left(body) >= 12 and crc32(all, body.end - all - 4, 0) == little4(body.end - 4):
            body.end -= 4
        offset = <int64_t>little8(take(body, 8))
        file = rest(body)
        if not self.streamed and file != self.file.encode(errors="replace"):
            self.relay = True
        return self._to(offset, file)

    cdef int _rotate(self, Event* event, Cursor* body) except -1:
        if self._replicas(event):
            return 0  # it names the replica's next file
        self._between()
        self._to(<int64_t>little8(take(body, 8)), rest(body))
        return self._pass()

    cdef int _to(self, int64_t offset, bytes file) except -1:
        self.named = True
        self.file = file.decode(errors="replace")
        self.start = self.offset = offset
        self.here = None
        return 0

    cdef int _pass(self) except -1:
        """Tell that the source went on without anything for us, once a place."""
        if self.reported != self.offset:
            self.reported = self.offset
            self.found.append(PositionAdvance(self._here(), None))
        return 0

    cdef int _heartbeat(self, Event* event, Cursor* body) except -1:
        """The source is there, and so far: also past what it left out because we have it."""
        cdef int64_t offset
        file, place = heartbeat(
            rest(body), event.type == HEARTBEAT_V2, event.log_pos, self.offset, mariadb=self.mariadb
        )
        offset = place
        if self.group.announced or self.group.open:
            return 0
        if file != self.file or offset < self.offset:
            damaged(b"a heartbeat goes back")
        self.start = self.offset
        self.offset = offset
        return self._pass()

    cdef int _payload(self, Cursor* body) except -1:
        """A transaction's events, compressed; they have no checksums of their own."""
        if self.inner is not None:
            damaged(b"a compressed transaction inside another")
        self.payload = open_payload(rest(body))
        self.inner = EventFrames(256 << 10, False, self.largest)
        return 0


cdef bint ends_statement(const Cursor* body) noexcept:
    """The flag STMT_END_F of a rows event: 2 bytes of flags stand behind 6 of the table id."""
    return left(body) > 6 and body.data[6] & 1
