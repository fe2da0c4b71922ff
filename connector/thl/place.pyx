"""A place in the source's binary log. Compiled, as `piece` is: every event makes one."""

cimport cython
from cython.dataclasses cimport dataclass
from libc.stdint cimport int64_t


@cython.final
@dataclass(frozen=True, order=True)
cdef class SourcePosition:
    """A place in the source's binary log: file and byte offset. Seen, not resumable."""

    file: str
    offset: int64_t

    def __str__(self):
        return f"{self.file}:{self.offset}"
