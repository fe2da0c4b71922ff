"""Joins the net changes of several segments: those of a table that follow each other become one.

Most keys are in only one of them; those rows are copied unchanged. Only the rows of keys that may be in several, by a
hash of the key, are compacted again, so joining costs a fraction of compacting. The driver alone does it.
"""

from array import array

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from connector.log.compact.net_changes import Images, NetChanges
from connector.log.compact.table_changes cimport TableChanges, add_images, new_table
from connector.log.compact.table_images cimport drained
from connector.log.format.avro_reader cimport Reader, skip_value
from connector.log.format.message cimport Block
from connector.log.rules import damaged

cdef enum:
    INSERT = 0  # connector.log.ids.Action
    UPDATE = 1
    DELETE = 2

cdef uint32_t NOT_SEEN = 0
cdef uint32_t SEVERAL = 0xFFFFFFFF  # several net changes have keys with this hash
cdef uint64_t MIXER = 0x9E3779B97F4A7C15
cdef uint64_t SEED = <uint64_t>(<long long>hash(__name__))  # of this process alone, so that no keys can be chosen for it


def joined(changes, str topic, *, bint apart=False):
    """Join net changes, in the order in which to apply them.

    Args:
        changes: the net changes; with metadata columns if the target has some. Partial ones stay as they are.
        topic: named in errors.
        apart: true: those of tables without a key stay as they are, too.

    Returns:
        The joined ones, in the order of their first.

    Raises:
        LogDamaged: they contradict each other.
    """
    cdef list group
    cdef list groups = []
    cdef dict current = {}  # table name → the group that takes its next net changes
    for net in changes:
        group = current.get(net.layout.name)
        if net.partial is not None or (apart and not net.layout.key):
            current.pop(net.layout.name, None)
            groups.append([net])
        elif group is not None and (<object>group[0]).layout == net.layout:
            group.append(net)
        else:
            current[net.layout.name] = group = [net]
            groups.append(group)
    found = [one_of(group, topic) for group in groups]
    return [net for net in found if len(net)]


cdef object one_of(list nets, str topic):
    if len(nets) == 1:
        return nets[0]
    cdef TableChanges table = new_table(nets[0].layout, b"")
    cdef RowImages rows = RowImages(nets)
    try:
        if table.key.shape[0]:
            rows.find_several(table)
        rows.compact(table)
        return rows.joined(drained(table, None), sum([net.changes for net in nets]))
    except (ValueError, IndexError) as error:
        raise damaged(error, hint="nothing was applied of these events", topic=topic) from error


cdef class RowImages:
    """The rows of some net changes of one table, each as an image, in the order in which to apply them.

    Args:
        nets: the net changes.
    """

    cdef list nets
    cdef unsigned char[::1] again  # for each row: 1 if it is to be compacted with others

    def __init__(self, nets):
        self.nets = nets
        self.again = bytearray(b"\1") * sum([len(net) for net in nets])

    cdef list images(self):
        """Each net change's rows by action: the action and its images."""
        return [
            (action, images)
            for net in self.nets
            for action, images in ((DELETE, net.deletes), (UPDATE, net.updates), (INSERT, net.inserts))
        ]

    cdef int find_several(self, TableChanges table) except -1:
        """Find the rows whose keys only one of the net changes has."""
        cdef Py_ssize_t count = self.again.shape[0], row = 0, image
        cdef uint32_t number = 0
        cdef uint64_t[::1] places = array("Q", bytes(8 * count))
        cdef Hashes seen = Hashes(count)
        cdef const unsigned long long[::1] ends
        cdef Reader r = Reader.__new__(Reader)
        for action, images in self.images():
            if action == DELETE:
                number += 1  # the next net change's first
            if not len(images):
                continue
            r.data = images.data
            r.at = 0
            ends = images.ends
            for image in range(ends.shape[0]):
                r.end = ends[image]
                places[row] = seen.add(key_hash(table, r), number)
                r.at = ends[image]
                row += 1
        for row in range(count):
            self.again[row] = seen.slots[places[row]].number == SEVERAL
        return 0

    cdef int compact(self, TableChanges table) except -1:
        """Compact the rows to be compacted."""
        cdef Py_ssize_t row = 0
        cdef ImageCopies copies
        for action, images in self.images():
            copies = ImageCopies(1)
            copies.count(images, self.again, row)
            copies.add(images, self.again, row)
            add_images(table, action, copies.images())
            row += len(images)
        return 0

    cdef object joined(self, object compacted, long long changes):
        """The net changes: rows as they were, and after them those that were compacted."""
        cdef Py_ssize_t row = 0
        cdef ImageCopies copies
        lasts = compacted.inserts, compacted.updates, compacted.deletes
        chosen = ImageCopies(0), ImageCopies(0), ImageCopies(0)
        for action, images in self.images():
            copies = chosen[action]
            copies.count(images, self.again, row)
            row += len(images)
        for copies, last in zip(chosen, lasts):
            copies.count_all(last)
        row = 0
        for action, images in self.images():
            copies = chosen[action]
            copies.add(images, self.again, row)
            row += len(images)
        for copies, last in zip(chosen, lasts):
            copies.add_all(last)
        inserts, updates, deletes = [(<ImageCopies>copies).images() for copies in chosen]
        history_of = self.nets[0].history_of
        return NetChanges(compacted.layout, inserts, updates, deletes, changes, history_of=history_of)


cdef class ImageCopies:
    """Copies of images: all are counted before the first is added.

    Args:
        chosen: the images to copy are those whose rows have this number.
    """

    cdef unsigned char chosen
    cdef Py_ssize_t size, rows, at, row
    cdef bytes data
    cdef object ends
    cdef char* out  # the memory of `data`, which is not initialised
    cdef unsigned long long[::1] out_ends

    def __init__(self, chosen):
        self.chosen = chosen

    cdef int count(self, object images, const unsigned char[::1] numbers, Py_ssize_t row) except -1:
        """Count those to copy of some images, the first of which is that of a row."""
        cdef const unsigned long long[::1] ends = images.ends
        cdef Py_ssize_t image
        for image in range(ends.shape[0]):
            if numbers[row + image] == self.chosen:
                self.rows += 1
                self.size += ends[image] - (ends[image - 1] if image else 0)
        return 0

    cdef int add(self, object images, const unsigned char[::1] numbers, Py_ssize_t row) except -1:
        """Copy them, those that follow each other at once."""
        cdef const unsigned long long[::1] ends = images.ends
        cdef const unsigned char[::1] data = images.data
        cdef Py_ssize_t image, begin = 0, end = 0
        self.allocate()
        for image in range(ends.shape[0]):
            if numbers[row + image] == self.chosen:
                end = ends[image]
                self.out_ends[self.row] = self.at + (end - begin)
                self.row += 1
                continue
            if begin < end:
                self.put(data, begin, end)
            begin = end = ends[image]
        if begin < end:
            self.put(data, begin, end)
        return 0

    cdef int count_all(self, object images) except -1:
        """Count all of some images."""
        self.rows += len(images)
        self.size += len(images.data)
        return 0

    cdef int add_all(self, object images) except -1:
        """Copy all of them."""
        return self.add(images, bytes([self.chosen]) * len(images), 0)

    cdef int allocate(self) except -1:
        if self.data is None:
            self.data = PyBytes_FromStringAndSize(NULL, self.size)
            self.out = PyBytes_AsString(self.data)
            self.out_ends = self.ends = array("Q", bytes(8 * self.rows))
        return 0

    cdef int put(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) except -1:
        cdef Py_ssize_t size = end - begin
        if not 0 <= begin < end <= data.shape[0] or size > self.size - self.at:
            raise IndexError("an image outside its data")
        memcpy(self.out + self.at, &data[begin], size)
        self.at += size
        return 0

    cdef object images(self):
        """The copies."""
        self.allocate()
        if self.at != self.size or self.row != self.rows:
            raise IndexError("an image that was counted is not copied")
        return Images(self.data, self.ends)


cdef struct Slot:
    uint32_t hash  # the upper half of a key's
    uint32_t number  # of the net changes that have it


cdef class Hashes:
    """Hashes of keys, and the number of the net changes that have each; less than half of the slots are taken."""

    cdef Slot* slots
    cdef uint64_t mask

    def __cinit__(self, Py_ssize_t count):
        cdef uint64_t room = 16
        while room < 2 * <uint64_t>count:
            room *= 2
        self.mask = room - 1
        self.slots = <Slot*>calloc(room, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    cdef uint64_t add(self, uint64_t hash, uint32_t number) noexcept:
        """Note that the net changes of a number have a key with this hash, and return its slot."""
        cdef uint32_t upper = hash >> 32
        cdef uint64_t at = hash & self.mask
        while self.slots[at].number != NOT_SEEN and self.slots[at].hash != upper:
            at = (at + 1) & self.mask
        if self.slots[at].number == NOT_SEEN:
            self.slots[at].hash = upper
            self.slots[at].number = number
        elif self.slots[at].number != number:
            self.slots[at].number = SEVERAL
        return at


cdef uint64_t key_hash(TableChanges table, Reader r) except? 0:
    """The hash of the key of the image that a reader has before it."""
    cdef Py_ssize_t i, column, last = 0
    cdef uint64_t hash = SEED
    for i in range(table.key.shape[0]):
        last = max(last, table.key[i])
    table.ends[0] = r.at
    for column in range(last + 1):
        skip_value(r)
        table.ends[column + 1] = r.at
    for i in range(table.key.shape[0]):
        column = table.key[i]
        hash = mixed(hash, &r.data[table.ends[column]], table.ends[column + 1] - table.ends[column])
    return hash


cdef uint64_t mixed(uint64_t hash, const unsigned char* value, Py_ssize_t size) noexcept:
    """A hash, and further bytes in it."""
    cdef uint64_t word
    while size > 0:
        word = 0
        memcpy(&word, value, min(size, 8))
        hash = spread((hash ^ word) * MIXER)
        value += 8
        size -= 8
    return hash


cdef inline uint64_t spread(uint64_t hash) noexcept:
    """A hash all of whose bits depend on all of those given: the lowest ones choose a place."""
    hash = (hash ^ hash >> 32) * MIXER
    return hash ^ hash >> 32
