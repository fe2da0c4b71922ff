# cython: cdivision=True
"""Converts row changes to Arrow: one Arrow row per changed row or statement, written directly into Arrow's buffers.

A row's images are JSON text (`connector.log.format.json_image`).

Every Arrow row of a table's load names the table, also its statements. An event of a load that has no change is one
Arrow row without an action: its part matters.
"""

import json

import pyarrow as pa

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t

from connector.errors import LogDamaged
from connector.log.format.avro_reader cimport (
    Reader,
    read_block,
    read_byte,
    read_index,
    read_text,
    skip_map,
)
from connector.log.format.change_header cimport read_change_header, skip_change_header
from connector.log.format.json_image cimport JsonColumns, json_columns, put_image
from connector.log.format.message cimport Message
from connector.log.ids import Kind
from connector.log.rules import BrokenRule, Rule, broken, damaged
from connector.log.transaction.load import LoadEvent
from connector.spark.source.arrow_columns cimport Numbers, Texts

cdef Py_ssize_t CACHED = 4096  # maximum number of cached tables; the cache is emptied when it is full
cdef tuple ACTIONS = (b"insert", b"update", b"delete", b"read")
cdef object LOAD = Kind.LOAD
cdef bytes STATEMENT = b"statement"

cdef enum:
    READ = 3  # connector.log.ids.Action


cdef class ImageTable:
    """A table in one layout, and the columns in its images."""

    cdef bytes schema, name, key, layout
    cdef JsonColumns columns
    cdef bytes before, after


cdef class EventTexts:
    """The texts that all rows of an event share."""

    cdef bytes kind, event_id, gtid, snapshot
    cdef bytes load, part, schema, table  # of a load; else None

    def __init__(self, header):
        self.kind = header.kind.name.lower().encode()
        self.event_id = None if header.event_id is None else header.event_id.encode()
        self.gtid = None if header.gtid is None else header.gtid.encode()
        snapshot = header.metadata.get("snapshot")
        self.snapshot = None if snapshot is None else snapshot.encode()
        if header.kind is LOAD:
            load = LoadEvent.of(header.metadata)
            self.load, self.part = load.load.encode(), load.part.value.encode()
            self.schema, self.table = load.table.schema.encode(), load.table.table.encode()


cdef class Changes:
    """Collects the changes of finished events in batches of Arrow.

    Args:
        topic: the event topic, for errors.
        layout: true to add each row's table layout as JSON.
    """

    cdef str topic
    cdef bint with_layout
    cdef dict tables
    cdef Numbers seqno, number, epoch, commit_time, server_id
    cdef Texts kind, event_id, gtid, snapshot, load, part, schema, table, action, key, before, after, sql, layout
    cdef readonly long long rows  # number of collected rows

    def __init__(self, topic, layout=False):
        self.topic = topic
        self.with_layout = layout
        self.tables = {}
        self.seqno, self.number, self.epoch = Numbers(), Numbers(), Numbers()
        self.commit_time, self.server_id = Numbers(), Numbers()
        self.event_id, self.gtid, self.snapshot, self.schema = Texts(), Texts(), Texts(), Texts()
        self.table, self.action, self.key, self.before, self.kind = Texts(), Texts(), Texts(), Texts(), Texts()
        self.after, self.sql, self.layout, self.load, self.part = Texts(), Texts(), Texts(), Texts(), Texts()
        self.rows = 0

    @property
    def size(self):
        """Bytes of the collected images."""
        return self.before.data.size + self.after.data.size + self.layout.data.size + self.sql.data.size

    def add(self, Message message, object last, long long number, long long rows):
        """Add a fragment's changes.

        Args:
            message: the fragment.
            last: the header of the event's last fragment, which has all fields.
            number: number of the next change within the event.
            rows: number of rows in the event's earlier fragments.

        Returns:
            The number of the next change, and the number of rows so far.

        Raises:
            LogDamaged: the bytes contradict the schema, or the number of rows is not that of the header.
        """
        cdef Reader r = Reader.__new__(Reader)
        cdef long long first = number
        cdef long long statements = 0
        cdef long long count, item, found
        cdef unsigned char branch
        cdef EventTexts event
        r.data = message.block.data
        r.at = message.changes
        r.end = message.end
        try:
            event = EventTexts(last)
            while True:
                count = read_block(r)
                if count == 0:
                    break
                for item in range(count):
                    branch = read_byte(r)
                    if branch == 0:
                        self.statement(r, event)
                        statements += 1
                        found = 1
                    elif branch == 2:
                        found = self.change(r, event.load is not None)
                    else:
                        raise ValueError("a change of a kind that the schema does not have")
                    self.put_event(last, event, number, found)
                    number += found
            if r.at != r.end:
                raise ValueError("bytes after the last change")
            rows += number - first - statements
            if rows != message.header.rows:
                raise BrokenRule(Rule.ROW_COUNT, rows=rows, expected=message.header.rows)
            if number == 0 and event.load is not None and message.header.last_frag:
                self.no_rows(event.schema, event.table, None, None)
                self.put_event(last, event, 0, 1)
                number = 1
        except (ValueError, IndexError) as error:
            raise damaged(
                error,
                seqno=message.header.seqno,
                fragno=message.header.fragno,
                at=f"{self.topic}-{message.partition}@{message.offset}",
            ) from error
        return number, rows

    def drain(self, object schema):
        """Return the collected changes as a batch, and forget them.

        Args:
            schema: the Arrow schema from `connector.spark.source.columns`.

        Raises:
            LogDamaged: a text is not UTF-8.
        """
        cdef Py_ssize_t rows = self.rows
        types = dict(zip(schema.names, schema.types))
        columns = [
            self.seqno.array(types["seqno"], rows),
            self.number.array(types["change"], rows),
            self.epoch.array(types["epoch"], rows),
            self.commit_time.array(types["commit_time"], rows),
            self.server_id.array(types["server_id"], rows),
            self.kind.array(types["kind"], rows),
            self.event_id.array(types["event_id"], rows),
            self.gtid.array(types["gtid"], rows),
            self.snapshot.array(types["snapshot"], rows),
            self.load.array(types["load"], rows),
            self.part.array(types["load_part"], rows),
            self.schema.array(types["schema"], rows),
            self.table.array(types["table"], rows),
            self.action.array(types["action"], rows),
            self.key.array(types["key"], rows),
            self.before.array(types["before"], rows),
            self.after.array(types["after"], rows),
            self.sql.array(types["sql"], rows),
        ]
        if self.with_layout:
            columns.append(self.layout.array(types["layout"], rows))
        self.rows = 0
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            seqnos = batch.column("seqno")
            first, last = (seqnos[0].as_py(), seqnos[rows - 1].as_py()) if rows else (None, None)
            raise broken(
                LogDamaged, Rule.NOT_UTF8, at=self.topic, first_seqno=first, last_seqno=last, cause=str(error)
            ) from error
        return batch

    cdef int put_event(self, object last, EventTexts event, long long number, long long rows) except -1:
        """Add the values that all rows of a change share."""
        cdef long long row
        cdef int64_t seqno = last.seqno, epoch = last.epoch, server_id = last.server_id
        commit_time = last.commit_time
        for row in range(rows):
            self.seqno.add(seqno)
            self.number.add(number + row)
            self.epoch.add(epoch)
            self.commit_time.add_object(commit_time)
            self.server_id.add(server_id)
            self.kind.add(event.kind)
            self.event_id.add(event.event_id)
            self.gtid.add(event.gtid)
            self.snapshot.add(event.snapshot)
            self.load.add(event.load)
            self.part.add(event.part)
        self.rows += rows
        return 0

    cdef int statement(self, Reader r, EventTexts event) except -1:
        cdef bytes schema = read_text(r).encode(), sql = read_text(r).encode()
        skip_map(r)
        return self.no_rows(schema if event.load is None else event.schema, event.table, STATEMENT, sql)

    cdef int no_rows(self, bytes schema, bytes table, bytes action, bytes sql) except -1:
        """Add an Arrow row that is no row of a table."""
        self.schema.add(schema)
        self.table.add(table)
        self.action.add(action)
        self.key.add(None)
        self.before.add(None)
        self.after.add(None)
        self.sql.add(sql)
        if self.with_layout:
            self.layout.add(None)
        return 0

    cdef long long change(self, Reader r, bint load) except -1:
        """Add the rows of a row change; returns their number."""
        cdef ImageTable table = self.table_of(r)
        cdef int action = read_index(r, len(ACTIONS))
        if action == READ and not load:
            raise ValueError("a row that is read, outside of a load")
        cdef long long count, row, rows = 0
        while True:
            count = read_block(r)
            if count == 0:
                return rows
            for row in range(count):
                self.image(r, table, table.before, self.before)
                self.image(r, table, table.after, self.after)
                self.schema.add(table.schema)
                self.table.add(table.name)
                self.action.add(<bytes>ACTIONS[action])
                self.key.add(table.key)
                self.sql.add(None)
                if self.with_layout:
                    self.layout.add(table.layout)
            rows += count

    cdef ImageTable table_of(self, Reader r):
        """Read a change header; returns its table."""
        cdef Py_ssize_t start = r.at
        cdef ImageTable table
        skip_change_header(r)
        cdef bytes head = PyBytes_FromStringAndSize(<const char*>&r.data[start], r.at - start)
        found = self.tables.get(head)
        if found is not None:
            return <ImageTable>found
        r.at = start
        layout, before, after = read_change_header(r)
        if len(self.tables) >= CACHED:
            self.tables.clear()
        table = ImageTable.__new__(ImageTable)
        table.schema, table.name = layout.name.schema.encode(), layout.name.table.encode()
        table.columns = json_columns(layout)
        table.before, table.after = before, after
        table.key = compact([layout.columns[index].name for index in layout.key])
        table.layout = compact(
            [
                {
                    "name": column.name,
                    "type": column.type,
                    "unsigned": column.unsigned,
                    "charset": column.charset,
                    "labels": list(column.labels),
                    "nullable": column.nullable,
                }
                for column in layout.columns
            ]
        )
        self.tables[head] = table
        return table

    cdef int image(self, Reader r, ImageTable table, bytes present, Texts out) except -1:
        """Write a row's image as an object; null if there is none."""
        return out.end(put_image(&out.data, r, table.columns, present))


cdef bytes compact(object value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
