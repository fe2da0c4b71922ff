"""The transaction's columns of rows, where the target has some: one object for an event, which its rows refer to.

It is filled again with each fragment, because some is told only by an event's last one. What was given to the target
before that is mended by the apply core.
"""

from connector.log.format import avro


cdef class MetadataValues:
    """The metadata columns' values in rows of one event."""


cdef class MetadataValuesOf:
    """The newest event's.

    Args:
        columns: `connector.log.compact.metadata_columns.MetadataColumns`.
        known: false where rows are not as an event left them: then all are NULL.
    """

    def __init__(self, columns, known):
        self.columns = columns
        self.known = known
        self.layouts = {}

    cdef MetadataValues of(self, object header):
        """That of a fragment's event."""
        cdef MetadataValues stamp = self.last
        if stamp is None or stamp.seqno != header.seqno or stamp.epoch != header.epoch:
            stamp = MetadataValues.__new__(MetadataValues)
            stamp.seqno = header.seqno
            stamp.epoch = header.epoch
            self.last = stamp
        told = self.columns.values(header) if self.known else [None] * len(self.columns.kinds)
        if told != stamp.told:
            stamp.told = told
            stamp.values = [avro.union(value) for value in told]
            stamp.joined = b"".join(stamp.values)
        return stamp

    cdef object beside(self, object layout):
        """The layout with these columns."""
        found = self.layouts.get(layout)
        if found is None:
            found = self.layouts[layout] = self.columns.beside(layout)
        return found
