"""The net changes of a table as images: the bytes of the rows that remain, one after the other."""

from array import array

from libc.string cimport memcpy

from connector.log.compact.key_order cimport in_order
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.compact.table_changes cimport Copies, Image, TableChanges


cdef object drained(TableChanges table, MetadataValuesOf metadata_values):
    cdef Image image
    cdef Copies copies
    cdef list inserts = [], updates = [], deletes = []
    if table.merger is not None:
        return table.merger.drain(table.changes)
    if metadata_values is not None and not table.key.shape[0]:
        for copies in table.keys.values():
            inserts += copies.there
            deletes += copies.gone
        table.keys = {}
    for image in in_order(table.keys) if table.key.shape[0] else table.keys.values():
        if not table.key.shape[0]:
            if image.surplus > 0:
                inserts.extend([image] * image.surplus)
            elif image.surplus < 0:
                deletes.extend([image] * -image.surplus)
        elif image.after:
            (updates if image.before else inserts).append(image)
        elif image.before:
            deletes.append(image)
    if metadata_values is None:
        return NetChanges(table.layout, gathered(inserts), gathered(updates), gathered(deletes), table.changes)
    layout = metadata_values.beside(table.layout)
    return NetChanges(layout, with_metadata(inserts), with_metadata(updates), with_metadata(deletes), table.changes)


cdef object gathered(list images):
    """The images' bytes, one after the other."""
    cdef Image image
    cdef Py_ssize_t size = 0, at = 0, i = 0, length
    for image in images:
        size += image.end - image.start
    data = bytearray(size)
    ends = array("Q", bytes(8 * len(images)))
    cdef unsigned char[::1] out
    cdef unsigned long long[::1] out_ends
    if images:
        out = data
        out_ends = ends
        for image in images:
            length = image.end - image.start
            if length > size - at or image.start < 0 or image.end > image.block.data.shape[0]:
                raise IndexError("an image outside its block")
            memcpy(&out[at], &image.block.data[image.start], length)
            at += length
            out_ends[i] = at
            i += 1
    return Images(data, ends)


cdef object with_metadata(list images):
    """The images' bytes, one after the other, each followed by the values of the metadata columns."""
    cdef Image image
    cdef bytes joined
    cdef const char *values
    cdef Py_ssize_t size = 0, at = 0, i = 0, length, more
    for image in images:
        size += image.end - image.start + len((<MetadataValues?>image.block.metadata).joined)
    data = bytearray(size)
    ends = array("Q", bytes(8 * len(images)))
    cdef unsigned char[::1] out
    cdef unsigned long long[::1] out_ends
    if images:
        out = data
        out_ends = ends
        for image in images:
            joined = (<MetadataValues>image.block.metadata).joined
            values = joined
            length = image.end - image.start
            more = len(joined)
            if length + more > size - at or image.start < 0 or image.end > image.block.data.shape[0]:
                raise IndexError("an image outside its block")
            memcpy(&out[at], &image.block.data[image.start], length)
            if more:
                memcpy(&out[at + length], values, more)
            at += length + more
            out_ends[i] = at
            i += 1
    return Images(data, ends)
