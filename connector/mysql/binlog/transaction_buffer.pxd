# The transaction that is being read.

from libc.stdint cimport int64_t

from connector.mysql.memory cimport Cursor, Out
from connector.mysql.binlog.events.tables cimport Table
from connector.log.transaction.batch cimport TransactionStart, Rows
from connector.log.transaction.source_position cimport SourcePosition

cdef class TransactionBuffer:
    cdef bint open  # a BEGIN was seen
    cdef bint announced  # a GTID event was seen
    cdef bint given  # its first piece was handed out
    cdef bint ignored  # its server is not for us: nothing of it is kept
    cdef str gtid
    cdef str xid  # of an XA transaction
    cdef SourcePosition start
    cdef object metadata
    cdef int64_t last_committed, sequence_number, commit_time
    cdef int64_t server_id, thread_id
    cdef object ignored_servers, spared  # as the filters have them
    cdef int64_t judged  # the newest server that was looked for among them
    cdef bint unwanted  # whether it is
    cdef bint ddl
    cdef list changes
    cdef Table table  # of the run that is being gathered
    cdef int action
    cdef bytes before, after  # the columns in its images; empty: all
    cdef str query  # the statement that the rows are of, where that is told and wanted
    cdef Out data, ends
    cdef Py_ssize_t size  # encoded bytes that are not handed out yet
    cdef int _clear(self) except -1
    cdef bint _left_out(self) except -1
    cdef Rows _shaped(self, bytes data, bytes ends)
    cdef TransactionStart _begin(self)
    cdef int announce(self, SourcePosition start, str gtid, int64_t last_committed, int64_t sequence_number,
                      int64_t commit_time, object metadata) except -1
    cdef int begin(self, SourcePosition start, int64_t server_id, int64_t thread_id) except -1
    cdef int rows(self, Table table, int action, bytes before, bytes after, bint diffs, Cursor* event,
                  Py_ssize_t piece_bytes) except -1
    cdef int statement(self, object statement, bint definition) except -1
    cdef bint changed(self)
    cdef int ask(self, str query) except -1
    cdef int close_run(self) except -1
    cdef object cut(self)
    cdef object finish(self, SourcePosition end, int64_t timestamp, object outcome)
    cdef object prepared(self, SourcePosition end, int64_t timestamp, bint one_phase)
    cdef object decided(self, SourcePosition end, int64_t timestamp, object outcome)
