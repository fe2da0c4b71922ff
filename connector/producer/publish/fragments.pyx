"""The publisher's work for every fragment, compiled for a hundred thousand small transactions a second."""

from libc.stdint cimport int64_t

from connector.log.writing.fragment cimport Fragment
from connector.log.gtid.gtid_range cimport GtidRange
from connector.log.writing.progress cimport Progress

from connector.log.transaction.position import SnapshotCompleted
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.pending import Stored
from connector.log.transaction.batch import PositionAdvance


def size_of(list items not None):
    """Return the bytes of the fragments among the items, and of stored XA batches."""
    cdef int64_t size = 0
    cdef Py_ssize_t index
    for index in range(len(items)):
        item = items[index]
        if type(item) is Fragment:
            size += len((<Fragment>item).value)
        elif type(item) is Stored:
            size += item.size
    return size


def rows_of(list ended not None):
    """Return the number of rows of the events that end with these fragments."""
    cdef int64_t rows = 0
    cdef Py_ssize_t index
    cdef Fragment fragment
    for index in range(len(ended)):
        fragment = ended[index]
        if fragment.finished is not None:
            rows += fragment.finished.digest.rows
    return rows


def gtids_of(list items not None):
    """Return the transactions that end with these items, as a GTID set in the source's form; "" if there are none.

    An event without its end does not count, because it can still be given up.
    """
    cdef GtidRange gtids = GtidRange()
    cdef Py_ssize_t index
    cdef Fragment fragment
    cdef str gtid
    cdef list loaded = []
    found = None
    for index in range(len(items)):
        item = items[index]
        if type(item) is Fragment:
            fragment = item
            gtid = None if fragment.finished is None else fragment.finished.gtid
        elif isinstance(item, SnapshotCompleted):
            loaded.append(item.gtid_set or "")
            continue
        else:
            gtid = item.gtid if isinstance(item, PositionAdvance) else None
        if gtid is None or gtids.goes_on(gtid):
            continue
        if found is None:
            found = parse_gtids(gtid)
        else:
            if gtids.first is not None:
                found.add(gtids.first, gtids.count)
            found.add(gtid)
        gtids.begin(gtid)
    if found is not None and gtids.first is not None:
        found.add(gtids.first, gtids.count)
    return ",".join(filter(None, [*loaded, "" if found is None else str(found)]))


def send_on(list items not None, Py_ssize_t at, Progress progress not None, object send, str topic, list ended not None):
    """Send fragments, and move the position with each, up to another item.

    Args:
        items: fragments and other items.
        at: index of the first item to send.
        progress: the position.
        send: called with topic, partition, key, value.
        topic: the event topic.
        ended: the list to which fragments that end an event are added.

    Returns:
        The index of the first item that is not a fragment, or the number of items.
    """
    cdef Fragment fragment
    while at < len(items) and type(items[at]) is Fragment:
        fragment = items[at]
        progress.accept(fragment)
        send(topic, fragment.partition, fragment.key, fragment.value)
        if fragment.finished is not None:
            ended.append(fragment)
        at += 1
    return at
