from libc.stdint cimport uint8_t

from connector.mysql.binlog.decoder cimport Decoder
from connector.mysql.memory cimport Cursor

cdef int translate(Decoder decoder, const uint8_t* all, Cursor* body) except -1
cdef int old_start(Decoder decoder, const uint8_t* all, Cursor* body) except -1
cdef int old_event(Decoder decoder, Cursor* body) except -1
