"""LOAD DATA in statement format: events with the file's blocks, and the statement that reads the file.

The formats are those of MySQL's `libs/mysql/binlog/event/load_data_events.h`. Blocks are kept in a temporary file
until the statement, because older servers write them before its transaction, mixed with blocks of other files.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Final

from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.fields import Fields
from connector.mysql.values.charsets import decode_leniently, shown

APPEND_BLOCK, DELETE_FILE, BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY = 9, 11, 17, 18
BLOCK: Final = 36 << 10  # bytes of a file in one statement: 48 KiB in base64, less than a fragment
IN_MEMORY: Final = 1 << 20
MOST_FILES: Final = 256  # at once
QUERY_FIXED, FIXED = 13, 26
DUPLICATES: Final = ("error", "ignore", "replace")


class LoadedFiles:
    """Files whose blocks are being read, by their ids."""

    def __init__(self) -> None:
        self._files: dict[int, BinaryIO] = {}

    def begin(self, file_id: int, block: bytes) -> None:
        """Begins a file with its first block.

        Raises:
            CorruptBinlog: more files are open than a server can have.
        """
        self.delete(file_id)  # after a crash the server reuses ids
        if len(self._files) >= MOST_FILES:
            raise CorruptBinlog(f"more than {MOST_FILES} files for LOAD DATA are open")
        self._files[file_id] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115
        self._files[file_id].write(block)

    def append(self, file_id: int, block: bytes) -> None:
        """Adds a block.

        Raises:
            CorruptBinlog: the file has not begun.
        """
        if file_id not in self._files:
            raise CorruptBinlog("a block of a file for LOAD DATA that has not begun", file_id=file_id)
        self._files[file_id].write(block)

    def delete(self, file_id: int) -> None:
        """Drops a file, if it is there."""
        if file := self._files.pop(file_id, None):
            file.close()

    def blocks(self, file_id: int) -> Iterator[Statement]:
        """Hands out the file as one statement per block and drops it.

        Raises:
            CorruptBinlog: the file has not begun; raised at the call.
        """
        if file_id not in self._files:
            raise CorruptBinlog("LOAD DATA reads a file that has not begun", file_id=file_id)
        return _blocks(file_id, self._files.pop(file_id))


def _blocks(file_id: int, file: BinaryIO) -> Iterator[Statement]:
    text = f"/* a block of the file {file_id} for LOAD DATA */"
    with file:
        file.seek(0)
        while block := file.read(BLOCK):
            content = base64.b64encode(block).decode("ascii")
            yield Statement("", text, {replay.LOAD_FILE: str(file_id), replay.LOAD_BLOCK: content})


def load_query(body: bytes) -> tuple[int, bytes, tuple[int, int, int]]:
    """Splits an EXECUTE_LOAD_QUERY event.

    Returns:
        The file's id; the body of a QUERY; start and end of the file's name in the text, in bytes, and the treatment of
        duplicates.
    """
    event = Fields(body)
    fixed = event.take(QUERY_FIXED)
    file_id = event.number(4)
    start, end, duplicates = event.number(4), event.number(4), event.number(1)
    return file_id, fixed + event.rest(), (start, end, duplicates)


def load_options(file_id: int, query: bytes, charset: str, name_range: tuple[int, int, int]) -> dict[str, str]:
    """Options for a replay: the file, and the range of characters that the name of the replay's file replaces.

    There a replay writes ` LOCAL INFILE 'name'`, ` IGNORE` or ` REPLACE` by the treatment of duplicates, and ` INTO`.

    Raises:
        CorruptBinlog: the range is not in the text.
        Unsupported: the treatment of duplicates is not known.
    """
    start, end, duplicates = name_range
    text = query[QUERY_FIXED + int.from_bytes(query[11:13], "little") + query[8] + 1 :]
    if not start <= end <= len(text):
        raise CorruptBinlog("the name of a file for LOAD DATA is outside of its statement")
    if duplicates >= len(DUPLICATES):
        raise Unsupported(f"LOAD DATA with the unknown treatment {duplicates} of duplicates")
    return {
        replay.LOAD_FILE: str(file_id),
        replay.LOAD_FROM: str(len(shown(decode_leniently(text[:start], charset)))),
        replay.LOAD_TO: str(len(shown(decode_leniently(text[:end], charset)))),
        replay.LOAD_DUPLICATES: DUPLICATES[duplicates],
    }
