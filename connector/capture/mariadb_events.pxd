from connector.capture.decoder cimport Decoder
from connector.capture.event cimport Event
from connector.capture.memory cimport Cursor

cdef int of_mariadb(Decoder decoder, Event* event, Cursor* body) except -1
