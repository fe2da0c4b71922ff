# The tables that rows belong to, by the ids that TABLE_MAP events give them.

from libc.stdint cimport uint64_t

from connector.mysql.memory cimport Cursor
from connector.mysql.values.row_transform cimport RowTransform
from connector.mysql.values.rows cimport RowCodec

cdef class Table:
    cdef readonly object layout
    cdef readonly RowCodec codec
    cdef readonly RowTransform shape  # what a rule makes of its rows; None: they are as they are
    cdef readonly int wanted
    cdef bint named
    cdef bint hidden  # the first column is a key that the server made
    cdef readonly bytes definition
    cdef dict presences  # bitmap → the same, so that equal ones are one object
    cdef bytes present(self, const unsigned char* bits)

cdef class Tables:
    cdef object filters, naming
    cdef dict ids  # table id → Table
    cdef uint64_t newest_id  # the one that was described or named last, and its table
    cdef Table newest
    cdef dict known  # (bytes of a TABLE_MAP, `Table.hidden`) → Table
    cdef bint mariadb  # the log's server
    cdef bint skipping  # the rows of this transaction are not for us
    cdef int forget(self, bint mariadb) except -1
    cdef bytes before, after  # the columns in the images of the event that `of_rows` was told of; empty: all
    cdef int renamed(self) except -1
    cdef int describe(self, Cursor* body) except -1
    cdef Table of_rows(self, Cursor* body, bint second, int action)
    cdef Table _made(self, bytes definition, bint hidden)
