# Events of the log itself, and the decoder's position in the log.

from libc.stdint cimport int64_t, uint8_t

from connector.mysql.binlog.decoder cimport Decoder
from connector.mysql.binlog.event cimport Event
from connector.mysql.memory cimport Cursor

cdef bint written_by_replica(Decoder decoder, const Event* event) noexcept
cdef int step(Decoder decoder, Event* event) except -1
cdef int format_event(Decoder decoder, Event* event, const uint8_t* all, Cursor* body) except -1
cdef int artificial_rotate(Decoder decoder, Event* event, const uint8_t* all, Cursor* body) except -1
cdef int rotate(Decoder decoder, Event* event, Cursor* body) except -1
cdef int go_to(Decoder decoder, int64_t offset, bytes file) except -1
cdef int dump_heartbeat_event(Decoder decoder, Event* event, Cursor* body) except -1
