# cython: cdivision=True
"""Applies a table's rule to rows: Avro `Row` records (schemas/fragment.avsc) without dropped columns, with masked values.

The binary log's decoder and the initial load produce the same records, so a rule has the same result for both. Tables
without a rule have no `RowTransform`.
"""

import hmac

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from connector.log.format.varint cimport TRUNCATED, read_varint
from connector.mysql.memory cimport (
    BYTES_TAG,
    DOUBLE_TAG,
    LONG_TAG,
    NULL_TAG,
    STRING_TAG,
    Cursor,
    Out,
    damaged,
    left,
    little8,
    overrun,
    put_block,
    put_byte,
    put_count,
    put_raw,
    release,
    take,
)

cpdef enum Does:
    KEEP = 0
    DROP = 1
    FIX = 2  # one value in every row
    HASH = 3  # HMAC-SHA256 in hexadecimal digits
    CUT = 4  # the first characters
    ZERO_TO_NULL = 5  # of a date that is 0000-00-00

cdef enum:
    UPDATE = 1  # connector.log.ids.Action
    ARRAY = 2  # an image: the union's second branch
    DATE = 10  # characters of a date


cdef class RowTransform:
    """The compiled rule of one table.

    Args:
        layout: the table as it is published.
        parts: for each column of the source's table the operation, a limit, and the value of FIX in Avro.
        key: the key of HASH.
    """

    def __cinit__(self, layout, list parts, bytes key):
        self.parts = <Part*>calloc(max(len(parts), 1), sizeof(Part))
        if self.parts == NULL:
            raise MemoryError
        self.layout = layout
        self.width = len(parts)
        self.key = key
        self.values = []
        for i, (does, limit, value) in enumerate(parts):
            self.parts[i].does, self.parts[i].limit = does, limit
            self.values.append(value)
            self.parts[i].value, self.parts[i].size = <const uint8_t*>(<bytes>value), len(value)
            self.kept += does != DROP
            self.changes = self.changes or does != KEEP

    def __dealloc__(self):
        free(self.parts)

    cpdef tuple rows(self, int action, bytes data, bytes ends, bytes before, bytes after):
        """Transforms rows.

        Args:
            action: the action of the rows.
            data: records, one after the other.
            ends: 8 bytes per record with its end in `data`.
            before, after: a bit for each column in the images; empty: all columns.

        Returns:
            The same four. All are empty if no column is left: an update whose after image has only dropped columns.
        """
        cdef Cursor row
        cdef Out out, new_ends
        cdef uint64_t end
        cdef const uint8_t* old = <const uint8_t*>before if before else NULL
        cdef const uint8_t* new = <const uint8_t*>after if after else NULL
        if not self.changes:
            return data, ends, before, after
        images = self.present(before), self.present(after)
        if action == UPDATE and after and images[1] and not any(images[1]):
            return b"", b"", b"", b""
        memset(&out, 0, sizeof(Out))
        memset(&new_ends, 0, sizeof(Out))
        row.data = data
        row.end = row.data + len(data)
        try:
            while left(&row):
                self.image(&row, &out, old)
                self.image(&row, &out, new)
                end = <uint64_t>out.size
                put_raw(&new_ends, &end, 8)
            if new_ends.size != len(ends):
                damaged(b"the number of rows has changed")
            return out.data[: out.size], new_ends.data[: new_ends.size], *images
        finally:
            release(&out)
            release(&new_ends)

    cdef bytes present(self, bytes bits):
        """The bits of the kept columns; empty: all are in the image."""
        cdef int i
        cdef int nth = 0
        cdef bint every = True
        if not bits:
            return b""
        kept = bytearray((self.kept + 7) // 8)
        for i in range(self.width):
            if self.parts[i].does == DROP:
                continue
            if bits[i >> 3] >> (i & 7) & 1:
                kept[nth >> 3] |= 1 << (nth & 7)
            else:
                every = False
            nth += 1
        return b"" if every else bytes(kept)

    cdef int image(self, Cursor* row, Out* out, const uint8_t* present) except -1:
        """Transforms an image: null, or an array in one block."""
        cdef int there = 0
        cdef int kept = 0
        cdef int i
        cdef uint8_t branch = take(row, 1)[0]
        put_byte(out, branch)
        if branch != ARRAY:
            return 0
        for i in range(self.width):
            if present == NULL or present[i >> 3] >> (i & 7) & 1:
                there += 1
                kept += self.parts[i].does != DROP
        if there and number(row) != there:
            damaged(b"an image has another number of values than columns")
        if kept:
            put_count(out, kept)
        for i in range(self.width):
            if present == NULL or present[i >> 3] >> (i & 7) & 1:
                self.value(&self.parts[i], row, out)
        if take(row, 1)[0]:
            damaged(b"an image has a second block")
        return put_byte(out, 0)

    cdef int value(self, Part* part, Cursor* row, Out* out) except -1:
        """Transforms a value."""
        cdef const uint8_t* start = row.data
        cdef const uint8_t* text = NULL
        cdef Py_ssize_t size = 0
        cdef uint8_t tag = take(row, 1)[0]
        if tag == LONG_TAG:
            number(row)
        elif tag == DOUBLE_TAG:
            take(row, 8)
        elif tag == STRING_TAG or tag == BYTES_TAG:
            size = number(row)
            text = take(row, size)
        elif tag != NULL_TAG:
            damaged(b"a value has an unknown tag")
        if part.does == DROP:
            return 0
        if part.does == FIX:
            return put_raw(out, part.value, part.size)
        if text != NULL:
            if part.does == HASH:
                return self.hashed(text, size, part.limit, out)
            if part.does == CUT:
                return put_block(out, tag, text, beginning(text, size, part.limit, tag == STRING_TAG))
            if part.does == ZERO_TO_NULL and size >= DATE and memcmp(text, b"0000-00-00", DATE) == 0:
                return put_byte(out, NULL_TAG)
        return put_raw(out, start, row.data - start)

    cdef int hashed(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t digits, Out* out) except -1:
        """Writes the first hexadecimal digits of a value's HMAC."""
        cdef bytes text = hmac.digest(self.key, data[:size], "sha256").hex().encode()
        return put_block(out, STRING_TAG, <const uint8_t*>text, digits)


cdef Py_ssize_t beginning(const uint8_t* text, Py_ssize_t size, Py_ssize_t limit, bint utf8) noexcept:
    """The bytes of the first `limit` characters; of the first `limit` bytes if not text."""
    cdef Py_ssize_t i
    cdef Py_ssize_t characters = 0
    for i in range(size):
        if not utf8 or text[i] & 0xC0 != 0x80:
            if characters == limit:
                return i
            characters += 1
    return size


cdef int64_t number(Cursor* row) except? -1:
    """Avro's long."""
    cdef long long value = 0
    cdef int used = read_varint(row.data, left(row), &value)
    if used == TRUNCATED:
        overrun(left(row) + 1, left(row))
    if used <= 0:
        damaged(b"a number is too long")
    row.data += used
    return value
