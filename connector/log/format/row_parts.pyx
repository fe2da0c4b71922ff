"""Parts of a change that was too large for one message, put together again (`Chunk` in `schemas/fragment.avsc`).

The fragment of the last part becomes a message with that one change, whole, so that later code never sees parts. The
rules are those of `connector.log.format.decoded_parts`.
"""

from connector.errors import LogDamaged
from connector.log.format.avro_reader cimport Reader, read_byte, read_long
from connector.log.format.message cimport Block, Message
from connector.log.rules import Rule, broken

cdef enum:
    ONE = 2  # an array's block of one item
    CHUNK = 4  # the union's branch
    MOST = 1 << 30

cdef bytes BEGIN = bytes([ONE])
cdef bytes END = bytes(1 + 4)  # of the array; and as many bytes as a checksum, because a message ends before them


cdef class RowParts:
    """Joins the row parts of events, whose fragments it accepts in order.

    Args:
        topic: named in errors.
    """

    cdef str topic
    cdef object data  # a bytearray, of the change that is incomplete
    cdef long long size

    def __init__(self, topic):
        self.topic = topic
        self.forget()

    def forget(self):
        """Forget the parts so far: no others follow."""
        self.data = None
        self.size = 0

    def whole(self, Message message not None):
        """Return what a fragment adds.

        Args:
            message: the next one of its event; with its fragment 0 an event begins, or begins again.

        Returns:
            The message; where it holds a part None, or with the last one a message with the header of the last and the
            whole change.

        Raises:
            LogDamaged: the parts do not follow each other.
        """
        cdef Reader r
        cdef long long start, size, length
        if message.header.fragno == 0:
            self.forget()
        try:
            if not is_part(message):
                expect(self.data is None)
                return message
            r = reader(message)
            start, size, length = read_long(r), read_long(r), read_long(r)
            expect(0 < length <= size <= MOST and length == r.end - r.at - 1)
            if self.data is None:
                self.data = bytearray(BEGIN)
                self.size = size
            expect(size == self.size and start == len(self.data) - 1 and start + length <= size)
            self.data += message.block.data[r.at : r.at + length]
            r.at += length
            expect(read_byte(r) == 0)
        except (ValueError, IndexError) as error:
            raise broken(
                LogDamaged,
                Rule.ROW_PARTS,
                hint="nothing was applied of this event",
                seqno=message.header.seqno,
                fragno=message.header.fragno,
                at=f"{self.topic}-{message.partition}@{message.offset}",
            ) from error
        if start + length < size:
            return None
        whole = joined(message, self.data)
        self.forget()
        return whole


cdef Reader reader(Message message):
    """A reader after the count and the branch of a message's first change."""
    cdef Reader r = Reader.__new__(Reader)
    r.data = message.block.data
    r.at = message.changes + 2
    r.end = message.end
    return r


cdef bint is_part(Message message) except -1:
    """Return whether a message's one change is a row part."""
    cdef Py_ssize_t at = message.changes
    return message.end - at > 2 and message.block.data[at] == ONE and message.block.data[at + 1] == CHUNK


cdef Message joined(Message last, object data):
    cdef Message message = Message.__new__(Message)
    cdef Py_ssize_t end = len(data) + 1
    data += END
    message.header = last.header
    message.partition = last.partition
    message.offset = last.offset
    message.block = Block(data)
    message.start = 0
    message.changes = 0
    message.end = end
    return message


cdef int expect(bint right) except -1:
    if not right:
        raise ValueError("a part is missing, or is of another change")
    return 0
