"""Converts rows of MySQL's text protocol to Avro `Row` records of schemas/fragment.avsc, as INSERT images.

The protocol: a packet is a length of 3 bytes (little endian), a sequence number, and the payload; one of 2^24-1 bytes
continues in the next packet. A row's payload is a length-encoded string per column, or 0xFB for NULL; 0xFE in a payload
shorter than 9 bytes ends the rows, 0xFF is an error (MySQL Internals, "Text Resultset").
"""

from array import array

from cpython.bytearray cimport PyByteArray_AsString, PyByteArray_Resize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from connector.log.format.varint cimport write_varint
from connector.mysql.memory cimport Out, release
from connector.mysql.values.rows cimport RowCodec
from connector.mysql.values.text cimport is_utf8

from connector.mysql.values.rows import Kind
from connector.errors import CorruptBinlog

cdef int UTF8 = Kind.UTF8

cdef enum:
    FULL_PACKET = 0xFFFFFF
    HEADER = 4
    NO_VALUE = 0xFB
    LENGTH_2 = 0xFC
    LENGTH_3 = 0xFD
    LENGTH_8 = 0xFE
    END = 0xFE
    ERROR = 0xFF
    # The branches of the union on the wire: the index, zigzag.
    AVRO_NULL = 0
    AVRO_LONG = 2
    AVRO_DOUBLE = 4
    AVRO_STRING = 6
    AVRO_BYTES = 8
    NUMBER_TEXT = 64


cdef extern from *:
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1.0


class ServerError(Exception):
    """Raised by `TextRows.decode` when the server answers with an error instead of a row: its code and text."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code = code
        self.text = text


cdef class TextRows:
    """Splits packets and converts rows to Avro.

    Args:
        kinds: a letter per column: `i` integer, `d` double, `s` text in ASCII or UTF-8, `b` bytes, `t` text in the
            character set of its column.
        texts: for each column with a `t` its specification, see `RowCodec`; None for the others. Optional
            without a `t`.
    """

    cdef readonly bint ended
    cdef bytes _kinds
    cdef bytes _pending
    cdef Py_ssize_t _at
    cdef int _sequence
    cdef bytearray _out
    cdef unsigned char* _to
    cdef Py_ssize_t _size, _room
    cdef object _ends
    cdef readonly Py_ssize_t column  # the column being decoded, for error messages
    cdef RowCodec _texts
    cdef Out _text_out

    def __cinit__(self):
        memset(&self._text_out, 0, sizeof(Out))

    def __dealloc__(self):
        release(&self._text_out)

    def __init__(self, str kinds not None, int sequence, texts=()):
        self._kinds = kinds.encode("ascii")
        if set(kinds) - set("idsbt"):
            raise ValueError(f"unknown kinds in {kinds!r}")
        specs = list(texts) or [None] * len(kinds)
        if [kind == "t" for kind in kinds] != [spec is not None for spec in specs]:
            raise ValueError(f"kinds {kinds!r} do not match the texts")
        self._texts = RowCodec([spec or (Kind.BYTES, 0, 0, False, None, ()) for spec in specs])
        self._pending = b""
        self._sequence = sequence & 0xFF
        self._reset()

    @property
    def rows(self):
        """Rows that `drain` would return."""
        return len(self._ends)

    @property
    def size(self):
        """Bytes that `drain` would return."""
        return self._size

    def feed(self, bytes chunk not None):
        """Accepts bytes from the server."""
        self._pending = self._pending[self._at:] + chunk if self._at < len(self._pending) else chunk
        self._at = 0

    def decode(self, Py_ssize_t max_rows, Py_ssize_t max_bytes):
        """Converts packets to rows until a limit is reached, the rows end, or bytes are missing.

        Returns:
            The least number of missing bytes; 0: none are.
        """
        cdef const unsigned char[::1] view = self._pending
        cdef Py_ssize_t length, at
        cdef bytes joined
        while not self.ended and len(self._ends) < max_rows and self._size < max_bytes:
            at = self._at
            if view.shape[0] - at < HEADER:
                return HEADER - (view.shape[0] - at)
            length = view[at] | view[at + 1] << 8 | view[at + 2] << 16
            if view.shape[0] - at < HEADER + length:
                return HEADER + length - (view.shape[0] - at)
            if length == FULL_PACKET:
                missing = self._join(view)
                if missing:
                    return missing
                continue
            self._check_sequence(view[at + 3])
            self._at = at + HEADER + length
            self._packet(view[at + HEADER : self._at])
        return 0

    def drain(self):
        """Returns the rows decoded so far as (data, ends) and forgets them."""
        cdef bytearray data = self._out
        PyByteArray_Resize(data, self._size)
        ends = self._ends
        self._reset()
        return data, ends

    cdef _reset(self):
        self._out = bytearray()
        self._to = <unsigned char*>0
        self._size = 0
        self._room = 0
        self._ends = array("Q")

    cdef Py_ssize_t _join(self, const unsigned char[::1] view) except -1:
        """Decodes a row in several packets, or returns the number of missing bytes."""
        cdef Py_ssize_t at = self._at, length = FULL_PACKET
        cdef int packets = 0
        parts = []
        while length == FULL_PACKET:
            if view.shape[0] - at < HEADER:
                return HEADER - (view.shape[0] - at)
            length = view[at] | view[at + 1] << 8 | view[at + 2] << 16
            if view.shape[0] - at < HEADER + length:
                return HEADER + length - (view.shape[0] - at)
            if view[at + 3] != (self._sequence + packets) & 0xFF:
                raise CorruptBinlog("packets from the source are out of order", expected=(self._sequence + packets) & 0xFF, got=view[at + 3])
            parts.append(view[at + HEADER : at + HEADER + length])
            at += HEADER + length
            packets += 1
        self._sequence = (self._sequence + packets) & 0xFF
        self._at = at
        self._packet(b"".join(parts))
        return 0

    cdef _check_sequence(self, int got):
        if got != self._sequence:
            raise CorruptBinlog("packets from the source are out of order", expected=self._sequence, got=got)
        self._sequence = (self._sequence + 1) & 0xFF

    cdef _packet(self, const unsigned char[::1] payload):
        if payload.shape[0] == 0:
            raise CorruptBinlog("the source sent an empty row")
        if payload[0] == ERROR and payload.shape[0] > 2:
            raise ServerError(int(payload[1]) | int(payload[2]) << 8, bytes(payload[3:]).decode("utf-8", "replace"))
        if payload[0] == END and payload.shape[0] < 9:
            self.ended = True
            return
        try:
            self._row(payload)
        except (IndexError, ValueError) as error:
            raise CorruptBinlog("a row from the source ends inside a value, or a number in it is invalid") from error

    cdef _row(self, const unsigned char[::1] row):
        cdef Py_ssize_t at = 0, column, columns = len(self._kinds), length
        cdef const unsigned char[::1] kinds = self._kinds
        self._need(32)
        self._byte(AVRO_NULL)  # no before image
        self._byte(2)  # an after image, branch 1
        self._long(columns)
        for column in range(columns):
            if row[at] == NO_VALUE:
                at += 1
                self._need(16)
                self._byte(AVRO_NULL)
                continue
            length = self._length(row, &at)
            if length > row.shape[0] - at:
                raise CorruptBinlog("a value of the source is longer than its row", column=column, length=length)
            self._need(length + 32)
            if kinds[column] == b"t":
                self.column = column
                self._charset_text(column, row, at, length)
            elif kinds[column] == b"s":
                self._text(AVRO_STRING, row, at, length)
            elif kinds[column] == b"b":
                self._text(AVRO_BYTES, row, at, length)
            elif kinds[column] == b"i":
                self._integer(row, at, length)
            else:
                self._double(row, at, length)
            at += length
        if at != row.shape[0]:
            raise CorruptBinlog("a row of the source has more values than columns", columns=columns)
        self._byte(0)
        self._ends.append(self._size)

    cdef Py_ssize_t _length(self, const unsigned char[::1] row, Py_ssize_t* at) except -1:
        cdef int first = row[at[0]], width, shift
        cdef uint64_t length = 0
        at[0] += 1
        if first < NO_VALUE:
            return first
        if first == ERROR:
            raise CorruptBinlog("a value of the source has no length")
        width = 2 if first == LENGTH_2 else 3 if first == LENGTH_3 else 8
        for shift in range(width):
            length |= <uint64_t>row[at[0] + shift] << (8 * shift)
        at[0] += width
        if length > <uint64_t>row.shape[0]:
            raise CorruptBinlog("a value of the source is longer than its row", length=length)
        return <Py_ssize_t>length

    cdef _integer(self, const unsigned char[::1] row, Py_ssize_t at, Py_ssize_t length):
        """An integer; beyond 63 bits as a string of digits."""
        cdef uint64_t value = 0, limit = <uint64_t>1 << 63
        cdef Py_ssize_t index = 0
        cdef int digit
        cdef bint negative = length > 0 and row[at] == c"-"
        if negative:
            index = 1
        if index == length or length - index > 255:
            raise CorruptBinlog("an integer of the source has no digits")
        for index in range(index, length):
            digit = row[at + index] - 48
            if digit < 0 or digit > 9 or value > (<uint64_t>0xFFFFFFFFFFFFFFFF - <uint64_t>digit) // 10:
                raise CorruptBinlog("an integer from the source is invalid", text=bytes(row[at : at + length]))
            value = value * 10 + <uint64_t>digit
        if value < limit or (negative and value == limit):
            self._byte(AVRO_LONG)
            self._long(-<int64_t>(value - 1) - 1 if negative and value else <int64_t>value)
        elif negative:
            raise CorruptBinlog("an integer from the source is invalid", text=bytes(row[at : at + length]))
        else:
            self._text(AVRO_STRING, row, at, length)

    cdef _double(self, const unsigned char[::1] row, Py_ssize_t at, Py_ssize_t length):
        cdef char text[NUMBER_TEXT]
        cdef double value
        if length == 0 or length >= NUMBER_TEXT:
            value = float(bytes(row[at : at + length]))
        else:
            memcpy(text, &row[at], length)
            text[length] = 0
            value = PyOS_string_to_double(text, <char**>0, <void*>0)
        self._byte(AVRO_DOUBLE)
        memcpy(self._to + self._size, &value, 8)
        self._size += 8

    cdef _text(self, int branch, const unsigned char[::1] row, Py_ssize_t at, Py_ssize_t length):
        self._byte(branch)
        self._long(length)
        if length:
            memcpy(self._to + self._size, &row[at], length)
            self._size += length

    cdef _charset_text(self, Py_ssize_t column, const unsigned char[::1] row, Py_ssize_t at, Py_ssize_t length):
        if length == 0 or (self._texts.codecs[column].kind == UTF8 and is_utf8(&row[at], length)):
            self._text(AVRO_STRING, row, at, length)
            return
        self._text_out.size = 0
        self._texts.text(&self._texts.codecs[column], <int>column, &row[at], length, &self._text_out)
        self._need(self._text_out.size + 32)
        memcpy(self._to + self._size, self._text_out.data, self._text_out.size)
        self._size += self._text_out.size

    cdef void _byte(self, unsigned char value) noexcept:
        self._to[self._size] = value
        self._size += 1

    cdef void _long(self, int64_t value) noexcept:
        self._size += write_varint(self._to + self._size, value)

    cdef _need(self, Py_ssize_t more):
        """Makes room for `more` bytes; the methods that write do not check."""
        if self._room - self._size >= more:
            return
        self._room = max(2 * self._room, self._size + more, 1 << 16)
        PyByteArray_Resize(self._out, self._room)
        self._to = <unsigned char*>PyByteArray_AsString(self._out)
