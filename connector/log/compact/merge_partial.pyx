"""Compacts changes of a table whose images lack columns (binlog_row_image MINIMAL, NOBLOB), by column.

For each row it keeps the columns that got a value in the range of events, and the key that the row had before the
range. An update of the key moves the row with its absent columns. Moves may form chains and rings (swapped keys); only
the old key of each row counts in the end. Absent columns of an insert have their defaults, which only the target knows.
Without a key MySQL logs the before image whole, so the after image is completed from it.

Such images are rare beside full ones, which `compact` handles; so values are kept as Python objects here.
"""

from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.errors import Unsupported
from connector.log.format.avro_reader cimport Reader, read_block, read_byte, skip_value
from connector.log.compact.key_order cimport in_order
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf
from connector.log.format import avro
from connector.log.compact.net_changes import Images, NetChanges, Partial
from connector.log.rules import BrokenRule, Rule

cdef enum:
    INSERT = 0  # connector.log.ids.Action
    UPDATE = 1
    DELETE = 2
    READ = 3

cdef bytes ABSENT = b"\x00"  # Avro's null


cdef class MergedRow:
    """A row that exists."""


cdef class PartialMerger:
    """One table in one layout.

    Args:
        layout: the table's columns and key.
        metadata_values: the values of the target's metadata columns; None where it has none.
    """

    def __init__(self, layout, MetadataValuesOf metadata_values):
        self.layout = layout
        self.metadata_values = metadata_values
        self.rows = {}
        self.touched = {}
        self.gone = set()
        self.there = {}
        self.lost = {}
        self.added = []
        self.before = self.after = b""

    cdef int columns(self, bytes before, bytes after) except -1:
        """Set the columns of the following images."""
        self.before = before
        self.after = after
        return 0

    cdef bint sealed(self, unsigned char action) except -1:
        """Return whether a change must go to a new merger, to be applied after this one's net changes.

        Without a key a row with defaults, which only the target knows, may be what is deleted next.
        """
        return len(self.added) > 0 and action != INSERT and action != READ

    cdef int row(self, unsigned char action, Reader r, MetadataValues metadata) except -1:
        """Add one row of an event.

        Raises:
            ValueError: the bytes are no row, or contradict earlier ones.
            Unsupported: an image lacks the key, or of a table without a key any column.
        """
        cdef list old = self.image(r, self.before, action == UPDATE or action == DELETE)
        cdef list new = self.image(r, self.after, action != DELETE)
        self.metadata = metadata
        return self.keyed(action, old, new) if self.layout.key else self.counted(action, old, new)

    cdef list image(self, Reader r, bytes present, bint expected):
        """The bytes of an image's values, None where a column is absent; None where there is no image."""
        cdef Py_ssize_t width = len(self.layout.columns)
        cdef Py_ssize_t start, column, count
        cdef bint some
        cdef list values
        if read_byte(r) != (2 if expected else 0):
            raise BrokenRule(Rule.IMAGE_KIND, table=self.layout.name)
        if not expected:
            return None
        values = [None] * width
        count = read_block(r)
        some = count > 0  # an empty array has one block, its end
        for column in range(width):
            if present and not present[column >> 3] >> (column & 7) & 1:
                continue
            if count == 0:
                raise BrokenRule(Rule.IMAGE_VALUES, table=self.layout.name, values="too few")
            count -= 1
            start = r.at
            skip_value(r)
            values[column] = PyBytes_FromStringAndSize(<const char *>&r.data[start], r.at - start)
        if count != 0:
            raise BrokenRule(Rule.IMAGE_VALUES, table=self.layout.name, values="too many")
        if some and read_byte(r) != 0:
            raise ValueError("an image in several blocks")
        return values

    cdef bytes key(self, list values):
        """The key's values, joined in the key's order."""
        for column in self.layout.key:
            if values[column] is None:
                raise Unsupported(
                    "a row image lacks a column of the key",
                    hint="SET GLOBAL binlog_row_image = FULL, or name the column in the INSERT",
                    table=self.layout.name,
                    column=self.layout.columns[column].name,
                )
        return b"".join([values[column] for column in self.layout.key])

    cdef MergedRow found(self, bytes key, list old):
        """Remove and return the row of this key."""
        cdef MergedRow row = self.rows.pop(key, None)
        if row is not None:
            return row
        if key in self.gone:
            raise BrokenRule(Rule.KEY_DELETED, table=self.layout.name)
        row = MergedRow.__new__(MergedRow)
        row.base = key
        row.values = [None] * len(old)
        for column in self.layout.key:
            row.values[column] = old[column]
        self.touched[key] = row
        return row

    cdef int keyed(self, unsigned char action, list old, list new) except -1:
        cdef MergedRow row
        cdef bytes key
        cdef Py_ssize_t column
        if action == INSERT:
            row = MergedRow.__new__(MergedRow)
            row.values = new
        elif action == READ:
            row = self.found(self.key(new), new)
            row.values = new
        else:
            key = self.key(old)
            row = self.found(key, old)
            self.gone.add(key)
            if action == DELETE:
                return 0
            for column in range(len(new)):
                if new[column] is not None:
                    row.values[column] = new[column]
        key = self.key(row.values)
        if key in self.rows:
            raise BrokenRule(Rule.KEY_EXISTS, table=self.layout.name)
        self.gone.discard(key)
        row.metadata = self.metadata
        self.rows[key] = row
        return 0

    cdef int counted(self, unsigned char action, list old, list new) except -1:
        cdef Py_ssize_t column
        if old is not None:
            if None in old:
                raise Unsupported(
                    "a before image of a table without a primary key lacks columns",
                    hint="give the table a primary key, or SET GLOBAL binlog_row_image = FULL",
                    table=self.layout.name,
                    columns=", ".join(
                        one.name for one, value in zip(self.layout.columns, old, strict=True) if value is None
                    ),
                )
            self.went(b"".join(old))
        if new is None:
            return 0
        for column in range(len(new)):
            if new[column] is None and old is not None:
                new[column] = old[column]
        if None in new:
            self.added.append(self.partial(new, self.metadata, b""))
            return 0
        return self.came(b"".join(new))

    cdef int came(self, bytes values) except -1:
        """Add a row without a key. Without metadata columns it cancels a delete of an equal row."""
        if self.metadata_values is None and self.lost.get(values, 0):
            self.lost[values] -= 1
        else:
            self.there.setdefault(values, []).append(self.metadata)
        return 0

    cdef int went(self, bytes values) except -1:
        """Delete the newest of equal rows without a key."""
        cdef list there = self.there.get(values)
        if there:
            there.pop()
        else:
            self.lost[values] = self.lost.get(values, 0) + 1
        return 0

    cdef object drain(self, long long changes):
        """The net changes."""
        if self.layout.key:
            return self.keyed_net(changes)
        inserts = [self.whole([values], metadata) for values, there in self.there.items() for metadata in there]
        deletes = []
        for values, copies in self.lost.items():
            deletes.extend([self.whole([values], None)] * copies)
        return NetChanges(
            self.stored(), gathered(inserts), gathered([]), gathered(deletes), changes,
            Partial(gathered([]), gathered([]), gathered(self.added)),
        )

    cdef object keyed_net(self, long long changes):
        cdef MergedRow row
        cdef bytes key
        inserts, updates, deletes, changed, moved, added = [], [], [], [], [], []
        kept = set()  # old keys of rows that still exist, maybe with another key
        for row in in_order(self.rows):
            key = self.key(row.values)
            whole = None not in row.values
            base = row.base or b""
            image = self.whole(row.values, row.metadata) if whole else self.partial(row.values, row.metadata, base)
            if row.base is None:
                (inserts if whole else added).append(image)
            elif row.base == key:
                kept.add(key)
                (updates if whole else changed).append(image)
            elif whole:
                inserts.append(image)
            else:
                kept.add(row.base)
                moved.append(image)
        for row in in_order(self.touched):
            if row.base not in kept:
                deletes.append(self.only_key(row))
        return NetChanges(
            self.stored(), gathered(inserts), gathered(updates), gathered(deletes), changes,
            Partial(gathered(changed), gathered(moved), gathered(added)),
        )

    def stored(self):
        """The layout of the net changes."""
        return self.layout if self.metadata_values is None else self.metadata_values.beside(self.layout)

    cdef bytes whole(self, list values, MetadataValues metadata):
        """A whole image, followed by the values of the metadata columns; these are NULL where there are none."""
        if self.metadata_values is None:
            return b"".join(values)
        nulls = ABSENT * len(self.metadata_values.columns.kinds)
        return b"".join([*values, nulls if metadata is None else metadata.joined])

    cdef bytes partial(self, list values, MetadataValues metadata, bytes base):
        """A partial image with the metadata columns, which are always present."""
        return partial(values if metadata is None else values + metadata.values, base)

    def only_key(self, MergedRow row):
        """An image with only the key that a row had before."""
        cdef Reader r = Reader.__new__(Reader)
        cdef Py_ssize_t start
        values = [ABSENT] * len(self.layout.columns)
        r.data = row.base
        r.at = 0
        r.end = len(row.base)
        for column in self.layout.key:
            start = r.at
            skip_value(r)
            values[column] = row.base[start : r.at]
        return self.whole(values, None)


cdef bytes partial(list values, bytes base):
    """An image in the form of `connector.log.compact.net_changes.Partial`.

    Args:
        values: a value or None for each column.
        base: the key that the row had before; b"" for a new row.
    """
    cdef Py_ssize_t column
    bits = bytearray((len(values) + 7) // 8)
    for column in range(len(values)):
        if values[column] is not None:
            bits[column >> 3] |= 1 << (column & 7)
    filled = [ABSENT if value is None else value for value in values]
    return b"".join([*filled, avro.union(bytes(bits)), base])


cdef object gathered(list images):
    cdef Py_ssize_t at = 0
    ends = array("Q")
    for image in images:
        at += len(image)
        ends.append(at)
    return Images(b"".join(images), ends)
