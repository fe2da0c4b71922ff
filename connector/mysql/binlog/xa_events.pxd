from libc.stdint cimport uint32_t

from connector.mysql.binlog.decoder cimport Decoder
from connector.mysql.binlog.event cimport Event
from connector.mysql.memory cimport Cursor

cdef int decided(Decoder decoder, Event* event, uint32_t thread_id, object query) except -1
cdef int prepared(Decoder decoder, Event* event, Cursor* body) except -1
