# Tables by the ids of their TABLE_MAP events.

from libc.stdint cimport uint64_t

from connector.mysql.memory cimport Cursor
from connector.mysql.values.row_transform cimport RowTransform
from connector.mysql.values.rows cimport RowCodec

cdef class CapturedTable:
    cdef readonly object layout
    cdef readonly RowCodec codec
    cdef readonly RowTransform transform  # None: no rule changes its rows
    cdef readonly int actions  # a bit for each captured action
    cdef bint named
    cdef bint hidden  # the first column is a generated invisible primary key
    cdef readonly bytes definition
    cdef dict presences  # bitmap → itself, so that equal bitmaps are one object
    cdef bytes present(self, const unsigned char* bits)

cdef class Tables:
    cdef object filters, resolver
    cdef dict ids  # table id → CapturedTable
    cdef uint64_t newest_id  # the table used last
    cdef CapturedTable newest
    cdef dict known  # (bytes of a TABLE_MAP, `CapturedTable.hidden`) → CapturedTable
    cdef bint mariadb  # wrote the log
    cdef bint skipping  # rows of this transaction are not decoded
    cdef int forget(self, bint mariadb) except -1
    cdef bytes before, after  # columns in the images of the last event of `of_rows`; empty: all
    cdef int renamed(self) except -1
    cdef int describe(self, Cursor* body) except -1
    cdef CapturedTable of_rows(self, Cursor* body, bint second, int action)
    cdef CapturedTable _make(self, bytes definition, bint hidden)
