"""Walks changes. A row change begins with its header: the table, columns, key and which columns the images have.

    schema, table   strings
    columns         array of name, type, unsigned, charset, labels (array), nullable
    key_columns     array of indexes
    before, after   bytes, a bit a column; empty: all
"""

from connector.log.format.avro_reader cimport (
    Reader,
    read_block,
    read_boolean,
    read_branch,
    read_bytes,
    read_index,
    read_long,
    read_text,
    skip_map,
    skip_text,
    skip_value,
)
from connector.log.rules import BrokenRule, Rule
from connector.log.transaction.layout import Column, TableLayout, TableName

cdef enum:
    STATEMENT = 0  # branches of a change
    PART = 2
    BRANCHES = 3
    ACTIONS = 4  # connector.log.ids.Action


cdef int skip_change_header(Reader r) except -1:
    """Go past schema, table, columns, key columns and presence bitmaps of a RowChange."""
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
            read_boolean(r)
            skip_text(r)
            while True:
                labels = read_block(r)
                if labels == 0:
                    break
                for j in range(labels):
                    skip_text(r)
            read_boolean(r)
    while True:
        count = read_block(r)
        if count == 0:
            break
        for i in range(count):
            read_long(r)
    skip_text(r)
    skip_text(r)
    return 0


cdef tuple read_change_header(Reader r):
    """Read the layout, and which columns before and after images have, empty where they have all."""
    cdef long long count
    schema = read_text(r)
    name = read_text(r)
    columns = []
    while count := read_block(r):
        for _ in range(count):
            column, type_ = read_text(r), read_text(r)
            unsigned, charset = bool(read_boolean(r)), read_text(r)
            columns.append(Column(column, type_, unsigned, charset, read_labels(r), bool(read_boolean(r))))
    key = []
    while count := read_block(r):
        for _ in range(count):
            key.append(read_long(r))
    if not columns:
        raise ValueError("a table without columns")
    before, after = bitmap(read_bytes(r), len(columns)), bitmap(read_bytes(r), len(columns))
    return TableLayout(TableName(schema, name), tuple(columns), tuple(key)), before, after


cdef bytes bitmap(bytes present, Py_ssize_t columns):
    """The bitmap of present columns, empty where all are present."""
    if present and len(present) < (columns + 7) // 8:
        raise BrokenRule(Rule.IMAGE_COLUMNS)
    cdef object one = 1  # Python's: C's would shift a column more than its int has bits
    whole = (one << columns) - 1
    return b"" if int.from_bytes(present, "little") & whole == whole else present


cdef tuple read_labels(Reader r):
    cdef long long count
    labels = []
    while count := read_block(r):
        for _ in range(count):
            labels.append(read_text(r))
    return tuple(labels)


cdef int skip_changes(Reader r) except -1:
    """Go past all changes of a message, which end where its body does."""
    cdef long long count, i
    while True:
        count = read_block(r)
        if count == 0:
            break
        for i in range(count):
            skip_change(r)
    if r.at != r.end:
        raise ValueError("bytes after the last change")
    return 0


cdef int skip_change(Reader r) except -1:
    """Go past a change: a statement, rows, or a part of a change."""
    cdef long long count, i
    cdef int branch = read_index(r, BRANCHES)
    if branch == STATEMENT:
        skip_text(r)
        skip_text(r)
        skip_map(r)
        return 0
    if branch == PART:
        read_long(r)
        read_long(r)
        return skip_text(r)
    skip_change_header(r)
    read_index(r, ACTIONS)
    while True:
        count = read_block(r)
        if count == 0:
            return 0
        for i in range(count):
            skip_image(r)
            skip_image(r)


cdef int skip_image(Reader r) except -1:
    """Go past a row's image, if it has one."""
    cdef long long count, i
    if not read_branch(r):
        return 0
    while True:
        count = read_block(r)
        if count == 0:
            return 0
        for i in range(count):
            skip_value(r)
