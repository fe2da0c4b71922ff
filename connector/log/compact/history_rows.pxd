# The rows of a table's history.

from connector.log.compact.metadata_values cimport MetadataValues
from connector.log.format.avro_reader cimport Reader
from connector.log.format.json_image cimport JsonColumns
from connector.log.format.text cimport Text


cdef class HistoryRows:
    cdef object name  # of the table
    cdef object layout  # of its history
    cdef dict columns  # layout of the table → JsonColumns
    cdef object ends  # of each row in `rows`
    cdef list events  # MetadataValues, and the number of its rows, which follow each other
    cdef Text rows  # all columns but those of the event
    cdef Text document  # the one that is being written

    cdef int add(self, object layout, unsigned char action, Reader r, bytes before, bytes after,
                 MetadataValues event, long long position) except -1
    cdef int image(self, Reader r, JsonColumns columns, bytes present) except -1
    cdef object drain(self)


cdef HistoryRows new_history(object name)
