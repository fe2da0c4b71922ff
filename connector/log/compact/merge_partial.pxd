# A table whose images lack columns: the state of each row in the range of events.

from connector.log.format.avro_reader cimport Reader
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf

cdef class MergedRow:
    cdef list values  # the bytes of each column's value, None where it is unchanged
    cdef bytes base  # the key that it had before the range; None: it was inserted in the range
    cdef MetadataValues metadata  # of the event that changed it last; None where the target has no metadata columns

cdef class PartialMerger:
    cdef readonly object layout
    cdef MetadataValuesOf metadata_values  # None where the target has no metadata columns
    cdef MetadataValues metadata  # of the newest row's event
    cdef bytes before, after  # the columns of the following images; empty: all
    cdef dict rows  # key → MergedRow: the rows that exist now
    cdef dict touched  # key → MergedRow: the rows that existed before the range
    cdef set gone  # keys that do not exist now
    cdef dict there  # without a key: image → the MetadataValues of each row that was inserted and exists
    cdef dict lost  # without a key: image → number of deleted rows from before the range
    cdef list added  # without a key: inserts with columns absent
    cdef int columns(self, bytes before, bytes after) except -1
    cdef int row(self, unsigned char action, Reader r, MetadataValues metadata) except -1
    cdef bint sealed(self, unsigned char action) except -1
    cdef object drain(self, long long changes)
    cdef list image(self, Reader r, bytes present, bint expected)
    cdef bytes key(self, list values)
    cdef int keyed(self, unsigned char action, list old, list new) except -1
    cdef int counted(self, unsigned char action, list old, list new) except -1
    cdef int came(self, bytes values) except -1
    cdef int went(self, bytes values) except -1
    cdef bytes whole(self, list values, MetadataValues metadata)
    cdef bytes partial(self, list values, MetadataValues metadata, bytes base)
    cdef MergedRow found(self, bytes key, list old)
    cdef object keyed_net(self, long long changes)
