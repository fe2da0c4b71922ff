from libc.stdint cimport uint8_t

from connector.capture.decoder cimport Decoder
from connector.capture.memory cimport Cursor

cdef int translate(Decoder decoder, const uint8_t* all, Cursor* body) except -1
cdef int old_start(Decoder decoder, const uint8_t* all, Cursor* body) except -1
cdef int old_event(Decoder decoder, Cursor* body) except -1
