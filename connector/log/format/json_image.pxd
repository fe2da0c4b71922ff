# Row images as objects of JSON.

from connector.log.format.avro_reader cimport Reader
from connector.log.format.text cimport Text


cdef class JsonColumns:
    cdef Py_ssize_t width
    cdef list names  # of each column `"name":`
    cdef bytes whole, single  # per column: a text is an integer; a double was a float


cdef JsonColumns json_columns(object layout)
cdef bint put_image(Text* out, Reader r, JsonColumns columns, bytes present) except -1
