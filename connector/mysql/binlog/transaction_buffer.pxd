# Changes of the transaction that is being decoded.

from libc.stdint cimport int64_t

from connector.mysql.memory cimport Cursor, Out
from connector.mysql.binlog.events.tables cimport CapturedTable
from connector.log.transaction.batch cimport TransactionStart, Rows
from connector.log.transaction.source_position cimport SourcePosition

cdef class TransactionBuffer:
    cdef bint open  # a BEGIN was seen
    cdef bint announced  # a GTID event was seen
    cdef bint started  # its first batch was handed out
    cdef bint ignored  # by a server of `ignored_servers`: nothing of it is kept
    cdef str gtid
    cdef str xid  # of an XA transaction
    cdef SourcePosition start
    cdef object metadata
    cdef int64_t last_committed, sequence_number, commit_time
    cdef int64_t server_id, thread_id
    cdef object ignored_servers, always_read  # from the filters
    cdef int64_t checked_server  # the last server id that was looked up in `ignored_servers`
    cdef bint server_ignored  # the result
    cdef bint ddl
    cdef list changes
    cdef CapturedTable table  # of the rows being gathered
    cdef int action
    cdef bytes before, after  # the columns in its images; empty: all
    cdef str query  # text of the statement of the rows; None: unknown or not configured
    cdef Out data, ends
    cdef Py_ssize_t size  # encoded bytes not handed out yet
    cdef int _clear(self) except -1
    cdef bint _from_ignored_server(self) except -1
    cdef Rows _transformed(self, bytes data, bytes ends)
    cdef TransactionStart _start(self)
    cdef int announce(self, SourcePosition start, str gtid, int64_t last_committed, int64_t sequence_number,
                      int64_t commit_time, object metadata) except -1
    cdef int begin(self, SourcePosition start, int64_t server_id, int64_t thread_id) except -1
    cdef int rows(self, CapturedTable table, int action, bytes before, bytes after, bint diffs, Cursor* event,
                  Py_ssize_t batch_bytes) except -1
    cdef int add_statement(self, object statement, bint definition) except -1
    cdef bint changed(self)
    cdef int set_query(self, str query) except -1
    cdef int close_rows(self) except -1
    cdef object flush(self)
    cdef object finish(self, SourcePosition end, int64_t timestamp, object outcome)
    cdef object prepared(self, SourcePosition end, int64_t timestamp, bint one_phase)
    cdef object decided(self, SourcePosition end, int64_t timestamp, object outcome)
