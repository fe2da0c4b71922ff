"""Standard output for printed events: names, statements and values may hold characters that control a terminal."""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import TYPE_CHECKING, BinaryIO, Final, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def output() -> BinaryIO:
    """Return standard output: exact for files and pipes, without control characters for a terminal."""
    out = sys.stdout.buffer
    return cast("BinaryIO", TerminalOutput(out)) if out.isatty() else out


class TerminalOutput(io.RawIOBase):
    """Writes UTF-8 to a terminal: control characters but line ends and tabs as `\\u001b`, invalid bytes as `\\xff`.

    The first form is JSON's own, so that an object stays the same.

    Args:
        out: the terminal.
    """

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write text; its last character may be incomplete."""
        whole = bytes(data)
        text = self._decoder.decode(whole)
        self._out.write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode())
        return len(whole)

    def flush(self) -> None:
        """Flush the terminal."""
        if not self.closed:
            self._out.flush()
