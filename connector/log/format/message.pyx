"""One message of the log: its header decoded, its changes still bytes.

A message is an opening (`connector.log.format.framing`) and the body, Avro by schemas/fragment.avsc; the body's last four bytes
are the CRC-32 of those before them.
"""

from connector.log.format.avro_reader cimport Reader, read_block, read_byte, read_map, read_text
from connector.log.rules import damaged
from connector.log.transaction.batch import Statement

cdef Py_ssize_t CRC_SIZE = 4


cdef class Block:
    """The bytes of one or more messages, which keep it alive."""

    def __init__(self, data):
        self.data = data


cdef class Message:
    """One fragment, and its position in the topic."""

    @property
    def size(self):
        """Bytes of the message."""
        return self.end + CRC_SIZE - self.start

    def own(self):
        """Keep a copy of the message's bytes instead of the buffer that it shares with others."""
        self.block = Block(bytes(self.block.data[self.start : self.end + CRC_SIZE]))
        self.changes -= self.start
        self.end -= self.start
        self.start = 0

    def statements(self, str topic=""):
        """Read the statements that a fragment begins with; row changes may follow them (CREATE TABLE … SELECT).

        Args:
            topic: named in errors.

        Raises:
            LogDamaged: the bytes are not what the schema says.
        """
        try:
            return self.read_statements()
        except (ValueError, IndexError) as error:
            at = f"{topic}-{self.partition}@{self.offset}"
            raise damaged(error, seqno=self.header.seqno, at=at) from error

    cdef list read_statements(self):
        cdef Reader r = Reader.__new__(Reader)
        cdef long long count
        r.data = self.block.data
        r.at = self.changes
        r.end = self.end
        found = []
        while count := read_block(r):
            for _ in range(count):
                if read_byte(r) != 0:
                    return found
                schema = read_text(r)
                sql = read_text(r)
                found.append(Statement(schema, sql, read_map(r)))
        if r.at != r.end:
            raise ValueError("bytes after the last change")
        return found
