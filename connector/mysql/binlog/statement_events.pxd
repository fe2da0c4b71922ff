# Statements in the log.

from libc.stdint cimport uint8_t

from connector.mysql.binlog.decoder cimport Decoder
from connector.mysql.binlog.event cimport Event
from connector.mysql.memory cimport Cursor

cdef int query_event(Decoder decoder, Event* event, Cursor* body) except -1
cdef int part_event(Decoder decoder, uint8_t type, Cursor* body) except -1
cdef int load_event(Decoder decoder, Event* event, Cursor* body) except -1
cdef int next_block(Decoder decoder) except -1
