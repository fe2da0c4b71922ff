from connector.log.format.avro_reader cimport Reader
from connector.log.format.header_reader cimport HeaderDecoder, RawHeader
from connector.log.format.message cimport Block, Message


cdef struct ScannedMessage:
    Py_ssize_t start  # of the message in its block
    Py_ssize_t changes
    Py_ssize_t end
    int partition
    long long offset
    RawHeader header
    long long newest_barrier  # of the event itself, or before it
    bint barrier
    bint plain  # a whole event in one fragment, nothing but rows
    bint for_others  # of a load for other targets: its rows are left out


cdef class ScannedBatch:
    cdef ScannedMessage* items
    cdef Py_ssize_t count
    cdef Block block
    cdef object offsets
    cdef Scanner scanner
    cdef ScannedMessage* at(self, Py_ssize_t index) except NULL


cdef class Messages:
    cdef ScannedBatch scanned
    cdef Py_ssize_t first
    cdef Py_ssize_t end
    cdef ScannedMessage* at(self, Py_ssize_t index) except NULL
    cdef Message one(self, Py_ssize_t index)


cdef class Scanner:
    cdef readonly str topic
    cdef long long interval
    cdef HeaderDecoder headers
    cdef object target  # its ID, or None
    cdef bint statements
    cdef bytes metadata  # the bytes of the last map
    cdef bint rows_only  # that map allows a plain event
    cdef bint of_others  # that map is of a load for other targets
    cdef bint passed_over  # that map allows a plain event of one
    cdef bint own_schema  # that map names this version's schema
    cdef bint load_schema  # that map names the schema of loads
    cdef int scan_header(self, ScannedMessage* message, Reader r) except -1
    cdef bint of_load(self, const unsigned char[::1] data, Py_ssize_t start) except -1
    cdef int read_metadata(self, const unsigned char[::1] data, RawHeader* header) except -1
