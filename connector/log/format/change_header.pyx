"""The head of a row change: its table, columns, key and which columns the images have; all before its action and rows.

    schema, table   strings
    columns         array of name, type, unsigned, charset, labels (array), nullable
    key_columns     array of indexes
    before, after   bytes, a bit a column; empty: all
"""

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.format.avro_reader cimport Reader, read_block, read_byte, read_long, skip, skip_text
from connector.log.transaction.layout import Column, TableLayout, TableName


cdef int skip_head(Reader r) except -1:
    """Past schema, table, columns, key columns and presence bitmaps of a RowChange."""
    cdef long long count, i, labels, j
    skip_text(r)
    skip_text(r)
    while True:
        count = read_block(r)
        if count == 0:
            break
        for i in range(count):
            skip_text(r)
            skip_text(r)
            skip(r, 1)
            skip_text(r)
            while True:
                labels = read_block(r)
                if labels == 0:
                    break
                for j in range(labels):
                    skip_text(r)
            skip(r, 1)
    while True:
        count = read_block(r)
        if count == 0:
            break
        for i in range(count):
            read_long(r)
    skip_text(r)
    skip_text(r)
    return 0


cdef tuple read_head(Reader r):
    """The same: the layout, and which columns before and after images have, empty where they have all."""
    cdef long long count
    schema = text(r).decode()
    name = text(r).decode()
    columns = []
    while count := read_block(r):
        for _ in range(count):
            column, type_ = text(r).decode(), text(r).decode()
            unsigned, charset = read_byte(r) == 1, text(r).decode()
            columns.append(Column(column, type_, unsigned, charset, read_labels(r), read_byte(r) == 1))
    key = []
    while count := read_block(r):
        for _ in range(count):
            key.append(read_long(r))
    if not columns:
        raise ValueError("a table without columns")
    before, after = told(text(r), len(columns)), told(text(r), len(columns))
    return TableLayout(TableName(schema, name), tuple(columns), tuple(key)), before, after


cdef bytes told(bytes present, Py_ssize_t columns):
    """A bitmap of columns, empty where it says that all are there."""
    if present and len(present) < (columns + 7) // 8:
        raise ValueError("a bitmap that does not tell of every column")
    whole = (1 << columns) - 1
    return b"" if int.from_bytes(present, "little") & whole == whole else present


cdef tuple read_labels(Reader r):
    cdef long long count
    labels = []
    while count := read_block(r):
        for _ in range(count):
            labels.append(text(r).decode())
    return tuple(labels)


cdef bytes text(Reader r):
    cdef long long size = read_long(r)
    cdef Py_ssize_t start = r.at
    skip(r, size)
    return PyBytes_FromStringAndSize(<const char *>&r.data[start], <Py_ssize_t>size) if size else b""
