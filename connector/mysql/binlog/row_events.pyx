"""Decodes TABLE_MAP and rows events one by one, outside of transactions: to show them."""

from connector.mysql.binlog.events.tables cimport CapturedTable, Tables
from connector.mysql.binlog.transaction_buffer cimport TransactionBuffer
from connector.mysql.memory cimport Cursor, left

cdef Py_ssize_t EVERY_ROW = <Py_ssize_t>1 << 40  # bytes


cdef class RowEvents:
    """Remembers tables, and decodes rows of them.

    Args:
        filters: a `connector.mysql.binlog.events.capture_filter.CaptureFilter`.
        resolver: a `ColumnNameResolver`.
    """

    cdef Tables tables
    cdef TransactionBuffer buffer

    def __init__(self, filters, resolver):
        self.tables = Tables(filters, resolver)
        self.buffer = TransactionBuffer(frozenset(), None)

    def forget(self, bint mariadb):
        """Forgets the tables' ids: a file of MariaDB or of MySQL begins."""
        self.tables.forget(mariadb)

    def describe(self, bytes body):
        """Remembers the table of a TABLE_MAP event.

        Raises:
            ConnectorError: the event is not understood.
        """
        cdef Cursor cursor
        cursor.data = body
        cursor.end = cursor.data + len(body)
        self.tables.describe(&cursor)

    def rows(self, bytes body, int action, bint second, bint diffs):
        """Decodes a rows event.

        Args:
            body: the event without its header and checksum.
            action: number of a `connector.log.ids.Action`.
            second: true if it is of version 2.
            diffs: true if it is PARTIAL_UPDATE_ROWS.

        Returns:
            The table's layout, and the rows; None for the rows if there are none, for both if the table is not captured.

        Raises:
            ConnectorError: the event is not understood, or its table is not described.
        """
        cdef Cursor cursor
        cdef CapturedTable table
        cursor.data = body
        cursor.end = cursor.data + len(body)
        table = self.tables.of_rows(&cursor, second, action)
        if table is None:
            return None, None
        try:
            while left(&cursor):
                self.buffer.rows(table, action, self.tables.before, self.tables.after, diffs, &cursor, EVERY_ROW)
            self.buffer.close_rows()
            changes = self.buffer.changes
        finally:
            self.buffer = TransactionBuffer(frozenset(), None)  # rows before an undecodable one are gone, too
        return table.layout, changes[0] if changes else None
