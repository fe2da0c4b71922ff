# cython: cdivision=True
"""Tables of rows events: TABLE_MAP events, and the header of rows events."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from connector.mysql.memory cimport Cursor, damaged, left, little, packed, take
from connector.mysql.values.row_transform cimport RowTransform
from connector.mysql.values.rows cimport RowCodec

from connector.mysql.values.columns import keeping_bytes
from connector.mysql.binlog.events.table_map import table_layout, table_map, table_name

cdef enum:
    MAX_LAYOUTS = 20000
    MAX_PRESENCES = 4096
    HIDDEN_KEY = 0x04  # flag of a TABLE_MAP: TM_GENERATED_INVISIBLE_PK_F
    NO_TABLE = 0xFFFFFF  # the id of a rows event without rows, which only ends a statement

cdef enum Act:  # connector.log.ids.Action
    INSERT = 0
    UPDATE = 1
    DELETE = 2

cdef bytes EVERY = b""
cdef tuple ACTIONS = ("insert", "update", "delete")  # as the configuration calls them


cdef class CapturedTable:
    """A table as one TABLE_MAP described it.

    Args:
        definition: the bytes of its TABLE_MAP after id and flags.
        layout: the table's layout; None if the table is not captured.
        codec: decodes the rows; None if the table is not captured.
        named: true if the TABLE_MAP names the columns.
        actions: a bit for each captured action.
        transform: applied to its rows; None: no rule changes them.
        hidden: true if its first column is a generated invisible primary key.
    """

    def __init__(
        self, bytes definition, layout, RowCodec codec, bint named, int actions, RowTransform transform=None,
        bint hidden=False
    ):
        self.definition = definition
        self.hidden = hidden
        self.layout = layout
        self.codec = codec
        self.actions = actions
        self.transform = transform
        self.named = named
        self.presences = {}

    cdef bytes present(self, const uint8_t* bits):
        """The columns of an image: a bit per column, bits beyond the last column 0; empty: all columns."""
        cdef int width = self.codec.width
        cdef int i
        cdef uint8_t last = <uint8_t>((1 << ((width - 1) & 7) + 1) - 1)
        for i in range((width - 1) >> 3):
            if bits[i] != 0xFF:
                break
        else:
            if bits[(width - 1) >> 3] & last == last:
                return EVERY
        cdef bytes key = bits[: (width - 1) >> 3] + bytes([bits[(width - 1) >> 3] & last])
        if len(self.presences) >= MAX_PRESENCES:
            self.presences.clear()
        return self.presences.setdefault(key, key)


cdef class Tables:
    """Finds the table of every rows event.

    An id is valid until its server restarts. The bytes after it are the definition: equal bytes give the same layout
    object.

    Args:
        filters: a `connector.mysql.binlog.events.capture_filter.CaptureFilter`.
        resolver: a `ColumnNameResolver`.
    """

    def __init__(self, filters, resolver):
        self.filters = filters
        self.resolver = resolver
        self.ids = {}
        self.known = {}

    cdef int forget(self, bint mariadb) except -1:
        """Forgets ids at a new file: its server may be another one, of another vendor, or restarted."""
        self.ids.clear()
        if mariadb != self.mariadb:
            self.mariadb = mariadb
            self.known.clear()
        self.newest = None
        return 0

    cdef int renamed(self) except -1:
        """Forgets tables whose column names a definition may have changed."""
        cdef CapturedTable table
        for table in list(self.known.values()):
            if not table.named:
                del self.known[table.definition, table.hidden]
        return self.forget(self.mariadb)

    cdef int describe(self, Cursor* body) except -1:
        """TABLE_MAP: 6 bytes id, 2 flags, then the definition."""
        cdef uint64_t table_id = little(take(body, 6), 6)
        cdef bytes definition
        cdef bint hidden = take(body, 2)[0] & HIDDEN_KEY and not self.mariadb
        if self.skipping:
            self.ids[table_id] = self.newest = NOT_CAPTURED
            self.newest_id = table_id
            return 0
        if (
            self.newest is not None
            and table_id == self.newest_id
            and hidden == self.newest.hidden
            and same(body, self.newest.definition)
        ):
            return 0
        definition = body.data[: body.end - body.data]
        table = self.known.get((definition, hidden))
        if table is None:
            if len(self.known) >= MAX_LAYOUTS:
                self.known.clear()
            table = self.known[definition, hidden] = self._make(definition, hidden)
        self.ids[table_id] = self.newest = table
        self.newest_id = table_id
        return 0

    cdef CapturedTable _make(self, bytes definition, bint hidden):
        name = table_name(definition)
        if not self.filters.captures(name.schema, name.table):
            return CapturedTable(definition, None, None, True, 0, None, hidden)
        actions = self.filters.actions(name.schema, name.table)
        captured = sum(1 << action for action, called in enumerate(ACTIONS) if called in actions)
        if not captured:
            return CapturedTable(definition, None, None, True, 0, None, hidden)
        table = table_map(definition, mariadb=self.mariadb, hidden_key=hidden)
        layout, specs = table_layout(table) if table.named else self.resolver.layout(table)
        for i, column in enumerate(layout.columns):
            if (column.charset and self.filters.keeps_invalid_text(name.schema, name.table, column.name)) or (
                column.type == "json" and self.filters.keeps_differences
            ):
                specs[i] = keeping_bytes(specs[i])
        codec = RowCodec(specs, self.filters.largest_event)
        transform = self.filters.row_transform(layout)
        return CapturedTable(definition, layout, codec, table.named, captured, transform, hidden)

    cdef CapturedTable of_rows(self, Cursor* body, bint second, int action):
        """Reads the header of a rows event: id, flags, extra data (version 2), columns, a bit per column in the images.

        Sets `before` and `after`. Returns None if the action is not captured.
        """
        cdef uint64_t table_id = little(take(body, 6), 6)
        cdef Py_ssize_t extra
        cdef uint64_t width
        cdef CapturedTable table
        take(body, 2)
        if second:
            extra = <Py_ssize_t>little(take(body, 2), 2)
            if extra < 2:
                damaged(b"a rows event's extra data is shorter than its own length")
            take(body, extra - 2)
        table = self.newest if table_id == self.newest_id else self.ids.get(table_id)
        if table is None:
            if table_id == NO_TABLE:
                return None
            damaged(b"rows of a table without a TABLE_MAP")
        if not table.actions >> action & 1:
            return None
        width = packed(body)
        if width != <uint64_t>table.codec.width:
            damaged(b"rows have another number of columns than their table")
        self.before = self.after = table.present(take(body, <Py_ssize_t>(width + 7) // 8))
        if action == UPDATE:
            self.after = table.present(take(body, <Py_ssize_t>(width + 7) // 8))
        elif action == INSERT:
            self.before = EVERY
        elif action == DELETE:
            self.after = EVERY
        return table


cdef CapturedTable NOT_CAPTURED = CapturedTable(b"", None, None, True, 0)


cdef bint same(const Cursor* body, bytes definition) noexcept:
    cdef Py_ssize_t size = len(definition)
    return left(body) == size and memcmp(body.data, <const uint8_t*>definition, size) == 0
