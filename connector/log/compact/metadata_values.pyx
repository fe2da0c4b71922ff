"""The values of the metadata columns, where the target has some: one object for each event, shared by its rows.

Each fragment updates it, because only the last one has the commit time and event id. The apply core corrects rows that
were applied before.
"""

from connector.log.format import avro


cdef class MetadataValues:
    """The metadata columns' values in rows of one event."""


cdef class MetadataValuesOf:
    """Makes the metadata values of each event; keeps those of the newest.

    Args:
        columns: `connector.log.compact.metadata_columns.MetadataColumns`.
        known: false while rows may be newer than the event: then all are NULL.
    """

    def __init__(self, columns, known):
        self.columns = columns
        self.known = known
        self.layouts = {}

    cdef MetadataValues of(self, object header):
        """The values for a fragment's event."""
        cdef MetadataValues found = self.last
        if found is None or found.seqno != header.seqno or found.epoch != header.epoch:
            found = MetadataValues.__new__(MetadataValues)
            found.seqno = header.seqno
            found.epoch = header.epoch
            self.last = found
        values = self.columns.values(header) if self.known else [None] * len(self.columns.kinds)
        if values != found.python:
            found.python = values
            found.values = [avro.union(value) for value in values]
            found.joined = b"".join(found.values)
        return found

    cdef object beside(self, object layout):
        """The layout with the metadata columns after the table's own."""
        found = self.layouts.get(layout)
        if found is None:
            found = self.layouts[layout] = self.columns.beside(layout)
        return found
