"""Change headers, encoded once for many row changes: everything before their rows."""

cimport cython

from connector.producer.encode.change import change_header
from connector.log.ids import Action

cdef Py_ssize_t KEPT = 4096


@cython.final
cdef class Table:
    """A layout's change headers, and its shard."""

    def __init__(self, layout, sharding):
        self.layout = layout
        self.shard = sharding.rule.of(layout.name)
        self.bookkeeping = sharding.keeps_books(layout.name)
        self.heads = [None] * len(Action)
        self.parts = {}

    cdef bytes head(self, object action, bytes before, bytes after):
        """The header of a row change of this layout and action, whose images have these columns (empty: all)."""
        cdef int index = action
        if before or after:
            return self.part(action, before, after)
        head = self.heads[index]
        if head is None:
            head = self.heads[index] = change_header(self.layout, action)
        return head

    cdef bytes part(self, object action, bytes before, bytes after):
        """The header of a row change with partial images."""
        cdef tuple key = (action, before, after)
        head = self.parts.get(key)
        if head is None:
            if len(self.parts) >= KEPT:
                self.parts.clear()
            head = self.parts[key] = change_header(self.layout, action, before, after)
        return head


@cython.final
cdef class ChangeHeaders:
    """Tables by their layouts.

    Args:
        sharding: a `connector.producer.encode.numbering.Sharding`.
    """

    def __init__(self, sharding):
        self.sharding = sharding
        # By identity: hashing a layout means hashing every column. The layout is kept, so its id stays its own.
        self.kept = {}

    cdef Table of(self, object layout):
        """The table of a layout."""
        if self.newest is not None and self.newest.layout is layout:
            return self.newest
        self.newest = self.kept.get(id(layout))
        if self.newest is None:
            if len(self.kept) >= KEPT:
                self.kept.clear()
            self.newest = self.kept[id(layout)] = Table(layout, self.sharding)
        return self.newest

    def __call__(self, layout, action, bytes before=b"", bytes after=b""):
        """The header of a row change; see `change.change_header`."""
        return self.of(layout).head(action, before, after)

    def place(self, layout):
        """The shard of a layout's rows, and whether the table is bookkeeping."""
        table = self.of(layout)
        return table.shard, table.bookkeeping
