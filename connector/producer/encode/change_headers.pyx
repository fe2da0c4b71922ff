"""Caches encoded change headers, the bytes of a row change before its rows; counts rows and bytes by table."""

cimport cython
from libc.stdint cimport int64_t

from connector.producer.encode.change import change_header
from connector.log.ids import Action

cdef Py_ssize_t KEPT = 4096


@cython.final
cdef class TableHeaders:
    """A layout's change headers, and its shard."""

    def __init__(self, layout, sharding):
        self.layout = layout
        self.shard = sharding.rule.of(layout.name)
        self.bookkeeping = sharding.keeps_books(layout.name)
        self.headers = [None] * len(Action)
        self.parts = {}

    cdef bytes header(self, object action, bytes before, bytes after):
        """Return the header of a row change of this layout and action whose images have these columns (empty: all)."""
        cdef int index = action
        if before or after:
            return self.part(action, before, after)
        header = self.headers[index]
        if header is None:
            header = self.headers[index] = change_header(self.layout, action)
        return header

    cdef bytes part(self, object action, bytes before, bytes after):
        """Return the header of a row change with partial images."""
        cdef tuple key = (action, before, after)
        header = self.parts.get(key)
        if header is None:
            if len(self.parts) >= KEPT:
                self.parts.clear()
            header = self.parts[key] = change_header(self.layout, action, before, after)
        return header


@cython.final
cdef class ChangeHeaders:
    """Caches the tables by their layouts.

    Args:
        sharding: a `connector.producer.encode.numbering.Sharding`.
    """

    def __init__(self, sharding):
        self.sharding = sharding
        # By identity: hashing a layout means hashing every column. The layout is kept, so its id stays its own.
        self.kept = {}
        self.counted = []

    cdef TableHeaders of(self, object layout):
        """Return the table of a layout."""
        if self.newest is not None and self.newest.layout is layout:
            return self.newest
        self.newest = self.kept.get(id(layout))
        if self.newest is None:
            if len(self.kept) >= KEPT:
                self.kept.clear()
            self.newest = self.kept[id(layout)] = TableHeaders(layout, self.sharding)
        return self.newest

    def __call__(self, layout, action, bytes before=b"", bytes after=b""):
        """Return the header of a row change; see `change.change_header`."""
        return self.of(layout).header(action, before, after)

    def shard_of(self, layout):
        """Return the shard of a layout's rows, and True if the table is bookkeeping."""
        table = self.of(layout)
        return table.shard, table.bookkeeping

    cdef int count(self, TableHeaders table, int64_t rows, int64_t size) except -1:
        """Count row changes of an event that ends."""
        if table.rows == 0:
            self.counted.append(table)
        table.rows += rows
        table.size += size
        return 0

    def count_of(self, layout, rows, size):
        """Count row changes of an event that ends, by their layout."""
        self.count(self.of(layout), rows, size)

    def drain_counts(self):
        """Return (table's name, rows, bytes of their images) of the tables that were counted, and begin again."""
        cdef TableHeaders table
        cdef list found = []
        for table in self.counted:
            if table.rows:
                found.append((table.layout.name, table.rows, table.size))
            table.rows = table.size = 0
        self.counted.clear()
        return found
