# cython: cdivision=True
"""Row changes as columns of Arrow: one row a change of a row, or a statement, written straight into Arrow's buffers.

A row's images are JSON text, `{"id":1,"v":"x"}`. Values are exact: a 64-bit integer is a number with all its digits, a
float or double the shortest one that reads back the same, a decimal or a time the text that MySQL prints, bytes are
`{"base64":"…"}`. A column that the source left out of an image (binlog_row_image) is left out: it is not null.
"""

import json

import pyarrow as pa

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from connector.errors import LogDamaged
from connector.log.format.avro_reader cimport (
    Reader,
    read_block,
    read_branch,
    read_byte,
    read_index,
    read_long,
    read_text,
    skip,
    skip_map,
)
from connector.log.format.change_header cimport read_change_header, skip_change_header
from connector.log.format.message cimport Message
from connector.log.format.text cimport (
    Text,
    put,
    put_bytes,
    put_double,
    put_integer,
    put_single,
    put_string,
    put_whole,
    taken,
)

cdef Py_ssize_t LARGEST = (<Py_ssize_t>1 << 31) - 1  # bytes of a column: Arrow's string has 32-bit offsets
cdef Py_ssize_t CACHED = 4096  # tables remembered; forgotten together when there are more
cdef tuple ACTIONS = (b"insert", b"update", b"delete")
cdef bytes STATEMENT = b"statement"

cdef enum:
    NULL_BRANCH = 0  # of the union, as Avro writes them
    LONG_BRANCH = 2
    DOUBLE_BRANCH = 4
    STRING_BRANCH = 6
    BYTES_BRANCH = 8


cdef class Buffers:
    """The part that all columns share: their bytes, and which rows are not null."""

    cdef Text data
    cdef Text valid  # a byte a row
    cdef bint nulls

    def __cinit__(self):
        memset(&self.data, 0, sizeof(Text))
        memset(&self.valid, 0, sizeof(Text))

    def __dealloc__(self):
        free(self.data.data)
        free(self.valid.data)

    cdef int there(self, bint is_there) except -1:
        cdef unsigned char one = is_there
        self.nulls = self.nulls or not is_there
        return put(&self.valid, &one, 1)

    cdef object bitmap(self):
        """Arrow's, least significant bit first; None where nothing is null."""
        cdef Py_ssize_t row
        found = None
        if self.nulls:
            bits = bytearray((self.valid.size + 7) // 8)
            for row in range(self.valid.size):
                if self.valid.data[row]:
                    bits[row >> 3] |= 1 << (row & 7)
            found = pa.py_buffer(bytes(bits))
        self.valid.size = 0
        self.nulls = False
        return found


cdef class Numbers(Buffers):
    """A column of 64-bit integers, or of times."""

    cdef int add(self, int64_t value) except -1:
        self.there(True)
        return put(&self.data, <const unsigned char*>&value, 8)

    cdef int add_object(self, object value) except -1:
        """An integer, or None."""
        cdef int64_t number = 0 if value is None else value
        self.there(value is not None)
        return put(&self.data, <const unsigned char*>&number, 8)

    cdef object array(self, object type_, Py_ssize_t rows):
        cdef bytes data = taken(&self.data)
        self.data.size = 0
        return pa.Array.from_buffers(type_, rows, [self.bitmap(), pa.py_buffer(data)])


cdef class Texts(Buffers):
    """A column of texts."""

    cdef Text ends

    def __cinit__(self):
        memset(&self.ends, 0, sizeof(Text))

    def __dealloc__(self):
        free(self.ends.data)

    cdef int end(self, bint is_there) except -1:
        """End a row: its text is what was written to `data` since the row before."""
        cdef int32_t at
        if self.data.size > LARGEST:
            raise ValueError("rows are too large for one batch of Arrow")
        at = <int32_t>self.data.size
        self.there(is_there)
        return put(&self.ends, <const unsigned char*>&at, 4)

    cdef int add(self, bytes value) except -1:
        """A text, or None."""
        if value is not None:
            put(&self.data, <const unsigned char*>PyBytes_AsString(value), len(value))
        return self.end(value is not None)

    cdef object array(self, object type_, Py_ssize_t rows):
        cdef bytes ends = b"\0\0\0\0" + taken(&self.ends)
        cdef bytes data = taken(&self.data)
        self.data.size = 0
        self.ends.size = 0
        return pa.Array.from_buffers(type_, rows, [self.bitmap(), pa.py_buffer(ends), pa.py_buffer(data)])


cdef class Table:
    """One table in one layout, and the columns that its images have."""

    cdef bytes schema, name, key, layout
    cdef Py_ssize_t width
    cdef list names  # `"id":`
    cdef bytes whole, single  # per column: whether a text is an integer, whether a double was a float
    cdef bytes before, after


cdef class Changes:
    """Collects the changes of finished events, and gives them as batches of Arrow.

    Args:
        topic: named in errors.
        layout: whether each row also tells the columns of its table, as JSON.
    """

    cdef str topic
    cdef bint with_layout
    cdef dict tables
    cdef Numbers seqno, number, epoch, commit_time, server_id
    cdef Texts kind, event_id, gtid, snapshot, schema, table, action, key, before, after, sql, layout
    cdef readonly long long rows  # that are collected

    def __init__(self, topic, layout=False):
        self.topic = topic
        self.with_layout = layout
        self.tables = {}
        self.seqno, self.number, self.epoch = Numbers(), Numbers(), Numbers()
        self.commit_time, self.server_id = Numbers(), Numbers()
        self.event_id, self.gtid, self.snapshot, self.schema = Texts(), Texts(), Texts(), Texts()
        self.table, self.action, self.key, self.before, self.kind = Texts(), Texts(), Texts(), Texts(), Texts()
        self.after, self.sql, self.layout = Texts(), Texts(), Texts()
        self.rows = 0

    @property
    def size(self):
        """Bytes of the images that are collected."""
        return self.before.data.size + self.after.data.size + self.layout.data.size + self.sql.data.size

    def add(self, Message message, object last, long long number, long long rows):
        """Add a fragment's changes.

        Args:
            message: the fragment.
            last: the header of its event's last fragment, which tells what is known at the end only.
            number: of the next change within the event.
            rows: that the event had in earlier fragments.

        Returns:
            The number of the change after these, and the rows that the event has now.

        Raises:
            LogDamaged: the bytes are not what the schema says, or the event has another number of rows than its
                header counts.
        """
        cdef Reader r = Reader.__new__(Reader)
        cdef long long first = number
        cdef long long statements = 0
        cdef long long count, item, found
        cdef unsigned char branch
        cdef bytes event_id, gtid, snapshot
        event_id = None if last.event_id is None else last.event_id.encode()
        gtid = None if last.gtid is None else last.gtid.encode()
        in_snapshot = last.metadata.get("snapshot")
        snapshot = None if in_snapshot is None else in_snapshot.encode()
        r.data = message.block.data
        r.at = message.changes
        r.end = message.end
        try:
            while True:
                count = read_block(r)
                if count == 0:
                    break
                for item in range(count):
                    branch = read_byte(r)
                    if branch == 0:
                        self.statement(r)
                        statements += 1
                        found = 1
                    elif branch == 2:
                        found = self.change(r)
                    else:
                        raise ValueError("a change of a kind that the schema does not have")
                    self.put_event(last, event_id, gtid, snapshot, number, found)
                    number += found
            if r.at != r.end:
                raise ValueError("bytes after the last change")
            rows += number - first - statements
            if rows != message.header.rows:
                raise ValueError(f"{rows} rows instead of {message.header.rows}")
        except (ValueError, IndexError) as error:
            raise LogDamaged(
                f"the row changes of an event are wrong: {error}",
                seqno=message.header.seqno,
                fragno=message.header.fragno,
                at=f"{self.topic}-{message.partition}@{message.offset}",
            ) from error
        return number, rows

    def drain(self, object schema):
        """Drain the collected changes as a batch.

        Args:
            schema: of Arrow; the columns are those of `connector.spark.source.columns`.

        Raises:
            LogDamaged: a text is not UTF-8.
        """
        cdef Py_ssize_t rows = self.rows
        types = dict(zip(schema.names, schema.types))
        columns = [
            self.seqno.array(types["seqno"], rows),
            self.number.array(types["change"], rows),
            self.epoch.array(types["epoch"], rows),
            self.commit_time.array(types["commit_time"], rows),
            self.server_id.array(types["server_id"], rows),
            self.kind.array(types["kind"], rows),
            self.event_id.array(types["event_id"], rows),
            self.gtid.array(types["gtid"], rows),
            self.snapshot.array(types["snapshot"], rows),
            self.schema.array(types["schema"], rows),
            self.table.array(types["table"], rows),
            self.action.array(types["action"], rows),
            self.key.array(types["key"], rows),
            self.before.array(types["before"], rows),
            self.after.array(types["after"], rows),
            self.sql.array(types["sql"], rows),
        ]
        if self.with_layout:
            columns.append(self.layout.array(types["layout"], rows))
        self.rows = 0
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            seqnos = batch.column("seqno")
            first, last = (seqnos[0].as_py(), seqnos[rows - 1].as_py()) if rows else (None, None)
            raise LogDamaged(
                f"text of an event is not UTF-8: {error}", at=self.topic, first_seqno=first, last_seqno=last
            ) from error
        return batch

    cdef int put_event(self, object last, bytes event_id, bytes gtid, bytes snapshot, long long number,
                  long long rows) except -1:
        """Add the values that are the same in all rows of a change."""
        cdef long long row
        cdef int64_t seqno = last.seqno, epoch = last.epoch, server_id = last.server_id
        cdef bytes kind = last.kind.name.lower().encode()
        commit_time = last.commit_time
        for row in range(rows):
            self.seqno.add(seqno)
            self.number.add(number + row)
            self.epoch.add(epoch)
            self.commit_time.add_object(commit_time)
            self.server_id.add(server_id)
            self.kind.add(kind)
            self.event_id.add(event_id)
            self.gtid.add(gtid)
            self.snapshot.add(snapshot)
        self.rows += rows
        return 0

    cdef int statement(self, Reader r) except -1:
        cdef bytes schema = read_text(r).encode(), sql = read_text(r).encode()
        skip_map(r)
        self.schema.add(schema)
        self.table.add(None)
        self.action.add(STATEMENT)
        self.key.add(None)
        self.before.add(None)
        self.after.add(None)
        self.sql.add(sql)
        if self.with_layout:
            self.layout.add(None)
        return 0

    cdef long long change(self, Reader r) except -1:
        """Add the rows of a row change; returns their number."""
        cdef Table table = self.table_of(r)
        cdef int action = read_index(r, len(ACTIONS))
        cdef long long count, row, rows = 0
        while True:
            count = read_block(r)
            if count == 0:
                return rows
            for row in range(count):
                self.image(r, table, table.before, self.before)
                self.image(r, table, table.after, self.after)
                self.schema.add(table.schema)
                self.table.add(table.name)
                self.action.add(<bytes>ACTIONS[action])
                self.key.add(table.key)
                self.sql.add(None)
                if self.with_layout:
                    self.layout.add(table.layout)
            rows += count

    cdef Table table_of(self, Reader r):
        """Read a change header; returns its table."""
        cdef Py_ssize_t start = r.at
        cdef Table table
        skip_change_header(r)
        cdef bytes head = PyBytes_FromStringAndSize(<const char*>&r.data[start], r.at - start)
        found = self.tables.get(head)
        if found is not None:
            return <Table>found
        r.at = start
        layout, before, after = read_change_header(r)
        if len(self.tables) >= CACHED:
            self.tables.clear()
        table = Table.__new__(Table)
        table.schema, table.name = layout.name.schema.encode(), layout.name.table.encode()
        table.width = len(layout.columns)
        table.names = [(json.dumps(column.name, ensure_ascii=False) + ":").encode() for column in layout.columns]
        table.whole = bytes([column.type == "bigint" and column.unsigned for column in layout.columns])
        table.single = bytes([column.type == "float" for column in layout.columns])
        table.before, table.after = before, after
        table.key = compact([layout.columns[index].name for index in layout.key])
        table.layout = compact(
            [
                {
                    "name": column.name,
                    "type": column.type,
                    "unsigned": column.unsigned,
                    "charset": column.charset,
                    "labels": list(column.labels),
                    "nullable": column.nullable,
                }
                for column in layout.columns
            ]
        )
        self.tables[head] = table
        return table

    cdef int image(self, Reader r, Table table, bytes present, Texts out) except -1:
        """Write a row's image as an object, null where it has none."""
        cdef long long left = 0
        cdef Py_ssize_t column
        cdef bint first = True
        cdef const unsigned char* whole = <const unsigned char*>PyBytes_AsString(table.whole)
        cdef const unsigned char* single = <const unsigned char*>PyBytes_AsString(table.single)
        cdef bytes name
        if not read_branch(r):
            return out.end(False)
        put(&out.data, b"{", 1)
        for column in range(table.width):
            if present and not present[column >> 3] >> (column & 7) & 1:
                continue
            if left == 0:
                left = read_block(r)
                if left == 0:
                    raise ValueError("an image has fewer values than its table has columns")
            left -= 1
            if not first:
                put(&out.data, b",", 1)
            first = False
            name = table.names[column]
            put(&out.data, <const unsigned char*>PyBytes_AsString(name), len(name))
            put_value(&out.data, r, whole[column], single[column])
        if left or read_block(r):
            raise ValueError("an image has more values than its table has columns")
        put(&out.data, b"}", 1)
        return out.end(True)


cdef bytes compact(object value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


cdef int put_value(Text* out, Reader r, bint whole, bint single) except -1:
    """A column's value: union of null, long, double, string, bytes."""
    cdef unsigned char branch = read_byte(r)
    cdef double real
    cdef long long size
    cdef Py_ssize_t start
    if branch == NULL_BRANCH:
        return put(out, b"null", 4)
    if branch == LONG_BRANCH:
        return put_integer(out, read_long(r))
    if branch == DOUBLE_BRANCH:
        start = r.at
        skip(r, 8)
        memcpy(&real, &r.data[start], 8)
        if real - real != 0:
            raise ValueError("a number that MySQL does not have")
        return put_single(out, real) if single else put_double(out, real)
    if branch != STRING_BRANCH and branch != BYTES_BRANCH:
        raise ValueError("a value of a type that the schema does not have")
    size = read_long(r)
    start = r.at
    skip(r, size)
    cdef const unsigned char* data = &r.data[start] if size else <const unsigned char*>b""
    if branch == BYTES_BRANCH:
        return put_bytes(out, data, <Py_ssize_t>size)
    if whole:
        return put_whole(out, data, <Py_ssize_t>size)
    return put_string(out, data, <Py_ssize_t>size)
