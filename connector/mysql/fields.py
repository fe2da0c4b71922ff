"""Reads the fields of rare events in Python: little-endian, checked."""

from __future__ import annotations

from connector.errors import CorruptBinlog


class Fields:
    """A cursor over an event's bytes.

    Every method raises CorruptBinlog if the bytes end before the field does.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Unread bytes."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        return bytes(self.view(size))

    def view(self, size: int) -> memoryview:
        """The next `size` bytes without a copy."""
        if not 0 <= size <= self.left:
            raise CorruptBinlog("a length points outside of its event", needed=size, left=self.left)
        self._at += size
        return memoryview(self._data)[self._at - size : self._at]

    def rest(self) -> bytes:
        """Everything unread."""
        return self.take(self.left)

    def number(self, size: int) -> int:
        """An unsigned integer."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """MySQL's length-encoded integer: one byte below 251, or 2, 3, 8 bytes after 252, 253, 254."""
        first = self.number(1)
        if first < 251:
            return first
        if first in {251, 255}:
            raise CorruptBinlog("a packed integer starts with 251 or 255")
        return self.number({252: 2, 253: 3, 254: 8}[first])

    def text(self, length_bytes: int = 1) -> bytes:
        """Bytes after their length."""
        return self.take(self.number(length_bytes))

    def packed_text(self) -> bytes:
        """Bytes after their packed length."""
        return self.take(self.packed())

    def terminated(self) -> bytes:
        """Bytes up to a zero byte, which is read too."""
        end = self._data.find(0, self._at)
        if end < 0:
            raise CorruptBinlog("a zero byte is missing after a name")
        text = self.take(end - self._at)
        self.take(1)
        return text
