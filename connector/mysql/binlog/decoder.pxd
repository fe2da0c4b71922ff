# The decoder's state, for those who decode what is rare: they are called by it, and call it back.

from libc.stdint cimport int64_t, uint8_t, uint32_t

from connector.mysql.binlog.event cimport Event
from connector.mysql.binlog.frames cimport Frames
from connector.mysql.binlog.transaction_buffer cimport TransactionBuffer
from connector.mysql.memory cimport Cursor
from connector.mysql.binlog.events.tables cimport Tables
from connector.log.transaction.source_position cimport SourcePosition

cdef class Decoder:
    cdef Frames frames
    cdef Frames inner  # the events of a compressed transaction
    cdef object payload  # what `inner` is fed from
    cdef TransactionBuffer group
    cdef object filters, service, naming, known
    cdef bint redefined  # a definition of the transaction has changed what tables are
    cdef Py_ssize_t piece_bytes
    cdef readonly str file
    cdef int64_t start, offset  # of the event; behind it
    cdef int64_t reported
    cdef SourcePosition here  # of `offset`, made when wanted
    cdef int64_t here_offset
    cdef bint formatted, checksum
    cdef bint mariadb  # a MariaDB wrote this file
    cdef object virtual  # MariaDB's definition, since the start, of a column that it leaves out of partial images
    cdef bint streamed  # by a server, which may leave out what we have
    cdef bint old  # a log before version 4: without format descriptions, checksums and places
    cdef bint relay, named  # a replica's log, whose places are the source's once that has told its file's name
    cdef uint32_t replica  # the server id of who wrote the file
    cdef bint early  # by a server of 5.0 or 5.1
    cdef int64_t cache  # where the transaction's cache begins: behind its BEGIN
    cdef bint bare  # the transaction is one statement's rows, without BEGIN and COMMIT
    cdef object dialect  # where events are not written as today
    cdef bytes translated  # the newest of them, as today's
    cdef uint8_t type
    cdef Tables tables
    cdef object statements
    cdef dict pending  # values for the next statement
    cdef Py_ssize_t largest  # bytes that a compressed event may have, expanded
    cdef Py_ssize_t query_bytes  # of the text of a statement whose rows follow; 0: it is not wanted
    cdef bytes begun  # the body of the newest QUERY event, where such texts are wanted
    cdef object blocks  # of a file that the newest statement reads, which are still to be handed out
    cdef object loading  # that statement, and whether it is a transaction of its own
    cdef dict uuids
    cdef public dict created  # when each file was begun, as its format description says
    cdef dict untold  # options of definitions that the server does not log
    cdef list found
    cdef Py_ssize_t produced
    cdef object failure  # what ended the decoding, told when what was found before it is handed out

    cdef bint _next(self, Cursor* event) except -1
    cdef SourcePosition _here(self)
    cdef SourcePosition _started(self)
    cdef int _event(self, Cursor* body) except -1
    cdef int _move(self, Event* event) except -1
    cdef int _dispatch(self, Event* event, Cursor* body) except -1
    cdef int _gtid(self, uint8_t type, Cursor* body) except -1
    cdef object _uuid(self, const uint8_t* p)
    cdef int _tagged(self, Cursor* body) except -1
    cdef int _between(self) except -1
    cdef int _query(self, Event* event, Cursor* body) except -1
    cdef int _part(self, uint8_t type, Cursor* body) except -1
    cdef int _load(self, Event* event, Cursor* body) except -1
    cdef int _statement(self, Event* event, uint32_t thread_id, object query, object blocks) except -1
    cdef int _block(self) except -1
    cdef int _add(self, object statement, bint definition) except -1
    cdef int _cut(self) except -1
    cdef int _finish(self, uint32_t timestamp, object outcome) except -1
    cdef int _count_ignored(self) except -1
    cdef int _table_map(self, Event* event, Cursor* body) except -1
    cdef int _rows_query(self, Cursor* body) except -1
    cdef int _rows(self, Event* event, int action, bint second, bint diffs, Cursor* body) except -1
    cdef int _decode_rows(self, int action, bint second, bint diffs, Cursor* body) except -1
    cdef bint _unnamed(self) noexcept
    cdef bint _replicas(self, const Event* event) noexcept
    cdef bint _cached(self, const Event* event) noexcept
    cdef int _relayed(self, Event* event) except -1
    cdef int _format(self, Event* event, const uint8_t* all, Cursor* body) except -1
    cdef int _artificial_rotate(self, Event* event, const uint8_t* all, Cursor* body) except -1
    cdef int _rotate(self, Event* event, Cursor* body) except -1
    cdef int _to(self, int64_t offset, bytes file) except -1
    cdef int _pass(self) except -1
    cdef int _heartbeat(self, Event* event, Cursor* body) except -1
    cdef int _payload(self, Cursor* body) except -1


cdef inline bytes rest(Cursor* body):
    return body.data[: body.end - body.data]
