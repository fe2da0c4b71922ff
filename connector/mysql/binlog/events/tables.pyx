# cython: cdivision=True
"""The tables that rows belong to: TABLE_MAP events, and what stands before the images of a rows event."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from connector.mysql.memory cimport Cursor, damaged, left, little, packed, take
from connector.mysql.values.row_transform cimport RowTransform
from connector.mysql.values.rows cimport RowCodec

from connector.mysql.values.columns import keeping_invalid
from connector.mysql.binlog.events.table_map import table_layout, table_map, table_name

cdef enum:
    MAX_LAYOUTS = 20000
    MAX_PRESENCES = 4096
    HIDDEN_KEY = 0x04  # flag of a TABLE_MAP: TM_GENERATED_INVISIBLE_PK_F
    NO_TABLE = 0xFFFFFF  # a rows event that only ends a statement names this table

cdef enum Act:  # connector.log.ids.Action
    INSERT = 0
    UPDATE = 1
    DELETE = 2

cdef bytes EVERY = b""
cdef tuple ACTIONS = ("insert", "update", "delete")  # as the configuration calls them


cdef class Table:
    """A table as one TABLE_MAP described it.

    Args:
        definition: the bytes of its TABLE_MAP behind id and flags.
        layout: its columns; None when it is not wanted.
        codec: decodes its rows; None when it is not wanted.
        named: whether the TABLE_MAP alone says all this.
        hidden: whether its flags say that its first column is a key which the server made.
        wanted: a bit for each action whose rows are.
        shape: what a rule makes of its rows; None: nothing.
    """

    def __init__(
        self, bytes definition, layout, RowCodec codec, bint named, int wanted, RowTransform shape=None, bint hidden=False
    ):
        self.definition = definition
        self.hidden = hidden
        self.layout = layout
        self.codec = codec
        self.wanted = wanted
        self.shape = shape
        self.named = named
        self.presences = {}

    cdef bytes present(self, const uint8_t* bits):
        """Which columns an image has: a bit per column, those beyond the last one 0; empty when it has all."""
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

    An id means nothing beyond its server's life. The bytes behind it are the definition: the same bytes are the same
    table, and give the same layout object.

    Args:
        filters: `wants`, `actions` and `shape` of a table, `keeps_invalid_text` of a column, `largest_event`.
        naming: see `connector.mysql.schema_history.column_names`.
    """

    def __init__(self, filters, naming):
        self.filters = filters
        self.naming = naming
        self.ids = {}
        self.known = {}

    cdef int forget(self, bint mariadb) except -1:
        """A new file: its server may be another, of another kind, or have started again."""
        self.ids.clear()
        if mariadb != self.mariadb:
            self.mariadb = mariadb
            self.known.clear()
        self.newest = None
        return 0

    cdef int renamed(self) except -1:
        """What the same TABLE_MAP is called may be another now."""
        cdef Table table
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
            self.ids[table_id] = self.newest = NOT_WANTED
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
            table = self.known[definition, hidden] = self._made(definition, hidden)
        self.ids[table_id] = self.newest = table
        self.newest_id = table_id
        return 0

    cdef Table _made(self, bytes definition, bint hidden):
        name = table_name(definition)
        if not self.filters.wants(name.schema, name.table):
            return Table(definition, None, None, True, 0, None, hidden)
        actions = self.filters.actions(name.schema, name.table)
        wanted = sum(1 << action for action, called in enumerate(ACTIONS) if called in actions)
        if not wanted:
            return Table(definition, None, None, True, 0, None, hidden)
        table = table_map(definition, mariadb=self.mariadb, hidden_key=hidden)
        layout, specs = table_layout(table) if table.named else self.naming.layout(table)
        for i, column in enumerate(layout.columns):
            if column.charset and self.filters.keeps_invalid_text(name.schema, name.table, column.name):
                specs[i] = keeping_invalid(specs[i])
        codec = RowCodec(specs, self.filters.largest_event)
        return Table(definition, layout, codec, table.named, wanted, self.filters.shape(layout), hidden)

    cdef Table of_rows(self, Cursor* body, bint second, int action):
        """Id, flags, extra data in the second version; columns; a bit per column that is there. Then come the images.

        Sets `before` and `after`. Returns None when the table is not wanted.
        """
        cdef uint64_t table_id = little(take(body, 6), 6)
        cdef Py_ssize_t extra
        cdef uint64_t width
        cdef Table table
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
            damaged(b"rows of a table that was not described")
        if not table.wanted >> action & 1:
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


cdef Table NOT_WANTED = Table(b"", None, None, True, 0)


cdef bint same(const Cursor* body, bytes definition) noexcept:
    cdef Py_ssize_t size = len(definition)
    return left(body) == size and memcmp(body.data, <const uint8_t*>definition, size) == 0
