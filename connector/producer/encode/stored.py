"""Encodes batches of prepared XA transactions for the topic that stores them, and decodes them.

They are not fragments: the cuts between fragments depend on the whole event, which is known only at its commit. So a
batch is stored as its changes one after the other, with a CRC-32 at the end. A row change is the text of its statement
(if the source logs it), its change header, its Avro records, and the end of each record. The bytes are cut into
messages of bounded size; the first byte of each tells if the batch continues in the next one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from sys import byteorder
from typing import Final, TypeVar
from zlib import crc32

from connector.errors import LogDamaged
from connector.log.format import avro
from connector.log.format.varint import read_long
from connector.log.ids import Action
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.producer.encode import change as encoded

GOES_ON: Final = b"\x01"
ENDS: Final = b"\x00"
CHECK: Final = 4  # bytes of the CRC-32
QUERY: Final = avro.long(2)  # precedes the text of the statement whose rows follow, instead of a union's branch
MARK: Final = 8  # bytes of a row's end, little-endian on every machine

Changes = list[Rows | Statement]
RowsHeader = tuple[TableLayout, Action, bytes, bytes]
Item = TypeVar("Item")


def messages(changes: Changes, size: int) -> list[bytes]:
    """Encode a batch.

    Args:
        changes: the changes of the batch.
        size: maximum bytes of a message; at least 2.
    """
    parts: list[bytes] = []
    for change in changes:
        if isinstance(change, Statement):
            parts.append(encoded.statement(change))
            continue
        marks = array("Q", change.ends)
        if byteorder == "big":
            marks.byteswap()
        if change.query is not None:
            parts.append(QUERY + avro.string(change.query))
        header = encoded.change_header(change.layout, change.action, change.before, change.after)
        parts += header, avro.long(change.count)
        parts += marks.tobytes(), bytes(change.data)
    body = b"".join((avro.long(len(changes)), *parts))
    body += crc32(body).to_bytes(CHECK, "big")
    step = size - 1
    starts = range(0, len(body), step)
    return [(GOES_ON if at + step < len(body) else ENDS) + body[at : at + step] for at in starts]


class BatchDecoder:
    """Decodes batches from messages in order."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._headers: dict[bytes, RowsHeader] = {}

    def feed(self, message: bytes) -> Changes | None:
        """Decode the next message.

        Returns:
            The changes of the batch that it completes; None if the batch continues.

        Raises:
            LogDamaged: the bytes are damaged.
        """
        self._parts.append(message[1:])
        if message[:1] == GOES_ON:
            return None
        body, self._parts = b"".join(self._parts), []
        if message[:1] != ENDS or crc32(body[:-CHECK]) != int.from_bytes(body[-CHECK:], "big"):
            raise LogDamaged("a stored batch of an XA transaction has a wrong checksum")
        reader = _Reader(body[:-CHECK])
        try:
            changes = [self._change(reader) for _ in range(reader.long())]
        except (ValueError, OverflowError) as error:
            raise LogDamaged(f"a stored batch of an XA transaction cannot be decoded: {error}", at=reader.at) from error
        if reader.left:
            raise LogDamaged("a stored batch of an XA transaction has bytes after its changes", left=reader.left)
        return changes

    def _change(self, reader: _Reader) -> Rows | Statement:
        query, start = None, reader.at
        branch = reader.take(len(QUERY))
        if branch == QUERY:
            query, start = reader.string(), reader.at
            branch = reader.take(len(QUERY))
        if branch == encoded.STATEMENT:
            return Statement(reader.string(), reader.string(), reader.string_map())
        layout, action, before, after = self._header(reader, start)
        marks = array("Q")
        marks.frombytes(reader.take(MARK * reader.long()))
        if byteorder == "big":
            marks.byteswap()
        return Rows(layout, action, reader.take(marks[-1] if marks else 0), marks, before, after, query)

    def _header(self, reader: _Reader, start: int) -> RowsHeader:
        """Decode a change header. Equal layouts are the same object, because later steps compare them by identity."""
        name = TableName(reader.string(), reader.string())
        columns = tuple(reader.array(_column))
        key = tuple(reader.array(_Reader.long))
        before, after = reader.take(reader.long()), reader.take(reader.long())
        action = Action(reader.long())
        header = reader.since(start)
        known = self._headers.get(header)
        if known is None:
            layout = TableLayout(name, columns, key)
            layout = next((kept[0] for kept in self._headers.values() if kept[0] == layout), layout)
            known = self._headers[header] = layout, action, before, after
        return known


class _Reader:
    """Reads Avro's primitives. Every method raises LogDamaged or ValueError if the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise LogDamaged("a stored batch of an XA transaction ends within a change", expected=size, left=self.left)
        self.at += size
        return self._data[self.at - size : self.at]

    def since(self, start: int) -> bytes:
        return self._data[start : self.at]

    def long(self) -> int:
        number, self.at = read_long(self._data, self.at)
        return number

    def string(self) -> str:
        return self.take(self.long()).decode()

    def array(self, item: Callable[[_Reader], Item]) -> list[Item]:
        """Read an array of one block, as `primitive.array` writes it."""
        found: list[Item] = []
        while count := self.long():
            found += [item(self) for _ in range(count)]
        return found

    def string_map(self) -> dict[str, str]:
        return dict(self.array(lambda reader: (reader.string(), reader.string())))


def _column(reader: _Reader) -> Column:
    return Column(
        name=reader.string(),
        type=reader.string(),
        unsigned=reader.take(1) == avro.boolean(True),
        charset=reader.string(),
        labels=tuple(reader.array(_Reader.string)),
        nullable=reader.take(1) == avro.boolean(True),
    )
