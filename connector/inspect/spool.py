"""Holds output until it is complete."""

from __future__ import annotations

import shutil
import tempfile
from typing import IO, BinaryIO, Final

IN_MEMORY: Final = 8 << 20  # bytes; more are written to a file


class Spool:
    """Holds text of any size in bounded memory; reused for each transaction."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def write(self, text: bytes) -> None:
        """Add text."""
        self._chunks.append(text)
        self._size += len(text)
        if self._size > IN_MEMORY:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives until `clear`)
            self._file.writelines(self._chunks)
            self._chunks.clear()
            self._size = 0

    def pour(self, out: BinaryIO) -> None:
        """Write the held text to `out`, and forget it."""
        if self._file is not None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, out, 1 << 20)
        out.write(b"".join(self._chunks))
        self.clear()

    def clear(self) -> None:
        """Forget the held text."""
        self._chunks.clear()
        self._size = 0
        if self._file is not None:
            self._file.close()
            self._file = None
