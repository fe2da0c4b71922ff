"""Gathers the changes of the transaction that is being decoded and hands them out in batches."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from connector.mysql.memory cimport Cursor, Out, release
from connector.mysql.binlog.events.tables cimport CapturedTable
from connector.log.transaction.batch cimport TransactionStart, TransactionEnd, Rows, ending_at, batch_of, rows_of
from connector.log.transaction.source_position cimport SourcePosition

from connector.errors import ConnectorError
from connector.log.transaction.batch import PositionAdvance
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.xa import XID, Decided, Prepared

cdef object TRANSACTION = Kind.TRANSACTION
cdef object DDL = Kind.DDL
cdef tuple ACTIONS = tuple(Action)
cdef object COMMIT = Outcome.COMMIT
cdef dict NOTHING = {}

cdef enum:
    KEEP = 8 << 20  # a buffer of rows that has grown larger is freed
    STATEMENT = 512  # bytes of a statement beside its texts


cdef class TransactionBuffer:
    """Gathers one transaction after the other; `finish`, `prepared` and `decided` reset it.

    Args:
        ignored_servers: transactions of these server ids are `ignored`.
        always_read: a transaction that is read whatever its server id; None: there is none.
    """

    def __cinit__(self, ignored_servers, always_read):
        memset(&self.data, 0, sizeof(Out))
        memset(&self.ends, 0, sizeof(Out))
        self.ignored_servers = ignored_servers
        self.always_read = always_read
        self.checked_server = -1
        self.server_ignored = False
        self._clear()

    def __dealloc__(self):
        release(&self.data)
        release(&self.ends)

    cdef int _clear(self) except -1:
        self.open = self.announced = self.started = self.ddl = self.ignored = False
        self.gtid = self.start = self.xid = self.query = None
        self.metadata = NOTHING
        self.last_committed = self.sequence_number = self.commit_time = 0
        self.server_id = self.thread_id = 0
        self.changes = []
        self.table = None
        self.before = self.after = b""
        self.size = 0
        return 0

    cdef int announce(self, SourcePosition start, str gtid, int64_t last_committed, int64_t sequence_number,
                      int64_t commit_time, object metadata) except -1:
        """Notes the GTID event, the first of a transaction if it has one."""
        self.announced = True
        self.start = start
        self.gtid = gtid
        self.last_committed = last_committed
        self.sequence_number = sequence_number
        self.commit_time = commit_time
        self.metadata = metadata
        return 0

    cdef int begin(self, SourcePosition start, int64_t server_id, int64_t thread_id) except -1:
        """Begins at BEGIN, or at the only statement."""
        self.open = True
        self.server_id = server_id
        self.thread_id = thread_id
        if self.start is None:
            self.start = start
        self.ignored = self._from_ignored_server()
        return 0

    cdef bint _from_ignored_server(self) except -1:
        """True if its server is ignored. Caches the last answer: consecutive transactions mostly share the server."""
        if self.server_id != self.checked_server:
            self.checked_server = self.server_id
            self.server_ignored = self.server_id in self.ignored_servers
        if not self.server_ignored:
            return False
        if self.always_read is None:
            return True
        return self.gtid != self.always_read.gtid if self.gtid is not None else self.start != self.always_read.start

    cdef int rows(self, CapturedTable table, int action, bytes before, bytes after, bint diffs, Cursor* event,
                  Py_ssize_t batch_bytes) except -1:
        """Decodes rows of the event until it ends or the batch is full.

        Args:
            before, after: the columns in its images, from `CapturedTable.present`.
            diffs: true if the event is PARTIAL_UPDATE_ROWS.
        """
        cdef Py_ssize_t had, limit
        cdef const uint8_t* old = NULL
        cdef const uint8_t* new = NULL
        if table is not self.table or action != self.action or before is not self.before or after is not self.after:
            self.close_rows()
            self.table = table
            self.action = action
            self.before = before
            self.after = after
        had = self.data.size
        limit = max(had + batch_bytes - self.size, had + 1)
        try:
            if not diffs and not before and not after:
                with nogil:
                    table.codec.rows(event, &self.data, &self.ends, action, limit)
            else:
                if before:
                    old = <const uint8_t*>before
                if after:
                    new = <const uint8_t*>after
                with nogil:
                    table.codec.parts(event, &self.data, &self.ends, action, limit, old, new, diffs)
        except ConnectorError as error:
            error.where["table"] = table.layout.name
            if table.codec.column >= 0:
                column = table.layout.columns[table.codec.column]
                error.where["column"] = column.name
                if column.charset:
                    error.where["charset"] = column.charset
            raise
        self.size += self.data.size - had
        return 0

    cdef bint changed(self):
        """True if it has changes other than the definitions at its beginning."""
        return self.started or self.size > 0

    cdef int add_statement(self, object statement, bint definition) except -1:
        """Adds a statement. Definitions at its beginning make it a DDL transaction."""
        if definition and not self.changed():
            self.ddl = True
        else:
            self.size += STATEMENT + len(statement.sql) + sum(map(len, statement.options.values()))
        self.close_rows()
        self.changes.append(statement)
        return 0

    cdef int set_query(self, str query) except -1:
        """Sets the statement text of the rows that follow; None: unknown."""
        self.close_rows()
        self.query = query
        return 0

    cdef int close_rows(self) except -1:
        """Adds the rows gathered so far to the changes."""
        cdef bytes data, ends
        cdef Rows rows
        if self.ends.size:
            data = self.data.data[: self.data.size]
            ends = self.ends.data[: self.ends.size]
            if self.table.transform is None:
                rows = rows_of(self.table.layout, ACTIONS[self.action], data, ends, self.before, self.after)
            else:
                rows = self._transformed(data, ends)
            if rows is not None:
                if self.query is not None:
                    rows.query = self.query
                    self.size += len(self.query)
                self.changes.append(rows)
            self.data.size = self.ends.size = 0
            if self.data.capacity > KEEP:
                release(&self.data)
        self.table = None
        return 0

    cdef Rows _transformed(self, bytes data, bytes ends):
        """Applies the table's row transform; None: no row is left."""
        transform = self.table.transform
        data, ends, before, after = transform.rows(self.action, data, ends, self.before, self.after)
        return rows_of(transform.layout, ACTIONS[self.action], data, ends, before, after) if ends else None

    cdef TransactionStart _start(self):
        """The header of its first batch; None for later batches."""
        if self.started:
            return None
        self.started = True
        cdef TransactionStart begin = TransactionStart.__new__(TransactionStart)
        begin.server_id = self.server_id
        begin.thread_id = self.thread_id
        begin.gtid = self.gtid
        begin.last_committed = self.last_committed
        begin.sequence_number = self.sequence_number
        begin.start = self.start
        begin.kind = DDL if self.ddl else TRANSACTION
        begin.metadata = self.metadata if self.xid is None else {**self.metadata, XID: self.xid}
        return begin

    cdef object flush(self):
        """Hands out the changes so far as a batch that does not end the transaction; None if rules left nothing."""
        self.close_rows()
        self.size = 0
        if not self.changes:
            return None
        batch = batch_of(self._start(), self.changes, None)
        self.changes = []
        return batch if self.xid is None else Prepared(self.xid, batch)

    cdef object finish(self, SourcePosition end, int64_t timestamp, object outcome):
        """The last batch; a PositionAdvance if no change was captured."""
        cdef TransactionEnd ending
        self.close_rows()
        if self.started or self.changes:
            ending = ending_at(end, self.commit_time or timestamp * 1000000, outcome)
            result = batch_of(self._start(), self.changes, ending)
        else:
            result = PositionAdvance(end, self.gtid)
        self._clear()
        return result

    cdef object prepared(self, SourcePosition end, int64_t timestamp, bint one_phase):
        """The last batch of a prepared XA transaction. With one phase it is an ordinary transaction."""
        if one_phase and not self.started:
            return self.finish(end, timestamp, COMMIT)
        self.close_rows()
        cdef TransactionEnd ending = ending_at(end, self.commit_time or timestamp * 1000000, COMMIT)
        result = Prepared(self.xid, batch_of(self._start(), self.changes, ending), one_phase)
        self._clear()
        return result

    cdef object decided(self, SourcePosition end, int64_t timestamp, object outcome):
        """XA COMMIT or XA ROLLBACK of a transaction prepared earlier."""
        cdef TransactionEnd ending = ending_at(end, self.commit_time or timestamp * 1000000, outcome)
        result = Decided(self.xid, self._start(), ending)
        self._clear()
        return result
