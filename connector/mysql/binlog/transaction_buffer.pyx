"""The transaction that is being read: gathers runs of rows and hands them out in pieces."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from connector.mysql.memory cimport Cursor, Out, release
from connector.mysql.binlog.events.tables cimport Table
from connector.log.transaction.batch cimport TransactionStart, TransactionEnd, Rows, ending_at, piece_of, rows_of
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
    KEEP = 8 << 20  # a run's buffer that has grown larger is given back
    STATEMENT = 512  # bytes that a statement takes beside its texts


cdef class TransactionBuffer:
    """Gathers one transaction after the other; every `finish` makes it ready for the next.

    Args:
        ignored_servers: transactions of these server ids are `ignored`.
        spared: the one event that is read whoever wrote it; None: there is none.
    """

    def __cinit__(self, ignored_servers, spared):
        memset(&self.data, 0, sizeof(Out))
        memset(&self.ends, 0, sizeof(Out))
        self.ignored_servers = ignored_servers
        self.spared = spared
        self.judged = -1
        self.unwanted = False
        self._clear()

    def __dealloc__(self):
        release(&self.data)
        release(&self.ends)

    cdef int _clear(self) except -1:
        self.open = self.announced = self.given = self.ddl = self.ignored = False
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
        """Its GTID event: comes first, where there is one."""
        self.announced = True
        self.start = start
        self.gtid = gtid
        self.last_committed = last_committed
        self.sequence_number = sequence_number
        self.commit_time = commit_time
        self.metadata = metadata
        return 0

    cdef int begin(self, SourcePosition start, int64_t server_id, int64_t thread_id) except -1:
        """Its BEGIN, or the only statement it has."""
        self.open = True
        self.server_id = server_id
        self.thread_id = thread_id
        if self.start is None:
            self.start = start
        self.ignored = self._left_out()
        return 0

    cdef bint _left_out(self) except -1:
        """Whether nothing of it is for us, by the server that it comes from; mostly the one before did, too."""
        if self.server_id != self.judged:
            self.judged = self.server_id
            self.unwanted = self.server_id in self.ignored_servers
        if not self.unwanted:
            return False
        if self.spared is None:
            return True
        return self.gtid != self.spared.gtid if self.gtid is not None else self.start != self.spared.start

    cdef int rows(self, Table table, int action, bytes before, bytes after, bint diffs, Cursor* event,
                  Py_ssize_t piece_bytes) except -1:
        """Decode rows of the event until it ends or a piece is full.

        Args:
            before, after: the columns that its images have, as `Table.present` gave them.
            diffs: whether it is PARTIAL_UPDATE_ROWS.
        """
        cdef Py_ssize_t had, limit
        cdef const uint8_t* old = NULL
        cdef const uint8_t* new = NULL
        if table is not self.table or action != self.action or before is not self.before or after is not self.after:
            self.close_run()
            self.table = table
            self.action = action
            self.before = before
            self.after = after
        had = self.data.size
        limit = max(had + piece_bytes - self.size, had + 1)
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
        """Whether it has changed anything but by the definitions that it begins with."""
        return self.given or self.size > 0

    cdef int statement(self, object statement, bint definition) except -1:
        """A definition that it begins with makes it a definition; any other statement is one of its changes."""
        if definition and not self.changed():
            self.ddl = True
        else:
            self.size += STATEMENT + len(statement.sql) + sum(map(len, statement.options.values()))
        self.close_run()
        self.changes.append(statement)
        return 0

    cdef int ask(self, str query) except -1:
        """The rows that follow are of this statement; None: it is not known."""
        self.close_run()
        self.query = query
        return 0

    cdef int close_run(self) except -1:
        """Put the rows gathered so far among the changes."""
        cdef bytes data, ends
        cdef Rows rows
        if self.ends.size:
            data = self.data.data[: self.data.size]
            ends = self.ends.data[: self.ends.size]
            if self.table.shape is None:
                rows = rows_of(self.table.layout, ACTIONS[self.action], data, ends, self.before, self.after)
            else:
                rows = self._shaped(data, ends)
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

    cdef Rows _shaped(self, bytes data, bytes ends):
        """Rows as a rule wants them; None: nothing is left of them."""
        shape = self.table.shape
        data, ends, before, after = shape.rows(self.action, data, ends, self.before, self.after)
        return rows_of(shape.layout, ACTIONS[self.action], data, ends, before, after) if ends else None

    cdef TransactionStart _begin(self):
        """What the first piece says; None for the others."""
        if self.given:
            return None
        self.given = True
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

    cdef object cut(self):
        """Everything gathered so far as a piece of a transaction that goes on; None when rules have left nothing."""
        self.close_run()
        self.size = 0
        if not self.changes:
            return None
        piece = piece_of(self._begin(), self.changes, None)
        self.changes = []
        return piece if self.xid is None else Prepared(self.xid, piece)

    cdef object finish(self, SourcePosition end, int64_t timestamp, object outcome):
        """The last piece; or a Passed when there was nothing for us in it."""
        cdef TransactionEnd ending
        self.close_run()
        if self.given or self.changes:
            ending = ending_at(end, self.commit_time or timestamp * 1000000, outcome)
            result = piece_of(self._begin(), self.changes, ending)
        else:
            result = PositionAdvance(end, self.gtid)
        self._clear()
        return result

    cdef object prepared(self, SourcePosition end, int64_t timestamp, bint one_phase):
        """The last piece of an XA transaction; one that is committed with it is a transaction like any other."""
        if one_phase and not self.given:
            return self.finish(end, timestamp, COMMIT)
        self.close_run()
        cdef TransactionEnd ending = ending_at(end, self.commit_time or timestamp * 1000000, COMMIT)
        result = Prepared(self.xid, piece_of(self._begin(), self.changes, ending), one_phase)
        self._clear()
        return result

    cdef object decided(self, SourcePosition end, int64_t timestamp, object outcome):
        """XA COMMIT or XA ROLLBACK of what was prepared elsewhere."""
        cdef TransactionEnd ending = ending_at(end, self.commit_time or timestamp * 1000000, outcome)
        result = Decided(self.xid, self._begin(), ending)
        self._clear()
        return result
