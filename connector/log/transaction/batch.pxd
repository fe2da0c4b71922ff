# Transactions on their way from the reader of the source's log to the encoder.

from libc.stdint cimport int64_t

from connector.log.transaction.source_position cimport SourcePosition

cdef class Rows:
    cdef readonly object layout, action, data
    cdef readonly bytes before, after  # which columns the images have; empty: all
    cdef readonly str query
    cdef readonly Py_ssize_t count
    cdef public object logged  # the records as the source logged them, if `data` has more; None: `data`
    cdef bytes marks  # the ends, as unsigned 64-bit numbers of this machine

cdef class Statement:
    cdef readonly str schema, sql
    cdef readonly object options

cdef class TransactionStart:
    cdef readonly int64_t server_id, thread_id
    cdef readonly str gtid
    cdef readonly int64_t last_committed, sequence_number
    cdef readonly SourcePosition start
    cdef readonly object kind, metadata

cdef class TransactionEnd:
    cdef readonly SourcePosition end
    cdef readonly int64_t commit_time
    cdef readonly object outcome

cdef class TransactionBatch:
    cdef public TransactionStart begin
    cdef public list changes
    cdef public TransactionEnd ending

cdef class PositionAdvance:
    cdef readonly SourcePosition end
    cdef readonly str gtid


cdef inline Rows rows_of(object layout, object action, bytes data, bytes marks, bytes before, bytes after):
    cdef Rows made = Rows.__new__(Rows)
    made.layout = layout
    made.action = action
    made.data = data
    made.marks = marks
    made.before = before
    made.after = after
    made.count = len(marks) // 8
    return made


cdef inline TransactionEnd ending_at(SourcePosition end, int64_t commit_time, object outcome):
    cdef TransactionEnd made = TransactionEnd.__new__(TransactionEnd)
    made.end = end
    made.commit_time = commit_time
    made.outcome = outcome
    return made


cdef inline TransactionBatch batch_of(TransactionStart begin, list changes, TransactionEnd ending):
    cdef TransactionBatch made = TransactionBatch.__new__(TransactionBatch)
    made.begin = begin
    made.changes = changes
    made.ending = ending
    return made
