# Decodes the rows of a table: one C structure per column, and the loop over them.

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from connector.mysql.memory cimport Cursor, Out

cdef struct Codec:
    int kind  # rows.ValueKind
    int size  # bytes of the value or of its length prefix; digits of a fraction; precision
    int scale  # of decimals; bytes to pad to; of a multi-byte set, the most bytes of a character
    bint flag  # integers: unsigned; texts: keep invalid text as bytes; JSON: differences from an absent document
    const uint32_t* alphabet  # of single-byte character sets
    const uint16_t* codes  # of multi-byte character sets
    const uint8_t* labels  # of enum and set, all of them
    const uint32_t* label_ends
    uint32_t label_count

@cython.final
cdef class RowCodec:
    cdef Codec* codecs
    cdef readonly int width
    cdef Py_ssize_t largest
    cdef Out scratch
    cdef readonly int column  # the column being decoded, for error messages; -1: none
    cdef list kept  # memory that the codecs point to
    cdef list python_codecs
    cdef const uint8_t* _keep(self, bytes data) except NULL
    cdef int _labels(self, Codec* codec, tuple labels) except -1
    cdef int value(self, Codec* codec, int i, Cursor* row, Out* out) except -1 nogil
    cdef int compressed(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil
    cdef int text(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil
    cdef int wide(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil
    cdef int image(self, Cursor* event, Out* out) except -1 nogil
    cdef Cursor* documents  # JSON values of the before image, for the differences in the after image
    cdef Py_ssize_t parts(self, Cursor* event, Out* out, Out* ends, int action, Py_ssize_t limit,
                          const uint8_t* before, const uint8_t* after, bint diffs) except -1 nogil
    cdef int part(self, Cursor* event, Out* out, const uint8_t* present, bint kept, bint diffs) except -1 nogil
    cdef const uint8_t* diff_bits(self, Cursor* event) except? NULL nogil
    cdef int patch(self, Codec* codec, int i, Cursor* row, Out* out) except -1 nogil
    cdef Py_ssize_t rows(self, Cursor* event, Out* out, Out* ends, int action, Py_ssize_t limit) except -1 nogil
