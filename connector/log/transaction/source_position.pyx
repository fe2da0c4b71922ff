"""Positions in the source's binary log. Compiled, as `batch` is: every event makes one."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t


def file_number(str file not None):
    """The number at the end of a binary log's name; -1 if there is none.

    The server pads the number to six digits, and the millionth file has seven, so names do not sort in the files' order.
    """
    digits = file.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else -1


@cython.final
@dataclass(frozen=True)
cdef class SourcePosition:
    """A position in the source's binary log: file and byte offset. Seen, not resumable. Ordered as the log is."""

    file: str
    offset: int64_t

    def __str__(self):
        return f"{self.file}:{self.offset}"

    def __lt__(self, other):
        return placed(self) < placed(other) if isinstance(other, SourcePosition) else NotImplemented

    def __le__(self, other):
        return placed(self) <= placed(other) if isinstance(other, SourcePosition) else NotImplemented

    def __gt__(self, other):
        return placed(self) > placed(other) if isinstance(other, SourcePosition) else NotImplemented

    def __ge__(self, other):
        return placed(self) >= placed(other) if isinstance(other, SourcePosition) else NotImplemented


cdef tuple placed(SourcePosition place):
    return file_number(place.file), place.file, place.offset
