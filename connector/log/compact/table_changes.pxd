# The changes of one table, by key or by row.

from connector.log.compact.merge_partial cimport PartialMerger
from connector.log.format.avro_reader cimport Reader
from connector.log.format.message cimport Block


cdef class Image:
    cdef Block block
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef bint before  # the key existed before the range
    cdef bint after  # and exists now
    cdef Py_ssize_t surplus  # without a key: inserts minus deletes


cdef class Copies:
    cdef list gone
    cdef list there


cdef class TableChanges:
    cdef object layout
    cdef bytes change_header
    cdef Py_ssize_t columns
    cdef Py_ssize_t[::1] key
    cdef Py_ssize_t[::1] ends  # of the values in the newest image; ends[0] is its start
    cdef dict keys
    cdef long long changes
    cdef PartialMerger merger  # None while all images have all columns


cdef TableChanges new_table(object layout, bytes change_header)
cdef long long add_rows(TableChanges table, unsigned char action, Reader r, Block block) except -1
cdef int add_images(TableChanges table, unsigned char action, object images) except -1
