from connector.mysql.binlog.decoder cimport Decoder
from connector.mysql.binlog.event cimport Event
from connector.mysql.memory cimport Cursor

cdef int of_mariadb(Decoder decoder, Event* event, Cursor* body) except -1
