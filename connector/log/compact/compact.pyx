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
Of a table with a history each change is also kept as a row of it (`HistoryRows`).

Values are walked, not decoded. Images stay where Kafka's messages have them until `drain` copies those that remain.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp

from connector.errors import Unsupported
from connector.log.format.avro_reader cimport (
    Reader,
    read_block,
    read_byte,
    read_index,
    read_map,
    read_text,
    skip_map,
    skip_text,
)
from connector.log.compact.history import EVENT
from connector.log.compact.history_rows cimport HistoryRows, new_history
from connector.log.compact.merge_partial cimport PartialMerger
from connector.log.format.change_header cimport read_change_header, skip_change_header
from connector.log.format.message cimport Block, Message
from connector.log.compact.scan cimport Messages, ScannedMessage
from connector.log.compact.table_changes cimport TableChanges, add_rows, new_table
from connector.log.compact.table_images cimport drained
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf
from connector.log.transaction.batch import Statement
from connector.log.transaction.statement_options import SAVEPOINTS
from connector.log.ids import Kind
from connector.log.rules import BrokenRule, Rule, damaged
from connector.log.compact.segment import COMMIT_TABLES as segment_tables

cdef object DDL = Kind.DDL
cdef object LOAD = Kind.LOAD
cdef Py_ssize_t COMMIT_TABLES = segment_tables

cdef enum:
    ACTIONS = 4  # connector.log.ids.Action
    READ = 3
    LOAD_INDEX = 4  # connector.log.ids.Kind


cdef class Compactor:
    """Compacts fragments of whole events, or of one unfinished event, to net changes.

    Args:
        topic: named in errors.
        columns: the target's metadata columns, None if it has none; the layouts of net changes have them, too.
        known: false while rows may be newer than the event (initial load, rewind): these columns are then NULL.
        history: the tables that have a history; None: there are none.
    """

    cdef str topic
    cdef MetadataValuesOf metadata_values  # None where the target has no metadata columns
    cdef dict layouts  # bytes of a change's header -> TableLayout and presence bitmaps; never forgotten
    cdef dict same  # TableLayout -> the first equal one
    cdef dict current  # table name -> TableChanges
    cdef list tables  # in the order of their first changes; a name twice where its layout changed
    cdef object history  # HistoryTables, or None
    cdef MetadataValuesOf event_values  # those of histories
    cdef dict histories  # table name -> HistoryRows; None for a table without one
    cdef Py_ssize_t history_count  # without those that are None
    cdef MetadataValues event  # of the message whose changes are being added; None until they are needed
    cdef Messages messages  # has that message
    cdef Py_ssize_t index
    cdef readonly long long rows
    cdef readonly long long size

    def __init__(self, topic, columns=None, *, bint known=True, history=None):
        self.topic = topic
        self.history = history
        self.event_values = MetadataValuesOf(EVENT, True)
        self.histories = {}
        self.metadata_values = None if columns is None else MetadataValuesOf(columns, known)
        self.layouts = {}
        self.same = {}
        self._begin()

    cdef _begin(self):
        self.current = {}
        self.tables = []
        self.history_count = 0
        self.rows = 0
        self.size = 0

    def add(self, Message message, long long before=0, execute=None):
        """Add one fragment's row changes; the statements that a DDL event's fragment begins with are left out.

        Args:
            message: the fragment.
            before: rows that the event had in earlier fragments.
            execute: called with each statement among row changes, once the changes before it are added; it may drain
                them. None: such a statement is refused.

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
            kind = message.header.kind
            if self.history is not None:
                self.event = self.event_values.of(message.header)  # also for rows of earlier fragments
            before += self.changes(
                r, self.block_of(message), kind is DDL or kind is LOAD, kind is LOAD, before, execute
            )
            counted(before, message.header.rows)
        except (ValueError, IndexError, Unsupported) as error:
            self.failed(error, message)
        return before

    def add_range(self, Messages messages, Py_ssize_t first, Py_ssize_t end, long long rows, long long size):
        """Add whole events, one fragment each, until there are enough rows or bytes for one commit.

        Rows of loads for other targets are left out.

        Args:
            messages: the messages, one for each event.
            first, end: the indexes to add, without `end`.
            rows, size: the limits of one commit; the event that reaches one of them, or COMMIT_TABLES, is the last.

        Returns:
            The index of the next message to add; `end` when all were added.

        Raises:
            LogDamaged, Unsupported: as `add` does.
        """
        cdef Reader r = Reader.__new__(Reader)
        cdef ScannedMessage* message
        cdef Block block = messages.scanned.block
        r.data = block.data
        self.messages = messages
        while first < end:
            message = messages.at(first)
            if message.for_others:
                first += 1
                continue
            r.at = message.changes
            r.end = message.end
            self.index, self.event = first, None
            if self.metadata_values is not None:
                block = self.block_of(messages.one(first))
            try:
                counted(self.changes(r, block, False, message.header.kind == LOAD_INDEX, 0, None), message.header.rows)
            except (ValueError, IndexError, Unsupported) as error:
                self.failed(error, messages.one(first))
            first += 1
            if self.rows >= rows or self.size >= size or len(self.tables) + self.history_count >= COMMIT_TABLES:
                break
        self.messages = None
        return first

    def drain(self):
        """Drain the net changes, table by table, an earlier layout of a table before a later one."""
        net = [drained(one, self.metadata_values) for one in self.tables]
        if self.history is not None:
            for name, history in self.histories.items():
                if history is not None and (<HistoryRows>history).events:
                    net.append((<HistoryRows>history).drain())
            self.histories = {}
        self._begin()
        return [rows for rows in net if len(rows)]

    @property
    def table_count(self):
        """The number of tables with changes, histories among them; one whose layout changed counts twice."""
        return len(self.tables) + self.history_count

    def layouts_seen(self):
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

    cdef long long changes(
        self, Reader r, Block block, bint ddl, bint load, long long before, object execute
    ) except -1:
        """Add a fragment's changes, before which the event has so many rows; return their number of rows."""
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
                    other_statement(r, execute)
                    continue
                if branch != 2:
                    raise ValueError("a change of a kind that the schema does not have")
                rows += self.change(r, block, load, before + rows)
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
        raise damaged(
            error,
            hint="nothing was applied of this event",
            seqno=message.header.seqno,
            fragno=message.header.fragno,
            at=at,
        ) from error

    cdef long long change(self, Reader r, Block block, bint load, long long before) except -1:
        cdef Py_ssize_t start
        cdef long long rows
        cdef TableChanges table = self.table(r)
        cdef unsigned char action = read_index(r, ACTIONS)
        if action == READ and not load:
            raise ValueError("a row that is read, outside of a load")
        start = r.at
        if table.merger is not None:
            rows = self.merge(table, action, r, block)
        else:
            rows = add_rows(table, action, r, block)
        if self.history is not None:
            self.keep(table, action, r, start, before)
        return rows

    cdef int keep(self, TableChanges table, unsigned char action, Reader r, Py_ssize_t start, long long before) except -1:
        """Keep the rows of a change for the table's history, if it has one."""
        cdef HistoryRows history
        cdef Reader again
        cdef Py_ssize_t size
        name = table.layout.name
        if name in self.histories:
            history = self.histories[name]
        else:
            history = self.histories[name] = new_history(name) if self.history.finds(name) else None
            self.history_count += history is not None
        if history is None:
            return 0
        if self.event is None:
            self.event = self.event_values.of(self.messages.one(self.index).header)
        _, images_before, images_after = self.layouts[table.change_header]
        again = Reader.__new__(Reader)
        again.data, again.at, again.end = r.data, start, r.at
        size = history.rows.size
        history.add(table.layout, action, again, images_before, images_after, self.event, before)
        self.size += history.rows.size - size
        return 0

    cdef long long merge(self, TableChanges table, unsigned char action, Reader r, Block block) except -1:
        """Add a change of a table that is merged by column; return its number of rows."""
        cdef long long count, row, rows = 0
        cdef PartialMerger merger = table.merger
        if merger.sealed(action):
            table = self.begin_merger(table.layout, table.change_header)
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

    cdef TableChanges begin_merger(self, object layout, bytes change_header):
        """Begin to merge a table by column."""
        cdef TableChanges table = new_table(layout, change_header)
        table.merger = PartialMerger(layout, self.metadata_values)
        self.current[layout.name] = table
        self.tables.append(table)
        return table

    cdef TableChanges table(self, Reader r):
        """Read a change's header and return its table."""
        cdef Py_ssize_t start = r.at
        cdef TableChanges table
        if self.tables:
            # Mostly the same as before. No header is a prefix of another, so comparing its own bytes suffices.
            table = <TableChanges>self.tables[len(self.tables) - 1]
            if table is self.current.get(table.layout.name) and starts_with(r, table.change_header):
                r.at += len(table.change_header)
                return table
        skip_change_header(r)
        cdef bytes change_header = PyBytes_FromStringAndSize(<const char *>&r.data[start], r.at - start)
        known = self.layouts.get(change_header)
        if known is None:
            r.at = start
            layout, before, after = read_change_header(r)
            known = self.layouts[change_header] = self.same.setdefault(layout, layout), before, after
        layout, before, after = known
        table = self.current.get(layout.name)
        if before or after or (table is not None and table.merger is not None):
            if table is None or table.merger is None or table.layout is not layout:
                table = self.begin_merger(layout, change_header) if before or after else None
            if table is not None:
                table.change_header = change_header
                table.merger.columns(before, after)
                return table
        if table is None or table.change_header != change_header:
            table = new_table(layout, change_header)
            self.current[layout.name] = table
            self.tables.append(table)
        return table


cdef int other_statement(Reader r, object execute) except -1:
    """Execute or refuse a statement among row changes, except SAVEPOINT and its release, which change nothing."""
    schema = read_text(r)
    sql = read_text(r)
    if sql.startswith(SAVEPOINTS):
        return skip_map(r)
    if execute is not None:
        execute(Statement(schema, sql, read_map(r)))
        return 0
    raise Unsupported(
        "a change that was logged as a statement: it is not applied as rows are",
        hint="target.statements: execute, for a MySQL target of a MySQL source; or make its event's changes on the target "
        "by hand, then thl apply --skip-seqno N --reason …; against others the source needs binlog_format=ROW, and its "
        "producer source.statements=refuse",
        sql=sql[:200],
    )


cdef int counted(long long rows, long long expected) except -1:
    if rows != expected:
        raise BrokenRule(Rule.ROW_COUNT, rows=rows, expected=expected)
    return 0


cdef bint starts_with(Reader r, bytes change_header) except -1:
    cdef Py_ssize_t length = len(change_header)
    cdef const char *have = change_header
    return 0 < length <= r.end - r.at and memcmp(have, &r.data[r.at], length) == 0
