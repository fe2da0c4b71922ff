# cython: cdivision=True
"""Converts row images to Avro `Row` records in one pass, without a Python object per value."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from connector.mysql.values.jsontext cimport json_text
from connector.mysql.memory cimport (
    BYTES_TAG,
    STRING_TAG,
    Cursor,
    Out,
    damaged,
    little,
    packed,
    put_block,
    put_byte,
    put_count,
    put_double,
    put_long,
    put_raw,
    release,
    take,
)
from connector.mysql.values.text cimport put_invalid, put_mapped, put_multibyte, put_utf8
from connector.mysql.values.values cimport (
    put_date,
    put_datetime2,
    put_decimal,
    put_either,
    put_enum,
    put_integer,
    put_old_datetime,
    put_old_time,
    put_old_timestamp,
    put_padded,
    put_set,
    put_time2,
    put_timestamp2,
)

from sys import byteorder

from connector.mysql.values.json_diff import patched
from connector.mysql.values.jsontext import text_of
from connector.mysql.compression import column_value
from connector.mysql.values.text import check_codes
from connector.errors import Unsupported

cpdef enum ValueKind:
    INTEGER = 1
    FLOAT = 2
    DOUBLE = 3
    DECIMAL = 4
    YEAR = 5
    DATE = 6
    TIME2 = 7
    DATETIME2 = 8
    TIMESTAMP2 = 9
    OLD_TIME = 10
    OLD_DATETIME = 11
    OLD_TIMESTAMP = 12
    UTF8 = 13
    MAPPED = 14
    WIDE = 15
    MULTIBYTE = 16
    BYTES = 17
    PADDED = 18
    BIT = 19
    ENUM = 20
    SET = 21
    JSON = 22
    EITHER = 23
    COMPRESSED = 64  # added to a text's kind or to BYTES: MariaDB's COMPRESSED, a method byte before each value

cdef enum Act:  # connector.log.ids.Action
    INSERT = 0
    UPDATE = 1
    DELETE = 2


@cython.final
cdef class RowCodec:
    """Decodes the rows of one table.

    Args:
        specs: per column a tuple (kind, size, scale, flag, table or codec name, labels), made by `columns.py`.
        largest: bytes of an expanded compressed value.
    """

    def __cinit__(self, list specs, Py_ssize_t largest=1 << 30):
        cdef Codec* codec
        self.largest = largest
        self.width = len(specs)
        self.codecs = <Codec*>calloc(max(self.width, 1), sizeof(Codec))
        if self.codecs == NULL:
            raise MemoryError
        self.documents = <Cursor*>calloc(max(self.width, 1), sizeof(Cursor))
        if self.documents == NULL:
            raise MemoryError
        self.kept = []
        self.python_codecs = [None] * self.width
        memset(&self.scratch, 0, sizeof(Out))
        for i, (kind, size, scale, flag, charset, labels) in enumerate(specs):
            codec = &self.codecs[i]
            codec.kind, codec.size, codec.scale, codec.flag = kind, size, scale, flag
            kind &= ~COMPRESSED
            if kind == MAPPED:
                if len(charset) != 1024:
                    raise ValueError("the table of a character set has 256 entries")
                codec.alphabet = <const uint32_t*>self._keep(charset)
            elif kind == MULTIBYTE:
                check_codes(charset, scale)
                codec.codes = <const uint16_t*>self._keep(charset)
            elif kind == WIDE:
                self.python_codecs[i] = charset
            elif kind == ENUM or kind == SET:
                self._labels(codec, labels)

    def __dealloc__(self):
        free(self.codecs)
        free(self.documents)
        release(&self.scratch)

    cdef const uint8_t* _keep(self, bytes data) except NULL:
        """Keeps memory as long as this object lives."""
        self.kept.append(data)
        return data

    cdef int _labels(self, Codec* codec, tuple labels) except -1:
        ends = []
        end = 0
        for label in labels:
            end += len(label)
            ends.append(end.to_bytes(4, byteorder))
        codec.labels = self._keep(b"".join(labels))
        codec.label_ends = <const uint32_t*>self._keep(b"".join(ends))
        codec.label_count = len(labels)
        return 0

    cdef Py_ssize_t rows(self, Cursor* event, Out* out, Out* ends, int action, Py_ssize_t limit) except -1 nogil:
        """Decodes rows until the event ends or `out` holds `limit` bytes; returns how many."""
        cdef Py_ssize_t count = 0
        cdef uint64_t end
        while event.data < event.end and out.size < limit:
            if action == INSERT:
                put_byte(out, 0)
            else:
                self.image(event, out)
            if action == DELETE:
                put_byte(out, 0)
            else:
                self.image(event, out)
            end = <uint64_t>out.size
            put_raw(ends, &end, 8)
            count += 1
        return count

    cdef int image(self, Cursor* event, Out* out) except -1 nogil:
        """Decodes one image: a bit per column for NULL, then the other values. Writes an array of all columns."""
        cdef int width = self.width
        cdef const uint8_t* nulls = take(event, (width + 7) // 8)
        cdef int i
        if width == 0:
            damaged(b"a row of a table without columns")
        put_byte(out, 2)  # not null: an array
        put_count(out, width)
        for i in range(width):
            if nulls[i >> 3] >> (i & 7) & 1:
                put_byte(out, 0)
            else:
                self.column = i
                self.value(&self.codecs[i], i, event, out)
        self.column = -1
        return put_byte(out, 0)

    cdef Py_ssize_t parts(self, Cursor* event, Out* out, Out* ends, int action, Py_ssize_t limit,
                          const uint8_t* before, const uint8_t* after, bint diffs) except -1 nogil:
        """Decodes rows of partial images; otherwise as `rows`.

        Args:
            before, after: a bit for each column in the image; NULL: all columns.
            diffs: true if the event is PARTIAL_UPDATE_ROWS.
        """
        cdef Py_ssize_t count = 0
        cdef uint64_t end
        cdef const uint8_t* start
        # A row without any column has no byte. MySQL logs at most one per event.
        while event.data < event.end or (count == 0 and action == INSERT):
            if out.size >= limit:
                break
            start = event.data
            if action == INSERT:
                put_byte(out, 0)
            else:
                self.part(event, out, before, diffs, False)
            if action == DELETE:
                put_byte(out, 0)
            else:
                self.part(event, out, after, False, diffs)
            if event.data == start and event.data < event.end:
                damaged(b"bytes after a row without columns")
            end = <uint64_t>out.size
            put_raw(ends, &end, 8)
            count += 1
        return count

    cdef int part(self, Cursor* event, Out* out, const uint8_t* present, bint kept, bint diffs) except -1 nogil:
        """Decodes an image of some columns, with a NULL bit for each of these. Writes an array of only these.

        Args:
            kept: True: keep the JSON values, for the differences in the after image.
            diffs: true if some JSON values may be differences from the noted values.
        """
        cdef int there = 0
        cdef int nth = 0
        cdef int document = -1
        cdef int i
        cdef const uint8_t* parted = self.diff_bits(event) if diffs else NULL
        for i in range(self.width):
            there += 1 if present == NULL else present[i >> 3] >> (i & 7) & 1
        cdef const uint8_t* nulls = take(event, (there + 7) // 8)
        cdef const uint8_t* start
        put_byte(out, 2)
        if there:
            put_count(out, there)
        for i in range(self.width):
            document += self.codecs[i].kind == JSON
            if kept:
                self.documents[i].data = self.documents[i].end = NULL
            if present != NULL and not present[i >> 3] >> (i & 7) & 1:
                continue
            self.column = i
            if nulls[nth >> 3] >> (nth & 7) & 1:
                put_byte(out, 0)
                if kept:
                    self.documents[i].end = event.data
            elif parted != NULL and self.codecs[i].kind == JSON and parted[document >> 3] >> (document & 7) & 1:
                self.patch(&self.codecs[i], i, event, out)
            else:
                start = event.data
                self.value(&self.codecs[i], i, event, out)
                if kept and self.codecs[i].kind == JSON:
                    self.documents[i].data = start + self.codecs[i].size
                    self.documents[i].end = event.data
            nth += 1
        self.column = -1
        return put_byte(out, 0)

    cdef const uint8_t* diff_bits(self, Cursor* event) except? NULL nogil:
        """Reads the header of an after image in PARTIAL_UPDATE_ROWS (MySQL's `unpack_row`): packed options; if bit 0 is
        set, a bit for each JSON column of the table, also of those not in the image: true if it is a difference."""
        cdef uint64_t options = packed(event)
        cdef int documents = 0
        cdef int i
        if options > 1:
            damaged(b"a row has unknown options")
        if not options:
            return NULL
        for i in range(self.width):
            documents += self.codecs[i].kind == JSON
        return take(event, (documents + 7) // 8)

    cdef int patch(self, Codec* codec, int i, Cursor* row, Out* out) except -1 nogil:
        """Applies the differences of a JSON value to the value before: rare, so in Python."""
        cdef Py_ssize_t size = <Py_ssize_t>little(take(row, codec.size), codec.size)
        cdef const uint8_t* diffs = take(row, size)
        cdef Cursor* before = &self.documents[i]
        if before.end == NULL and codec.flag:
            return put_block(out, BYTES_TAG, diffs, size)
        with gil:
            if before.data == NULL:
                raise Unsupported(
                    "a JSON document is logged as differences from a document that the before image lacks",
                    hint="SET GLOBAL binlog_row_image = FULL, or binlog_row_value_options = ''",
                ).with_file_hint("--ignore leaves the table out")
            text = patched(text_of(before.data[: before.end - before.data]), diffs[:size])
            put_block(out, STRING_TAG, <const uint8_t*>(<bytes>text), len(text))
        return 0

    cdef int value(self, Codec* codec, int i, Cursor* row, Out* out) except -1 nogil:
        cdef int kind = codec.kind
        cdef Py_ssize_t size
        cdef const uint8_t* data
        cdef float single
        cdef double number
        cdef uint32_t bits
        cdef uint64_t wide
        if kind == INTEGER:
            return put_integer(row, out, codec.size, codec.flag)
        if kind >= UTF8 and kind <= PADDED:
            size = <Py_ssize_t>little(take(row, codec.size), codec.size)
            data = take(row, size)
            if kind == UTF8:  # as `text`, without a call
                return put_utf8(out, data, size, codec.flag)
            if kind == BYTES:
                return put_block(out, BYTES_TAG, data, size)
            if kind == PADDED:
                return put_padded(out, data, size, codec.scale)
            return self.text(codec, i, data, size, out)
        if kind == DECIMAL:
            return put_decimal(row, out, codec.size, codec.scale)
        if kind == DATETIME2:
            return put_datetime2(row, out, codec.size)
        if kind == TIMESTAMP2:
            return put_timestamp2(row, out, codec.size)
        if kind == TIME2:
            return put_time2(row, out, codec.size)
        if kind == DATE:
            return put_date(row, out)
        if kind == YEAR:
            data = take(row, 1)
            return put_long(out, 1900 + data[0] if data[0] else 0)
        if kind == DOUBLE:
            wide = little(take(row, 8), 8)
            memcpy(&number, &wide, 8)
            return put_double(out, number)
        if kind == FLOAT:
            bits = <uint32_t>little(take(row, 4), 4)
            memcpy(&single, &bits, 4)
            return put_double(out, single)
        if kind == ENUM:
            return put_enum(out, little(take(row, codec.size), codec.size), codec.labels, codec.label_ends, codec.label_count)
        if kind == SET:
            return put_set(out, little(take(row, codec.size), codec.size), codec.labels, codec.label_ends, codec.label_count)
        if kind == BIT:
            return put_block(out, BYTES_TAG, take(row, codec.size), codec.size)
        if kind == JSON:
            size = <Py_ssize_t>little(take(row, codec.size), codec.size)
            self.scratch.size = 0
            json_text(take(row, size), size, &self.scratch)
            return put_block(out, STRING_TAG, self.scratch.data, self.scratch.size)
        if kind == OLD_DATETIME:
            return put_old_datetime(row, out)
        if kind == OLD_TIMESTAMP:
            return put_old_timestamp(row, out)
        if kind == OLD_TIME:
            return put_old_time(row, out)
        if kind == EITHER:
            return put_either(row, out, codec.size)
        if kind & COMPRESSED:
            size = <Py_ssize_t>little(take(row, codec.size), codec.size)
            return self.compressed(codec, i, take(row, size), size, out)
        return damaged(b"a column has no codec")

    cdef int compressed(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil:
        """Decodes a value of a COMPRESSED column."""
        with gil:
            plain = column_value(data[:size], self.largest)
            data = <const uint8_t*>(<bytes>plain)
            if codec.kind == COMPRESSED + BYTES:
                return put_block(out, BYTES_TAG, data, len(plain))
            return self.text(codec, i, data, len(plain), out)

    cdef int text(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil:
        """Decodes a text of the i-th column from granted bytes."""
        cdef int kind = codec.kind & ~COMPRESSED
        if kind == UTF8:
            return put_utf8(out, data, size, codec.flag)
        if kind == MAPPED:
            return put_mapped(out, data, size, codec.alphabet, codec.flag)
        if kind == MULTIBYTE:
            return put_multibyte(out, data, size, codec.codes, codec.scale, codec.flag)
        return self.wide(codec, i, data, size, out)

    cdef int wide(self, Codec* codec, int i, const uint8_t* data, Py_ssize_t size, Out* out) except -1 nogil:
        """Decodes character sets of two and four bytes with Python's codec: they are rare."""
        with gil:
            try:
                text = data[:size].decode(self.python_codecs[i]).encode()
            except UnicodeDecodeError as error:
                return put_invalid(out, data, size, error.start, codec.flag)
            put_block(out, STRING_TAG, <const uint8_t*>(<bytes>text), len(text))
        return 0
