"""The changes of one table in a range of events: each key's state, or the number of equal rows without a key.

`add_rows` walks the rows of one change, `add_images` those of net changes that follow. Each is one function with all
that it calls for a row, so that the C compiler can inline them.
"""

from array import array

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp

from connector.log.format.avro_reader cimport Reader, read_block, read_byte, skip_value
from connector.log.format.message cimport Block
from connector.log.rules import BrokenRule, Rule

cdef enum:
    INSERT = 0  # connector.log.ids.Action
    UPDATE = 1
    DELETE = 2
    READ = 3


@cython.no_gc  # one for each row, and never part of a reference cycle
cdef class Image:
    """The position of a row image's values; also the state of its key, or the number of its copies."""


@cython.no_gc
cdef class Copies:
    """Equal rows without a key that differ by their event: those that were deleted, and those that exist."""


cdef class TableChanges:
    """One table in one layout, and the changes of its keys, in the order of each key's first change."""


cdef TableChanges new_table(object layout, bytes change_header):
    cdef TableChanges table = TableChanges.__new__(TableChanges)
    cdef Py_ssize_t columns = len(layout.columns)
    table.layout = layout
    table.change_header = change_header
    table.columns = columns
    table.key = array("q", layout.key)
    table.ends = array("q", bytes(8 * (columns + 1)))
    table.keys = {}
    for column in layout.key:
        if not 0 <= column < columns:
            raise ValueError("a key column that the table does not have")
    return table


cdef long long add_rows(TableChanges table, unsigned char action, Reader r, Block block) except -1:
    """Add the rows of a change, and return their number."""
    cdef long long count, row, rows = 0
    while True:
        count = read_block(r)
        if count == 0:
            break
        for row in range(count):
            if table.key.shape[0]:
                keyed_row(table, action, r, block)
            else:
                counted_row(table, action, r, block)
        rows += count
    table.changes += rows
    return rows


cdef int add_images(TableChanges table, unsigned char action, object images) except -1:
    """Add the whole images of net changes."""
    cdef Block block = Block(images.data)
    cdef Reader r = Reader.__new__(Reader)
    cdef Py_ssize_t image
    r.data = block.data
    r.at = 0
    r.end = block.data.shape[0]
    for image in range(len(images)):
        walk(table, r)
        if not table.key.shape[0]:
            count(table, r, block, -1 if action == DELETE else 1)
        elif action == DELETE:
            gone(table, key_of(table, r), table.ends[0], table.ends[table.columns], block)
        else:
            there(table, action, key_of(table, r), block)
    if r.at != r.end:
        raise ValueError("bytes after the last image")
    return 0


cdef int keyed_row(TableChanges table, unsigned char action, Reader r, Block block) except -1:
    cdef bytes key = None
    cdef Py_ssize_t start, end
    start = 0
    end = 0
    if image_at(table, r, action == UPDATE or action == DELETE):
        start = table.ends[0]
        end = table.ends[table.columns]
        key = key_of(table, r)
    elif action == READ:  # as an update that does not say what was there
        image_at(table, r, True)
        return there(table, UPDATE, key_of(table, r), block)
    if not image_at(table, r, action != DELETE):
        return gone(table, key, start, end, block)
    if action == UPDATE and not same_key(table, r, key):
        gone(table, key, start, end, block)
        action = INSERT
    return there(table, action, key_of(table, r) if action == INSERT else key, block)


cdef int there(TableChanges table, unsigned char action, bytes key, Block block) except -1:
    """Note the newest image as that of a key which is inserted, or changed."""
    cdef Image image = <Image>table.keys.get(key)
    if action == INSERT:
        if image is None:
            image = Image.__new__(Image)
            image.before = False
            table.keys[key] = image
        elif image.after:
            raise BrokenRule(Rule.KEY_EXISTS, table=table.layout.name)
        image.after = True
    elif image is None:
        image = Image.__new__(Image)
        image.before = True
        image.after = True
        table.keys[key] = image
    elif not image.after:
        raise BrokenRule(Rule.KEY_DELETED, table=table.layout.name)
    image.block = block
    image.start = table.ends[0]
    image.end = table.ends[table.columns]
    return 0


cdef int gone(TableChanges table, bytes key, Py_ssize_t start, Py_ssize_t end, Block block) except -1:
    cdef Image image = <Image>table.keys.get(key)
    if image is None:
        image = Image.__new__(Image)
        image.before = True
        table.keys[key] = image
    elif not image.after:
        raise BrokenRule(Rule.KEY_DELETED, table=table.layout.name)
    image.after = False
    image.block = block
    image.start = start
    image.end = end
    return 0


cdef int counted_row(TableChanges table, unsigned char action, Reader r, Block block) except -1:
    if image_at(table, r, action == UPDATE or action == DELETE):
        count(table, r, block, -1)
    if image_at(table, r, action != DELETE):
        count(table, r, block, 1)
    return 0


cdef int count(TableChanges table, Reader r, Block block, int by) except -1:
    cdef Py_ssize_t start = table.ends[0]
    cdef Py_ssize_t end = table.ends[table.columns]
    cdef bytes values = PyBytes_FromStringAndSize(<const char *>&r.data[start], end - start)
    if block.metadata is not None:
        return count_copies(table, values, image_of(block, start, end), by)
    cdef Image image = <Image>table.keys.get(values)
    if image is None:
        image = image_of(block, start, end)
        table.keys[values] = image
    image.surplus += by
    return 0


cdef int count_copies(TableChanges table, bytes values, Image image, int by) except -1:
    """Count a row without a key where rows differ by their event."""
    cdef Copies copies = <Copies>table.keys.get(values)
    if copies is None:
        copies = Copies.__new__(Copies)
        copies.gone = []
        copies.there = []
        table.keys[values] = copies
    if by > 0:
        copies.there.append(image)
    elif copies.there:
        copies.there.pop()
    else:
        copies.gone.append(image)
    return 0


cdef Image image_of(Block block, Py_ssize_t start, Py_ssize_t end):
    cdef Image image = Image.__new__(Image)
    image.block = block
    image.start = start
    image.end = end
    return image


cdef bint image_at(TableChanges table, Reader r, bint expected) except -1:
    """Walk an image, if the action says that there must be one."""
    cdef unsigned char branch = read_byte(r)
    if branch != (2 if expected else 0):
        raise BrokenRule(Rule.IMAGE_KIND, table=table.layout.name)
    if not expected:
        return False
    if read_block(r) != table.columns:
        raise BrokenRule(Rule.IMAGE_VALUES, table=table.layout.name)
    walk(table, r)
    if read_byte(r) != 0:
        raise ValueError("an image in several blocks")
    return True


cdef inline int walk(TableChanges table, Reader r) except -1:
    """Walk an image's values, and note their ends."""
    cdef Py_ssize_t column
    table.ends[0] = r.at
    for column in range(table.columns):
        skip_value(r)
        table.ends[column + 1] = r.at
    return 0


cdef bytes key_of(TableChanges table, Reader r):
    cdef Py_ssize_t i, column, last
    cdef bytes part
    column = table.key[0]
    last = column
    for i in range(1, table.key.shape[0]):
        if table.key[i] != last + 1:
            break
        last += 1
    else:
        part = PyBytes_FromStringAndSize(<const char *>&r.data[table.ends[column]],
                                         table.ends[last + 1] - table.ends[column])
        return part
    parts = []
    for i in range(table.key.shape[0]):
        column = table.key[i]
        parts.append(PyBytes_FromStringAndSize(<const char *>&r.data[table.ends[column]],
                                               table.ends[column + 1] - table.ends[column]))
    return b"".join(parts)


cdef bint same_key(TableChanges table, Reader r, bytes key) except -1:
    """Return whether the newest image has this key."""
    cdef Py_ssize_t i, column, size, at = 0
    cdef Py_ssize_t length = len(key)
    cdef const char *have = key
    for i in range(table.key.shape[0]):
        column = table.key[i]
        size = table.ends[column + 1] - table.ends[column]
        if size > length - at or memcmp(&have[at], &r.data[table.ends[column]], size) != 0:
            return False
        at += size
    return at == length
