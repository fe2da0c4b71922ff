# Received bytes in a growing buffer, cut into packets or events.

from libc.stdint cimport uint8_t

from connector.mysql.memory cimport Cursor

cdef class Frames:
    cdef uint8_t* buffer
    cdef Py_ssize_t capacity, usual
    cdef Py_ssize_t start  # of the bytes not handed out yet
    cdef Py_ssize_t end  # of the received bytes
    cdef bint next(self, Cursor* event) except -1
    cdef int make_space(self) except -1

cdef class EventFrames(Frames):
    cdef bint begun
    cdef Py_ssize_t largest  # size of an event that is accepted
    cdef int header  # bytes of an event header

cdef class PacketFrames(Frames):
    cdef Py_ssize_t scan  # where the next part of a packet larger than 16 MiB begins, from `start`
    cdef Py_ssize_t joined  # bytes of the parts before it
    cdef uint8_t sequence
    cdef bint unwrap(self, const uint8_t* packet, Py_ssize_t size, Cursor* event) except -1

cdef class SemiSyncFrames(PacketFrames):
    pass
