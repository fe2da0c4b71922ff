# The decoder's state. Modules for the events of one kind take the decoder and change its state.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from connector.mysql.binlog.event cimport Event
from connector.mysql.binlog.frames cimport Frames
from connector.mysql.binlog.transaction_buffer cimport TransactionBuffer
from connector.mysql.memory cimport Cursor
from connector.mysql.binlog.events.tables cimport Tables
from connector.log.transaction.source_position cimport SourcePosition

cdef class Decoder:
    cdef Frames frames
    cdef Frames inner  # events of a compressed transaction; None outside of one
    cdef object payload  # source of the bytes of `inner`
    cdef TransactionBuffer buffer
    cdef object filters, service, resolver, known
    cdef Py_ssize_t batch_bytes
    cdef list items  # decoded, not handed out yet
    cdef Py_ssize_t produced  # bytes of the items of this call of `decode`
    cdef object failure  # the error that ended decoding; raised after `items` are handed out

    # Position in the log
    cdef readonly str file
    cdef int64_t start, offset  # of the current event, and of the next one
    cdef int64_t reported  # the last offset handed out
    cdef SourcePosition end_position  # made from `offset` on demand
    cdef int64_t end_position_offset
    cdef bint streamed  # by a server, which may skip transactions that this replica has
    cdef bint relay  # a replica's relay log: its positions are the source's
    cdef bint source_named  # the relay log has named the source's file
    cdef uint32_t replica_id  # server id of the server that wrote the file
    cdef readonly bint in_use  # the file's flag: its server is writing it, or died while it was

    # Format of the file
    cdef bint formatted, checksum
    cdef bint mariadb  # written by MariaDB
    cdef bytes format  # the last format description
    cdef bint old_format  # before version 4: no format descriptions, no checksums, no reliable positions
    cdef bint early_server  # MySQL 5.0 or 5.1
    cdef object dialect  # layout of events that differ from today's; None: none do
    cdef bytes translated  # the current event in today's layout
    cdef uint8_t type  # of the current event
    cdef Py_ssize_t largest  # bytes of an expanded compressed event
    cdef public dict created  # file -> seconds since 1970 UTC when it was begun, from its format description

    # Transaction
    cdef int64_t cache_start  # offset behind BEGIN, where the transaction's cache begins
    cdef bint without_begin  # rows of one statement, without BEGIN and COMMIT
    cdef bint redefined  # a definition of the transaction has changed tables
    cdef Tables tables
    cdef object virtual_tables  # MariaDB: tables that had a virtual column when the producer began; None: not known
    cdef object unique_tables  # MariaDB: tables that had a unique index besides the primary key when the producer began
    cdef bint unique_defined  # MariaDB: a later definition has a unique index
    cdef set partial  # MariaDB: tables of which after images lacked columns, by `folded` names
    cdef object virtual_definition  # MariaDB: a definition with a virtual column, which partial row images leave out
    cdef dict uuids
    cdef object statements
    cdef dict pending  # values for the next statement
    cdef Py_ssize_t query_bytes  # of a statement's text to keep beside its rows; 0: none
    cdef bytes begin_event  # body of the last QUERY event, if texts are kept
    cdef object blocks  # of a file for LOAD DATA, not added yet
    cdef object load_statement  # (statement, whether it is a transaction by itself, timestamp)
    cdef dict unlogged_options  # options of definitions that the server does not log

    # Reading files
    cdef bint shows  # what is read is only shown
    cdef bint replays  # rows become BINLOG statements, and texts keep their bytes
    cdef dict table_maps  # table id → body of its TABLE_MAP event, for these statements
    cdef public object leave_out  # called with the error of an event that alone is left out; None: no event is
    cdef bint emptied  # an event was left out behind a GTID: perhaps the transaction was no other event

    cdef bint _next(self, Cursor* event) except -1
    cdef SourcePosition _event_end(self)
    cdef SourcePosition _event_start(self)
    cdef int _event(self, Cursor* body) except -1
    cdef int _handle(self, Event* event, Cursor* body) except -1
    cdef int _left_out(self, Event* event, object error) except -1
    cdef int _dispatch(self, Event* event, Cursor* body) except -1
    cdef int _gtid(self, uint8_t type, Cursor* body) except -1
    cdef str _gtid_text(self, const uint8_t* p, uint64_t number)
    cdef int _tagged(self, Cursor* body) except -1
    cdef int _check_between_transactions(self) except -1
    cdef int _flush(self) except -1
    cdef int _finish(self, uint32_t timestamp, object outcome) except -1
    cdef int _count_ignored(self) except -1
    cdef int _table_map(self, Event* event, Cursor* body) except -1
    cdef int _rows_query(self, Cursor* body) except -1
    cdef int _rows(self, Event* event, int action, bint second, bint diffs, Cursor* body) except -1
    cdef int _decode_rows(self, int action, bint second, bint diffs, Cursor* body) except -1
    cdef bint _half_replaced(self, layout) except -1
    cdef int _add_binlog(self, Event* event, int action, bint second, bint diffs, bytes body) except -1
    cdef int _payload(self, Cursor* body) except -1


cdef inline bytes rest(Cursor* body):
    return body.data[: body.end - body.data]
