"""The rows of a table's history (`connector.log.compact.history`): each change of a row, with its images as JSON.

They are made of the bytes that compaction has walked before. The values that all rows of an event have in common are
added when the rows are drained, because only the event's last fragment has its commit time.
"""

from array import array

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from connector.log.compact.history import history_layout
from connector.log.compact.metadata_values cimport MetadataValues
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.format import avro
from connector.log.format.avro_reader cimport Reader, read_block
from connector.log.format.json_image cimport JsonColumns, json_columns, put_image
from connector.log.format.text cimport KEEP, Text, put, reserve
from connector.log.format.varint cimport LONGEST, write_varint

cdef enum:
    LONG = 2  # branches of the union in Avro
    STRING = 6

cdef tuple ACTIONS = tuple(avro.union(name) for name in ("insert", "update", "delete", "read"))


cdef class HistoryRows:
    """The history of one table, as far as it is not drained."""

    def __dealloc__(self):
        free(self.rows.data)
        free(self.document.data)

    cdef int add(self, object layout, unsigned char action, Reader r, bytes before, bytes after,
                 MetadataValues event, long long position) except -1:
        """Add the rows of a change.

        Args:
            layout: the table's.
            action: what happened to each row.
            r: is before the rows.
            before, after: the columns that images have, a bit for each; empty: all.
            event: the values of `history.EVENT`.
            position: the number of rows in the event before them.
        """
        cdef JsonColumns columns = self.columns.get(layout)
        cdef bytes name = ACTIONS[action]
        cdef long long count, row, rows = 0
        if columns is None:
            columns = self.columns[layout] = json_columns(layout)
        while True:
            count = read_block(r)
            if count == 0:
                break
            for row in range(count):
                put_number(&self.rows, LONG, position + rows)
                put(&self.rows, <const unsigned char*>PyBytes_AsString(name), len(name))
                self.image(r, columns, before)
                self.image(r, columns, after)
                put(&self.rows, b"\0", 1)  # no statement
                self.ends.append(self.rows.size)
                rows += 1
        if not rows:
            return 0
        if self.events and self.events[-1][0] is event:
            self.events[-1][1] += rows
        else:
            self.events.append([event, rows])
        return 0

    cdef int image(self, Reader r, JsonColumns columns, bytes present) except -1:
        """Write an image, NULL if there is none."""
        self.document.size = 0
        if not put_image(&self.document, r, columns, present):
            return put(&self.rows, b"\0", 1)
        put_number(&self.rows, STRING, self.document.size)
        put(&self.rows, self.document.data, self.document.size)
        if self.document.room > KEEP:
            free(self.document.data)
            memset(&self.document, 0, sizeof(Text))
        return 0

    cdef object drain(self):
        """Drain the rows as net changes of the history, with the values of their events that are known now."""
        cdef Py_ssize_t size = self.rows.size, begin = 0, at = 0, row = 0, length
        cdef MetadataValues event
        cdef bytes seqno, commit_time
        for event, count in self.events:
            size += count * len(event.joined)
        data = PyBytes_FromStringAndSize(NULL, size)
        cdef char* out = PyBytes_AsString(data)
        cdef unsigned long long[::1] ends = self.ends
        for event, count in self.events:
            seqno, commit_time = event.values
            for _ in range(count):
                length = <Py_ssize_t>ends[row] - begin
                if length < 0 or length + len(event.joined) > size - at:
                    raise IndexError("a row outside the bytes of its history")
                memcpy(out + at, PyBytes_AsString(seqno), len(seqno))
                at += len(seqno)
                memcpy(out + at, self.rows.data + begin, length)
                at += length
                memcpy(out + at, PyBytes_AsString(commit_time), len(commit_time))
                at += len(commit_time)
                begin += length
                ends[row] = at
                row += 1
        return NetChanges(self.layout, Images(data, self.ends), nothing(), nothing(), row, history_of=self.name)


cdef HistoryRows new_history(object name):
    """The history of a table, without rows."""
    cdef HistoryRows made = HistoryRows.__new__(HistoryRows)
    made.name = name
    made.layout = history_layout(name)
    made.columns = {}
    made.ends = array("Q")
    made.events = []
    return made


cdef object nothing():
    return Images(b"", array("Q"))


cdef int put_number(Text* out, unsigned char branch, long long number) except -1:
    """A branch of the union, and a number: a long's value, or the length of a string that follows."""
    reserve(out, 1 + LONGEST)
    out.data[out.size] = branch
    out.size += 1 + write_varint(out.data + out.size + 1, number)
    return 0
