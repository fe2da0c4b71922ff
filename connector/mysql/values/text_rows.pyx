"""Converts rows of MySQL's text protocol to Avro `Row` records of schemas/fragment.avsc, as INSERT images.

The protocol: a packet is a length of 3 bytes (little endian), a sequence number, and the payload; one of 2^24-1 bytes
continues in the next packet. A row's payload is a length-encoded string per column, or 0xFB for NULL; 0xFE in a payload
shorter than 9 bytes ends the rows, 0xFF is an error (MySQL Internals, "Text Resultset").

Rows are decoded without the GIL: several connections are read at the same time.
"""

from array import array

from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AsString, PyBytes_Size
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport strtod
from libc.string cimport memcpy, memset

from connector.mysql.memory cimport (
    BYTES_TAG, NULL_TAG, STRING_TAG, Cursor, Out, damaged, left, little, put_block, put_byte, put_count, put_double,
    put_long, put_raw, release, take,
)
from connector.mysql.values.rows cimport RowCodec
from connector.mysql.values.text cimport is_utf8

from connector.mysql.values.rows import ValueKind
from connector.errors import CorruptBinlog

cdef int UTF8 = ValueKind.UTF8

cdef enum:
    FULL_PACKET = 0xFFFFFF
    HEADER = 4
    NO_VALUE = 0xFB
    LENGTH_2 = 0xFC
    LENGTH_3 = 0xFD
    END = 0xFE
    ERROR = 0xFF
    NUMBER_TEXT = 512
    KEPT = 1 << 23  # a buffer of more bytes is given back after a large row


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
    cdef const uint8_t* _kind  # of each column, in `_kinds`
    cdef Py_ssize_t _columns
    cdef bytes _pending
    cdef Py_ssize_t _at
    cdef int _sequence
    cdef Out _out  # the rows
    cdef Out _ends  # the end of each, 8 bytes
    cdef Out _joined  # a row that came in several packets
    cdef readonly Py_ssize_t column  # the column being decoded, for error messages
    cdef RowCodec _texts

    def __cinit__(self):
        memset(&self._out, 0, sizeof(Out))
        memset(&self._ends, 0, sizeof(Out))
        memset(&self._joined, 0, sizeof(Out))

    def __dealloc__(self):
        release(&self._out)
        release(&self._ends)
        release(&self._joined)

    def __init__(self, str kinds not None, int sequence, texts=()):
        self._kinds = kinds.encode("ascii")
        if set(kinds) - set("idsbt"):
            raise ValueError(f"unknown kinds in {kinds!r}")
        specs = list(texts) or [None] * len(kinds)
        if [kind == "t" for kind in kinds] != [spec is not None for spec in specs]:
            raise ValueError(f"kinds {kinds!r} do not match the texts")
        self._texts = RowCodec([spec or (ValueKind.BYTES, 0, 0, False, None, ()) for spec in specs])
        self._kind = <const uint8_t*>PyBytes_AsString(self._kinds)
        self._columns = PyBytes_Size(self._kinds)
        self._pending = b""
        self._sequence = sequence & 0xFF

    @property
    def rows(self):
        """Rows that `drain` would return."""
        return self._ends.size // 8

    @property
    def size(self):
        """Bytes that `drain` would return."""
        return self._out.size

    def feed(self, bytes chunk not None):
        """Accepts bytes from the server."""
        self._pending = self._pending[self._at:] + chunk if self._at < len(self._pending) else chunk
        self._at = 0

    def decode(self, Py_ssize_t max_rows, Py_ssize_t max_bytes):
        """Converts packets to rows until a limit is reached, the rows end, or bytes are missing.

        Returns:
            The least number of missing bytes; 0: none are.
        """
        cdef bytes pending = self._pending
        cdef Cursor chunk
        chunk.data = <const uint8_t*>PyBytes_AsString(pending) + self._at
        chunk.end = <const uint8_t*>PyBytes_AsString(pending) + PyBytes_Size(pending)
        cdef Py_ssize_t missing
        with nogil:
            missing = self._packets(&chunk, max_rows, max_bytes)
        return missing

    def drain(self):
        """Returns the rows decoded so far as (data, ends) and forgets them."""
        data = PyByteArray_FromStringAndSize(<char*>self._out.data, self._out.size)
        ends = array("Q", (<char*>self._ends.data)[: self._ends.size] if self._ends.size else b"")
        self._out.size = self._ends.size = 0
        if self._out.capacity > KEPT:
            release(&self._out)
            release(&self._joined)
        return data, ends

    cdef Py_ssize_t _packets(self, Cursor* chunk, Py_ssize_t max_rows, Py_ssize_t max_bytes) except -1 nogil:
        """Decodes whole packets; returns the number of bytes that the next one lacks."""
        cdef Cursor packet, row
        cdef Py_ssize_t missing
        while not self.ended and self._ends.size < 8 * max_rows and self._out.size < max_bytes:
            packet = chunk[0]
            missing = self._packet(&packet, &row)
            if missing:
                return missing
            self._at += packet.data - chunk.data
            chunk[0] = packet
            self._answer(&row)
        return 0

    cdef Py_ssize_t _packet(self, Cursor* packet, Cursor* row) except -1 nogil:
        """Finds the next payload, which may have come in several packets; returns the number of bytes that it lacks."""
        cdef const uint8_t* header
        cdef Py_ssize_t length = FULL_PACKET
        cdef int packets = 0
        self._joined.size = 0
        while length == FULL_PACKET:
            if left(packet) < HEADER:
                return HEADER - left(packet)
            header = take(packet, HEADER)
            length = <Py_ssize_t>little(header, 3)
            if left(packet) < length:
                return length - left(packet)
            if header[3] != (self._sequence + packets) & 0xFF:
                self._disordered((self._sequence + packets) & 0xFF, header[3])
            row.data = take(packet, length)
            row.end = row.data + length
            packets += 1
            if packets > 1 or length == FULL_PACKET:
                put_raw(&self._joined, row.data, length)
        if packets > 1:
            row.data = self._joined.data
            row.end = row.data + self._joined.size
        self._sequence = (self._sequence + packets) & 0xFF
        return 0

    cdef int _disordered(self, int expected, int got) except -1 nogil:
        with gil:
            raise CorruptBinlog("packets from the source are out of order", expected=expected, got=got)

    cdef int _answer(self, Cursor* answer) except -1 nogil:
        cdef uint64_t end
        if left(answer) == 0:
            return damaged(b"the source sent an empty row")
        if answer.data[0] == ERROR and left(answer) > 2:
            with gil:
                raise ServerError(
                    int(answer.data[1]) | int(answer.data[2]) << 8,
                    (<char*>answer.data)[3 : left(answer)].decode("utf-8", "replace"),
                )
        if answer.data[0] == END and left(answer) < 9:
            self.ended = True
            return 0
        self._row(answer)
        end = self._out.size
        return put_raw(&self._ends, &end, 8)

    cdef int _row(self, Cursor* row) except -1 nogil:
        cdef Py_ssize_t column, length
        cdef const uint8_t* value
        cdef Out* out = &self._out
        put_byte(out, 0)  # no before image
        put_byte(out, 2)  # an after image, branch 1
        put_count(out, self._columns)
        for column in range(self._columns):
            length = _length(row)
            if length < 0:
                put_byte(out, NULL_TAG)
                continue
            if length > left(row):
                with gil:
                    raise CorruptBinlog("a value of the source is longer than its row", column=column, length=length)
            value = take(row, length)
            if self._kind[column] == c"t":
                self.column = column
                if length == 0 or (self._texts.codecs[column].kind == UTF8 and is_utf8(value, length)):
                    put_block(out, STRING_TAG, value, length)
                else:
                    self._texts.text(&self._texts.codecs[column], <int>column, value, length, out)
            elif self._kind[column] == c"s":
                put_block(out, STRING_TAG, value, length)
            elif self._kind[column] == c"b":
                put_block(out, BYTES_TAG, value, length)
            elif self._kind[column] == c"i":
                _integer(out, value, length)
            else:
                _double(out, value, length)
        if left(row):
            with gil:
                raise CorruptBinlog("a row of the source has more values than columns", columns=self._columns)
        return put_byte(out, 0)


cdef Py_ssize_t _length(Cursor* row) except? -2 nogil:
    """The length of the next value; -1 for NULL."""
    cdef int first, width
    cdef uint64_t length
    if left(row) == 0:
        damaged(b"a row from the source ends inside a value")
    first = take(row, 1)[0]
    if first < NO_VALUE:
        return first
    if first == NO_VALUE:
        return -1
    if first == ERROR:
        damaged(b"a value of the source has no length")
    width = 2 if first == LENGTH_2 else 3 if first == LENGTH_3 else 8
    if left(row) < width:
        damaged(b"a row from the source ends inside a value")
    length = little(take(row, width), width)
    if length > <uint64_t>1 << 62:
        damaged(b"a value of the source is longer than its row")
    return <Py_ssize_t>length


cdef int _integer(Out* out, const uint8_t* text, Py_ssize_t length) except -1 nogil:
    """Writes an integer; beyond 63 bits as a string of digits."""
    cdef uint64_t value = 0, limit = <uint64_t>1 << 63
    cdef Py_ssize_t index = 0
    cdef uint64_t digit
    cdef bint negative = length > 0 and text[0] == c"-"
    if negative:
        index = 1
    if index == length or length - index > 255:
        return damaged(b"an integer of the source has no digits")
    for index in range(index, length):
        digit = <uint64_t>text[index] - 48
        if digit > 9 or value > (<uint64_t>0xFFFFFFFFFFFFFFFF - digit) // 10:
            return _no_integer(text, length)
        value = value * 10 + digit
    if value < limit or (negative and value == limit):
        return put_long(out, -<int64_t>(value - 1) - 1 if negative and value else <int64_t>value)
    if negative:
        return _no_integer(text, length)
    return put_block(out, STRING_TAG, text, length)


cdef int _no_integer(const uint8_t* text, Py_ssize_t length) except -1 nogil:
    with gil:
        raise CorruptBinlog("an integer from the source is invalid", text=(<char*>text)[:length])


cdef int _double(Out* out, const uint8_t* text, Py_ssize_t length) except -1 nogil:
    """Writes a double; `strtod` rounds as the server does, and a locale whose point differs ends before the text's end."""
    cdef char copy[NUMBER_TEXT]
    cdef char* end
    cdef double value
    if length == 0 or length >= NUMBER_TEXT:
        return damaged(b"a number from the source is invalid")
    memcpy(copy, text, length)
    copy[length] = 0
    value = strtod(copy, &end)
    if end != copy + length:
        with gil:
            raise CorruptBinlog("a number from the source is invalid", text=(<char*>text)[:length])
    return put_double(out, value)
