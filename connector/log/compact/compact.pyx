"""Compacts the row changes of a range of whole events to one net change per key.

A key's net change depends on two facts: whether the key existed before the range (no, if its first change is an
insert) and whether it exists after it (no, if its last change is a delete):

    before  after
      no     yes    insert, with the last image
      yes    yes    update, with the last image
      yes    no     delete, with the last image, of which the key counts
      no     no     nothing

A changed key is a delete of the old and an insert of the new. A key is the bytes of its columns' values, never
compared by a collation. An insert of a key that is there, or a change of one that is gone, contradicts the log.
A table without a key is a multiset of full images: inserts add one, deletes take one away.
Where the target has metadata columns, each remaining image gets the values of its own event. Equal rows without a key
then differ by their event: a delete takes the newest one, and rows from before the range are the oldest.
Once an image of a table lacks columns, the following changes of that table are merged by column (`PartialMerger`).

Values are walked, not decoded. Images stay where Kafka's messages have them until `drain` copies those that remain.
"""

from array import array

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp, memcpy

from connector.errors import LogDamaged, Unsupported
from connector.log.format.avro_reader cimport (
    Reader,
    read_block,
    read_byte,
    read_index,
    read_text,
    skip_map,
    skip_text,
    skip_value,
)
from connector.log.compact.merge_partial cimport PartialMerger
from connector.log.format.change_header cimport read_change_header, skip_change_header
from connector.log.format.message cimport Block, Message
from connector.log.compact.key_order cimport in_order
from connector.log.compact.scan cimport Messages, ScannedMessage
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.log.ids import Kind

cdef object DDL = Kind.DDL

cdef enum:
    INSERT = 0  # connector.log.ids.Action
    UPDATE = 1
    DELETE = 2
    ACTIONS = 3


@cython.no_gc  # one for each row, and never part of a reference cycle
cdef class Image:
    """The position of a row image's values; also the state of its key, or the number of its copies."""

    cdef Block block
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef bint before  # the key existed before the range
    cdef bint after  # and exists now
    cdef Py_ssize_t surplus  # without a key: inserts minus deletes


@cython.no_gc
cdef class Copies:
    """Equal rows without a key that differ by their event: those that were deleted, and those that exist."""

    cdef list gone
    cdef list there


cdef class Table:
    """One table in one layout, and the changes of its keys, in the order of each key's first change."""

    cdef object layout
    cdef bytes head
    cdef Py_ssize_t columns
    cdef Py_ssize_t[::1] key
    cdef Py_ssize_t[::1] ends  # of the values in the newest image; ends[0] is its start
    cdef dict keys
    cdef long long changes
    cdef PartialMerger merger  # None while all images have all columns


cdef class Compactor:
    """Compacts fragments of whole events, or of one unfinished event, to net changes.

    Args:
        topic: named in errors.
        columns: the target's metadata columns, None if it has none; the layouts of net changes have them, too.
        known: false while rows may be newer than the event (initial load, rewind): these columns are then NULL.
    """

    cdef str topic
    cdef MetadataValuesOf metadata_values  # None where the target has no metadata columns
    cdef dict layouts  # bytes of a change's header -> TableLayout and presence bitmaps; never forgotten
    cdef dict same  # TableLayout -> the first equal one
    cdef dict current  # table name -> Table
    cdef list tables  # in the order of their first changes; a name twice where its layout changed
    cdef readonly long long rows
    cdef readonly long long size

    def __init__(self, topic, columns=None, *, bint known=True):
        self.topic = topic
        self.metadata_values = None if columns is None else MetadataValuesOf(columns, known)
        self.layouts = {}
        self.same = {}
        self._begin()

    cdef _begin(self):
        self.current = {}
        self.tables = []
        self.rows = 0
        self.size = 0

    def add(self, Message message, long long before=0):
        """Add one fragment's row changes; the statements that a DDL event's fragment begins with are left out.

        Args:
            message: the fragment.
            before: rows that the event had in earlier fragments.

        Returns:
            The rows that the event has now.

        Raises:
            LogDamaged: the bytes are not what the schema says, the changes contradict earlier ones, or the event has
                another number of rows than its header counts.
            Unsupported: a statement among row changes, or a row image without the key.
        """
        cdef Reader r = Reader.__new__(Reader)
        r.data = message.block.data
        r.at = message.changes
        r.end = message.end
        try:
            before += self.changes(r, self.block_of(message), message.header.kind is DDL)
            counted(before, message.header.rows)
        except (ValueError, IndexError, Unsupported) as error:
            self.failed(error, message)
        return before

    def add_range(self, Messages messages, Py_ssize_t first, Py_ssize_t end, long long rows, long long size):
        """Add whole events, one fragment each, until there are enough rows or bytes for one commit.

        Args:
            messages: the messages, one for each event.
            first, end: the indexes to add, without `end`.
            rows, size: the limits of one commit; the event that reaches one of them is the last.

        Returns:
            The index of the next message to add; `end` when all were added.

        Raises:
            LogDamaged, Unsupported: as `add` does.
        """
        cdef Reader r = Reader.__new__(Reader)
        cdef ScannedMessage* message
        cdef Block block = messages.scanned.block
        r.data = block.data
        while first < end:
            message = messages.at(first)
            r.at = message.changes
            r.end = message.end
            if self.metadata_values is not None:
                block = self.block_of(messages.one(first))
            try:
                counted(self.changes(r, block, False), message.header.rows)
            except (ValueError, IndexError, Unsupported) as error:
                self.failed(error, messages.one(first))
            first += 1
            if self.rows >= rows or self.size >= size:
                break
        return first

    def drain(self):
        """Drain the net changes, table by table, an earlier layout of a table before a later one."""
        net = [drained(table, self.metadata_values) for table in self.tables]
        self._begin()
        return [rows for rows in net if len(rows)]

    def met(self):
        """Each layout so far, and whether its images lacked columns."""
        return [(layout, bool(before or after)) for layout, before, after in self.layouts.values()]

    cdef Block block_of(self, Message message):
        """The bytes of a message's images, with the metadata values of its event where the target has such columns."""
        if self.metadata_values is None:
            return message.block
        cdef Block block = Block.__new__(Block)
        block.data = message.block.data
        block.metadata = self.metadata_values.of(message.header)
        return block

    cdef long long changes(self, Reader r, Block block, bint ddl) except -1:
        """Add a fragment's changes; return their number of rows."""
        cdef Py_ssize_t start = r.at
        cdef long long count, item, rows = 0
        cdef unsigned char branch
        while True:
            count = read_block(r)
            if count == 0:
                break
            for item in range(count):
                branch = read_byte(r)
                if branch == 0 and rows == 0 and ddl:
                    skip_text(r)
                    skip_text(r)
                    skip_map(r)
                    continue
                if branch == 0:
                    other_statement(r)
                    continue
                if branch != 2:
                    raise ValueError("a change of a kind that the schema does not have")
                rows += self.change(r, block)
        if r.at != r.end:
            raise ValueError("bytes after the last change")
        self.rows += rows
        self.size += r.end - start
        return rows

    cdef int failed(self, Exception error, Message message) except -1:
        """Raise the error that names the event."""
        at = f"{self.topic}-{message.partition}@{message.offset}"
        if isinstance(error, Unsupported):
            error.where = {"seqno": message.header.seqno, "at": at} | error.where
            raise error
        raise LogDamaged(
            f"the row changes of an event are wrong: {error}",
            hint="nothing was applied of this event",
            seqno=message.header.seqno,
            fragno=message.header.fragno,
            at=at,
        ) from error

    cdef long long change(self, Reader r, Block block) except -1:
        cdef Table table = self.table(r)
        cdef unsigned char action = read_index(r, ACTIONS)
        cdef long long count, row, rows = 0
        if table.merger is not None:
            return self.merge(table, action, r, block)
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

    cdef long long merge(self, Table table, unsigned char action, Reader r, Block block) except -1:
        """Add a change of a table that is merged by column; return its number of rows."""
        cdef long long count, row, rows = 0
        cdef PartialMerger merger = table.merger
        if merger.sealed(action):
            table = self.begin_merger(table.layout, table.head)
            table.merger.columns(merger.before, merger.after)
            merger = table.merger
        while True:
            count = read_block(r)
            if count == 0:
                break
            for row in range(count):
                merger.row(action, r, block.metadata)
            rows += count
        table.changes += rows
        return rows

    cdef Table begin_merger(self, object layout, bytes head):
        """Begin to merge a table by column."""
        cdef Table table = new_table(layout, head)
        table.merger = PartialMerger(layout, self.metadata_values)
        self.current[layout.name] = table
        self.tables.append(table)
        return table

    cdef Table table(self, Reader r):
        """Read a change's header and return its table."""
        cdef Py_ssize_t start = r.at
        cdef Table table
        if self.tables:
            # Mostly the same as before. No header is a prefix of another, so comparing its own bytes suffices.
            table = <Table>self.tables[len(self.tables) - 1]
            if table is self.current.get(table.layout.name) and starts_with(r, table.head):
                r.at += len(table.head)
                return table
        skip_change_header(r)
        cdef bytes head = PyBytes_FromStringAndSize(<const char *>&r.data[start], r.at - start)
        known = self.layouts.get(head)
        if known is None:
            r.at = start
            layout, before, after = read_change_header(r)
            known = self.layouts[head] = self.same.setdefault(layout, layout), before, after
        layout, before, after = known
        table = self.current.get(layout.name)
        if before or after or (table is not None and table.merger is not None):
            if table is None or table.merger is None or table.layout is not layout:
                table = self.begin_merger(layout, head) if before or after else None
            if table is not None:
                table.head = head
                table.merger.columns(before, after)
                return table
        if table is None or table.head != head:
            table = new_table(layout, head)
            self.current[layout.name] = table
            self.tables.append(table)
        return table


cdef int other_statement(Reader r) except -1:
    """Refuse a statement among row changes, except SAVEPOINT and its release, which change nothing."""
    skip_text(r)
    sql = read_text(r)
    if sql.startswith(SAVEPOINTS):
        return skip_map(r)
    raise Unsupported(
        "a statement among row changes, which no target can apply",
        hint="the source needs binlog_format=ROW, and its producer source.statements=refuse", sql=sql[:200],
    )


cdef int counted(long long rows, long long expected) except -1:
    if rows != expected:
        raise ValueError(f"an event has {rows} rows where its header counts {expected}")
    return 0


cdef Table new_table(object layout, bytes head):
    cdef Table table = Table.__new__(Table)
    cdef Py_ssize_t columns = len(layout.columns)
    table.layout = layout
    table.head = head
    table.columns = columns
    table.key = array("q", layout.key)
    table.ends = array("q", bytes(8 * (columns + 1)))
    table.keys = {}
    for column in layout.key:
        if not 0 <= column < columns:
            raise ValueError("a key column that the table does not have")
    return table


cdef int keyed_row(Table table, unsigned char action, Reader r, Block block) except -1:
    cdef Image image, new
    cdef bytes key = None
    cdef Py_ssize_t start, end
    start = 0
    end = 0
    if image_at(table, r, action != INSERT):
        start = table.ends[0]
        end = table.ends[table.columns]
        key = key_of(table, r)
    if not image_at(table, r, action != DELETE):
        return gone(table, key, start, end, block)
    if action == UPDATE and not same_key(table, r, key):
        gone(table, key, start, end, block)
        action = INSERT
    if action == INSERT:
        key = key_of(table, r)
        image = <Image>table.keys.get(key)
        if image is None:
            image = Image.__new__(Image)
            image.before = False
            table.keys[key] = image
        elif image.after:
            raise ValueError(f"an insert of a key of {table.layout.name} that already exists")
        image.after = True
    else:
        image = <Image>table.keys.get(key)
        if image is None:
            image = Image.__new__(Image)
            image.before = True
            image.after = True
            table.keys[key] = image
        elif not image.after:
            raise ValueError(f"an update of a key of {table.layout.name} that was deleted")
    image.block = block
    image.start = table.ends[0]
    image.end = table.ends[table.columns]
    return 0


cdef int gone(Table table, bytes key, Py_ssize_t start, Py_ssize_t end, Block block) except -1:
    cdef Image image = <Image>table.keys.get(key)
    if image is None:
        image = Image.__new__(Image)
        image.before = True
        table.keys[key] = image
    elif not image.after:
        raise ValueError(f"a delete of a key of {table.layout.name} that was deleted")
    image.after = False
    image.block = block
    image.start = start
    image.end = end
    return 0


cdef int counted_row(Table table, unsigned char action, Reader r, Block block) except -1:
    if image_at(table, r, action != INSERT):
        count(table, r, block, -1)
    if image_at(table, r, action != DELETE):
        count(table, r, block, 1)
    return 0


cdef int count(Table table, Reader r, Block block, int by) except -1:
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


cdef int count_copies(Table table, bytes values, Image image, int by) except -1:
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


cdef bint image_at(Table table, Reader r, bint expected) except -1:
    """Walk an image and note the ends of its values. The action decides whether an image must be there."""
    cdef unsigned char branch = read_byte(r)
    cdef Py_ssize_t column
    if branch != (2 if expected else 0):
        raise ValueError("a before or after image where the action has none, or none where it has one")
    if not expected:
        return False
    if read_block(r) != table.columns:
        raise ValueError(f"an image of {table.layout.name} does not have as many values as there are columns")
    table.ends[0] = r.at
    for column in range(table.columns):
        skip_value(r)
        table.ends[column + 1] = r.at
    if read_byte(r) != 0:
        raise ValueError("an image in several blocks")
    return True


cdef bytes key_of(Table table, Reader r):
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


cdef bint same_key(Table table, Reader r, bytes key) except -1:
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


cdef bint starts_with(Reader r, bytes head) except -1:
    cdef Py_ssize_t length = len(head)
    cdef const char *have = head
    return length <= r.end - r.at and memcmp(have, &r.data[r.at], length) == 0


cdef object drained(Table table, MetadataValuesOf metadata_values):
    cdef Image image
    cdef Copies copies
    cdef list inserts = [], updates = [], deletes = []
    if table.merger is not None:
        return table.merger.drain(table.changes)
    if metadata_values is not None and not table.key.shape[0]:
        for copies in table.keys.values():
            inserts += copies.there
            deletes += copies.gone
        table.keys = {}
    for image in in_order(table.keys) if table.key.shape[0] else table.keys.values():
        if not table.key.shape[0]:
            if image.surplus > 0:
                inserts.extend([image] * image.surplus)
            elif image.surplus < 0:
                deletes.extend([image] * -image.surplus)
        elif image.after:
            (updates if image.before else inserts).append(image)
        elif image.before:
            deletes.append(image)
    if metadata_values is None:
        return NetChanges(table.layout, gathered(inserts), gathered(updates), gathered(deletes), table.changes)
    layout = metadata_values.beside(table.layout)
    return NetChanges(layout, with_metadata(inserts), with_metadata(updates), with_metadata(deletes), table.changes)


cdef object gathered(list images):
    """The images' bytes, one after the other."""
    cdef Image image
    cdef Py_ssize_t size = 0, at = 0, i = 0, length
    for image in images:
        size += image.end - image.start
    data = bytearray(size)
    ends = array("Q", bytes(8 * len(images)))
    cdef unsigned char[::1] out
    cdef unsigned long long[::1] out_ends
    if images:
        out = data
        out_ends = ends
        for image in images:
            length = image.end - image.start
            if length > size - at or image.start < 0 or image.end > image.block.data.shape[0]:
                raise IndexError("an image outside its block")
            memcpy(&out[at], &image.block.data[image.start], length)
            at += length
            out_ends[i] = at
            i += 1
    return Images(data, ends)


cdef object with_metadata(list images):
    """The images' bytes, one after the other, each followed by the values of the metadata columns."""
    cdef Image image
    cdef bytes joined
    cdef const char *values
    cdef Py_ssize_t size = 0, at = 0, i = 0, length, more
    for image in images:
        size += image.end - image.start + len((<MetadataValues?>image.block.metadata).joined)
    data = bytearray(size)
    ends = array("Q", bytes(8 * len(images)))
    cdef unsigned char[::1] out
    cdef unsigned long long[::1] out_ends
    if images:
        out = data
        out_ends = ends
        for image in images:
            joined = (<MetadataValues>image.block.metadata).joined
            values = joined
            length = image.end - image.start
            more = len(joined)
            if length + more > size - at or image.start < 0 or image.end > image.block.data.shape[0]:
                raise IndexError("an image outside its block")
            memcpy(&out[at], &image.block.data[image.start], length)
            if more:
                memcpy(&out[at + length], values, more)
            at += length + more
            out_ends[i] = at
            i += 1
    return Images(data, ends)
