"""Completes row images of one table, and makes the versions of its rows.

The absent columns of an update or delete are those of the row's newest version, those of an insert have their defaults.
Rows are completed one after the other: a row may have been changed by an earlier one of the same event, and keys may be
swapped. A key is the bytes of its columns' values, in the key's order. Rows of a table without a key have no versions: an
after image is completed by its before image, which must have all columns.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.format.avro_reader cimport Reader, read_block, read_byte, skip_value
from connector.log.format.varint cimport read_varint
from connector.log.transaction.batch cimport Rows, rows_of
from connector.mysql.memory cimport (
    BYTES_TAG,
    DOUBLE_TAG,
    LONG_TAG,
    NULL_TAG,
    STRING_TAG,
    Cursor,
    Out,
    left,
    put_byte,
    put_count,
    put_raw,
    release,
    take,
)
from connector.records.stored cimport HEADER, read_definition, write_header

from connector.errors import CorruptBinlog, Unsupported
from connector.log.format.avro import block
from connector.log.ids import Action
from connector.mysql.values.json_diff import patched

cdef object INSERT = Action.INSERT
cdef object READ = Action.READ
cdef object DELETE = Action.DELETE

cdef enum:
    ARRAY = 2  # an image: the union's second branch

cdef enum Unknown:  # as in `connector.producer.records.table_entry`
    REFUSED = 0
    STAYS = 1
    DELETED = 2
    FOLLOWED = 3

cdef extern from "Python.h":
    char* PyBytes_AsString(object text) except NULL


cdef struct Span:
    const uint8_t* data  # NULL: the column is absent
    Py_ssize_t size


class UnknownRow(LookupError):
    """Raised when an image lacks columns and the row has no version.

    Args:
        key: the values of its key, in Avro.
        differs: a JSON document is logged as differences, so the image cannot stay as it is.
    """

    def __init__(self, key, differs=False):
        super().__init__("the row has no version")
        self.key = key
        self.differs = differs


class UnknownDefault(LookupError):
    """Raised when an insert lacks a column whose default is not known.

    Args:
        column: the column's index.
    """

    def __init__(self, column):
        super().__init__("the column's default is not known")
        self.column = column


class KeyMissing(ValueError):
    """Raised when an image lacks a column of the key."""


class DifferencesFailed(Exception):
    """Raised when differences of a JSON document cannot be applied to that of the newest version.

    Args:
        column: the column's index.
        cause: CorruptBinlog: they do not fit the document; Unsupported: they are not understood.
    """

    def __init__(self, column, cause):
        super().__init__(cause.message)
        self.column = column
        self.cause = cause


cdef class RowCompleter:
    """Completes rows of one table with one definition.

    Args:
        layout: the table.
        prefix: the first bytes of its rows' keys in the store.
        definition: the number of its definition.
        defaults: for each column its default in Avro; None if it is not known.

    Attributes:
        lost: a row without a version has got a key, or another one, under which a load may not bring it; set to False by
            others.
    """

    cdef readonly object layout
    cdef readonly bytes prefix
    cdef readonly int definition
    cdef readonly list defaults
    cdef public bint lost
    cdef int width
    cdef list key
    cdef list documents  # the JSON columns
    cdef list texts  # documents that `new` points into
    cdef Span* old
    cdef Span* new
    cdef Span* base
    cdef bytes kept  # the version that `base` points into

    def __cinit__(self, layout, bytes prefix not None, int definition, list defaults not None):
        self.layout = layout
        self.prefix = prefix
        self.definition = definition
        self.defaults = defaults
        self.key = list(layout.key)
        self.documents = [at for at, column in enumerate(layout.columns) if column.type == "json"]
        self.width = len(layout.columns)
        if not all(0 <= column < self.width for column in self.key) or len(defaults) != self.width or not self.width:
            raise ValueError("a key of other columns, or not a default or none for each column")
        self.old = <Span*>malloc(3 * self.width * sizeof(Span))
        if self.old == NULL:
            raise MemoryError
        self.new = self.old + self.width
        self.base = self.new + self.width

    def __dealloc__(self):
        free(self.old)

    def keys(self, Rows rows not None):
        """Return the keys in the store of the rows as they were before the change, and of rows that a load has read.

        Raises:
            KeyMissing: a before image lacks a column of the key.
            ValueError: the bytes are not such rows.
        """
        cdef Reader r = reader_of(rows)
        cdef Py_ssize_t row
        found = []
        if rows.action is INSERT or not self.key:
            return found
        for row in range(rows.count):
            if self.image(r, self.old, rows.before) and rows.action is not READ:
                found.append(self.key_of(self.old))
            if self.image(r, self.new, rows.after) and rows.action is READ:
                found.append(self.key_of(self.new))
        return found

    def complete(
        self, Rows rows not None, int64_t seqno, dict open not None, dict known not None, convert, int unknown, bint brought
    ):
        """Complete rows, and give each its version.

        Args:
            rows: rows of the table.
            seqno: their event.
            open: the versions of the event; gets those of the rows.
            known: the newest versions before the event, those of `keys` among them.
            convert: returns the content of a version of another definition as of this one; None: its values are not
                known.
            unknown: what becomes of partial images of rows without a version.
            brought: a load for all targets brings such rows.

        Returns:
            The rows with all columns, in order, those that stay partial apart; and the bytes of their versions.

        Raises:
            UnknownRow, UnknownDefault, KeyMissing, DifferencesFailed: see there.
            ValueError: the bytes are not such rows.
        """
        cdef Reader r = reader_of(rows)
        cdef bint lacks = len(rows.before) > 0 or len(rows.after) > 0
        cdef Out out, ends
        cdef Py_ssize_t row, start, middle
        cdef Py_ssize_t grown = 0
        cdef uint64_t end
        cdef bytes version, old_key, new_key
        cdef bint had, has, whole, moved, differs
        cdef list pieces = []
        memset(&out, 0, sizeof(Out))
        memset(&ends, 0, sizeof(Out))
        try:
            for row in range(rows.count):
                start = r.at
                had = self.image(r, self.old, rows.before)
                middle = r.at
                has = self.image(r, self.new, rows.after)
                whole = True
                old_key = new_key = None
                if had and not self.key:
                    if rows.before:
                        raise KeyMissing("a table without a key has a before image that lacks columns")
                    if has:
                        fill(self.new, self.old, self.width)
                elif had:
                    old_key = self.key_of(self.old)
                    if rows.before:
                        version = open[old_key] if old_key in open else known.get(old_key)
                        version = self.current(version, convert)
                        if version is None:
                            if unknown == REFUSED:
                                raise UnknownRow(old_key[len(self.prefix):], differs=has and self.differs())
                            whole = False
                        else:
                            self.split(version)
                            fill(self.old, self.base, self.width)
                    if has and whole:
                        fill(self.new, self.old, self.width)
                        if self.differs():
                            self.patch()
                elif has and rows.after:
                    whole = self.fill_defaults(unknown)
                if not whole and not had:
                    self.flush(rows, &out, &ends, pieces)
                    pieces.append(self.unfilled(rows, bytes(r.data[middle : r.at]), unknown, open))
                    continue
                if not whole:
                    differs = has and self.differs()
                    if differs and not brought:
                        raise UnknownRow(old_key[len(self.prefix):], differs=True)
                    self.flush(rows, &out, &ends, pieces)
                    open[old_key] = None
                    moved = has and not self.covers(self.new) and self.moves()
                    self.lost = self.lost or moved or differs or (unknown == FOLLOWED and not has)
                    if differs or (moved and unknown == DELETED):
                        pieces.append(self.alone(rows, DELETE, bytes(r.data[start:middle]) + b"\0", rows.before, b""))
                    else:
                        pieces.append(self.alone(rows, rows.action, bytes(r.data[start : r.at]), rows.before, rows.after))
                    if has and self.covers(self.new) and not differs:
                        grown += self.record(self.new, seqno, open, old_key)
                    continue
                if lacks:
                    self.put(&out, self.old, had)
                    self.put(&out, self.new, has)
                    end = <uint64_t>out.size
                    put_raw(&ends, &end, 8)
                if not self.key:
                    continue
                if had and not has:
                    open[old_key] = None
                    grown += len(old_key)
                elif has:
                    grown += self.record(self.new, seqno, open, old_key)
            if r.at != r.end:
                raise ValueError("bytes after the last row")
            if not lacks:
                return [rows], grown
            self.flush(rows, &out, &ends, pieces)
            (<Rows>pieces[0]).logged = rows.data
            for piece in pieces[1:]:
                (<Rows>piece).logged = b""
            return pieces, grown
        finally:
            release(&out)
            release(&ends)

    cdef bint image(self, Reader r, Span* spans, bytes present) except -1:
        """Go past an image, and note where its values are; False if there is none."""
        cdef int column
        cdef Py_ssize_t start
        cdef long long count
        cdef uint8_t branch = read_byte(r)
        for column in range(self.width):
            spans[column].data = NULL
        if branch == 0:
            return False
        if branch != ARRAY:
            raise ValueError("an image is neither there nor absent")
        count = read_block(r)
        cdef bint some = count > 0
        for column in range(self.width):
            if present and not <uint8_t>present[column >> 3] >> (column & 7) & 1:
                continue
            start = r.at
            skip_value(r)
            spans[column].data = &r.data[start]
            spans[column].size = r.at - start
            count -= 1
        if count or (some and read_byte(r) != 0):
            raise ValueError("an image has another number of values than columns")
        return True

    cdef bytes key_of(self, Span* spans):
        cdef Py_ssize_t size = len(self.prefix)
        cdef int column
        for column in self.key:
            if spans[column].data == NULL:
                raise KeyMissing("an image lacks a column of the key")
            size += spans[column].size
        cdef bytes made = PyBytes_FromStringAndSize(NULL, size)
        cdef char* at = PyBytes_AsString(made)
        memcpy(at, PyBytes_AsString(self.prefix), len(self.prefix))
        at += len(self.prefix)
        for column in self.key:
            memcpy(at, spans[column].data, spans[column].size)
            at += spans[column].size
        return made

    cdef bint covers(self, Span* spans):
        cdef int column
        for column in range(self.width):
            if spans[column].data == NULL:
                return False
        return True

    cdef bint moves(self):
        """True if the new image has another value of a column of the key."""
        cdef int column
        for column in self.key:
            if self.new[column].data != NULL and (
                self.new[column].size != self.old[column].size
                or memcmp(self.new[column].data, self.old[column].data, self.new[column].size)
            ):
                return True
        return False

    cdef bint differs(self):
        """True if the new image has differences of a JSON document in place of the document."""
        cdef int column
        for column in self.documents:
            if self.new[column].data != NULL and self.new[column].data[0] == BYTES_TAG:
                return True
        return False

    cdef int patch(self) except -1:
        """Apply differences to the documents of the old image."""
        cdef int column
        cdef bytes text
        self.texts = []
        for column in self.documents:
            if self.new[column].data[0] != BYTES_TAG:
                continue
            try:
                if self.old[column].data[0] != STRING_TAG:
                    raise CorruptBinlog("the JSON document before the differences is NULL")
                text = bytes([STRING_TAG]) + block(patched(content(&self.old[column]), content(&self.new[column])))
            except (CorruptBinlog, Unsupported) as error:
                raise DifferencesFailed(column, error) from error
            self.texts.append(text)
            self.new[column].data = <const uint8_t*>PyBytes_AsString(text)
            self.new[column].size = len(text)
        return 0

    cdef bytes current(self, bytes version, convert):
        """The version with this definition; None if there is none, or if only the source knows some of its values."""
        if version is None:
            return None
        if len(version) < HEADER:
            raise ValueError("a version without a header")
        if read_definition(<const uint8_t*>PyBytes_AsString(version)) == <uint32_t>self.definition:
            return version
        return convert(version)

    cdef int split(self, bytes version) except -1:
        """Note where the values of a version are, which must stay alive."""
        cdef Cursor at
        cdef int column
        self.kept = version
        at.data = <const uint8_t*>PyBytes_AsString(version)
        at.end = at.data + len(version)
        held(&at, HEADER)
        for column in range(self.width):
            self.base[column].data = at.data
            pass_value(&at)
            self.base[column].size = at.data - self.base[column].data
        if left(&at):
            raise ValueError("a version has more values than columns")
        return 0

    cdef bint fill_defaults(self, int unknown) except -1:
        """Fill in defaults; False if one is not known, and the row may stay partial."""
        cdef int column
        cdef bytes default
        cdef bint whole = True
        for column in range(self.width):
            if self.new[column].data == NULL:
                default = self.defaults[column]
                if default is None:
                    if unknown == REFUSED:
                        raise UnknownDefault(column)
                    whole = False
                    continue
                self.new[column].data = <const uint8_t*>PyBytes_AsString(default)
                self.new[column].size = len(default)
        return whole

    cdef Rows unfilled(self, Rows rows, bytes image, int unknown, dict open):
        """An inserted row that lacks a column whose default is not known. A load that may have passed it reads it again.

        While the load goes on, the row is published as a delete: a reader of the log knows the default no better.
        """
        if self.key:
            open[self.key_of(self.new)] = None
            self.lost = True
            if unknown == DELETED:
                return self.alone(rows, DELETE, image + b"\0", rows.after, b"")
        return self.alone(rows, rows.action, b"\0" + image, b"", rows.after)

    cdef Py_ssize_t record(self, Span* spans, int64_t seqno, dict open, bytes old_key) except -1:
        """Give a row a version; returns its bytes."""
        cdef Py_ssize_t size = HEADER
        cdef int column
        cdef bytes key = self.key_of(spans)
        for column in range(self.width):
            size += spans[column].size
        cdef bytes version = PyBytes_FromStringAndSize(NULL, size)
        cdef char* at = PyBytes_AsString(version)
        write_header(<uint8_t*>at, seqno, <uint32_t>self.definition)
        at += HEADER
        for column in range(self.width):
            memcpy(at, spans[column].data, spans[column].size)
            at += spans[column].size
        if old_key is not None and old_key != key:
            open[old_key] = None
        open[key] = version
        return size + len(key)

    cdef int put(self, Out* out, Span* spans, bint there) except -1:
        """Write an image with all columns."""
        cdef int column
        if not there:
            return put_byte(out, 0)
        put_byte(out, ARRAY)
        put_count(out, self.width)
        for column in range(self.width):
            put_raw(out, spans[column].data, spans[column].size)
        return put_byte(out, 0)

    cdef int flush(self, Rows rows, Out* out, Out* ends, list pieces) except -1:
        """Add the whole rows so far to the pieces."""
        if ends.size:
            made = rows_of(self.layout, rows.action, out.data[: out.size], ends.data[: ends.size], b"", b"")
            (<Rows>made).query = rows.query
            pieces.append(made)
            out.size = ends.size = 0
        return 0

    cdef Rows alone(self, Rows rows, action, bytes row, bytes before, bytes after):
        """A row that stays partial."""
        cdef uint64_t end = <uint64_t>len(row)
        cdef Rows made = rows_of(self.layout, action, row, PyBytes_FromStringAndSize(<const char*>&end, 8), before, after)
        made.query = rows.query
        return made


cdef const uint8_t* held(Cursor* at, long long size) except NULL:
    """Go past bytes of a version; `take` alone would say that the source's log is damaged."""
    if size < 0 or size > left(at):
        raise ValueError("a value is cut off")
    return take(at, <Py_ssize_t>size)


cdef int pass_value(Cursor* at) except -1:
    """Go past a value: a tag, and what follows it."""
    cdef uint8_t tag = held(at, 1)[0]
    cdef long long number = 0
    cdef int used
    if tag == NULL_TAG:
        return 0
    if tag == DOUBLE_TAG:
        held(at, 8)
        return 0
    if tag != LONG_TAG and tag != STRING_TAG and tag != BYTES_TAG:
        raise ValueError("a value has an unknown tag")
    used = read_varint(at.data, left(at), &number)
    if used <= 0:
        raise ValueError("a number is damaged")
    held(at, used)
    if tag != LONG_TAG:
        held(at, number)
    return 0


cdef bytes content(const Span* value):
    """The bytes of a text or of bytes."""
    cdef long long size = 0
    cdef int used = read_varint(value.data + 1, value.size - 1, &size)
    return value.data[1 + used : value.size]


cdef int fill(Span* spans, const Span* rest, int width) noexcept:
    cdef int column
    for column in range(width):
        if spans[column].data == NULL:
            spans[column] = rest[column]
    return 0


cdef Reader reader_of(Rows rows):
    cdef Reader r = Reader.__new__(Reader)
    r.data = rows.data
    r.at = 0
    r.end = len(rows.data)
    return r
