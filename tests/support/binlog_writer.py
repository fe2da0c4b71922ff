"""Writes binary logs: a few kinds of events, as MySQL's format documentation describes them."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.log.transaction.xa import Logged
from tests.support.binlog import row_changes, whole_file

POST_HEADERS = [0] * 42
for _kind, _size in {2: 13, 4: 8, 15: 98, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10, 33: 42, 34: 42}.items():
    POST_HEADERS[_kind - 1] = _size


def packed(number: int) -> bytes:
    if number < 251:
        return bytes([number])
    if number < 1 << 16:
        return b"\xfc" + struct.pack("<H", number)
    return b"\xfd" + struct.pack("<I", number)[:3]


@dataclass(frozen=True)
class ColumnDef:
    """A column of a TABLE_MAP.

    Args:
        code: the type's code. STRING with the real type in `meta` for enum and set.
        meta: metadata of the type.
        unsigned: None for columns that are no numbers.
        collation: None for columns that are no text; of labels for enum and set.
        labels: labels of an ENUM or SET.
    """

    code: int
    meta: bytes = b""
    unsigned: bool | None = None
    collation: int | None = None
    labels: tuple[bytes, ...] | None = None


class LogWriter:
    """Appends events; `data` is the file, `server_id` that of the next events."""

    server_id = 1

    def __init__(self, *, checksum: bool = True, server: bytes = b"8.4.0") -> None:
        self.data = b"\xfebin"
        self.checksum = checksum
        body = struct.pack("<H50sIB", 4, server, 0, 19) + bytes(POST_HEADERS) + bytes([checksum])
        self.event(15, body if checksum else body + bytes(4))

    def event(self, kind: int, body: bytes, *, flags: int = 0, log_pos: int | None = None) -> None:
        size = 19 + len(body) + 4 * self.checksum
        end = len(self.data) + size if log_pos is None else log_pos
        event = struct.pack("<IBIIIH", 1_700_000_000, kind, self.server_id, size, end & 0xFFFFFFFF, flags) + body
        self.data += event + (struct.pack("<I", zlib.crc32(event)) if self.checksum else b"")

    def query(self, sql: bytes, *, schema: bytes = b"s", state: bytes = b"") -> None:
        head = struct.pack("<IIBHH", 7, 0, len(schema), 0, len(state))
        self.event(2, head + state + schema + b"\0" + sql)

    def gtid(self, source: uuid.UUID, number: int) -> None:
        self.event(33, b"\1" + source.bytes + struct.pack("<Q", number))

    def begin(self) -> None:
        self.query(b"BEGIN")

    def commit(self) -> None:
        self.event(16, struct.pack("<Q", 9))

    def table_map(
        self,
        columns: Sequence[ColumnDef],
        *,
        table_id: int = 11,
        metadata: str = "FULL",
        key: Sequence[int] = (),
        flags: int = 1,
    ) -> None:
        """`metadata` is what binlog_row_metadata is; NONE: of a server that has no such thing."""
        types = bytes(column.code for column in columns)
        metas = b"".join(column.meta for column in columns)
        nulls = bytes([0xFF] * ((len(columns) + 7) // 8))
        body = struct.pack("<Q", table_id)[:6] + struct.pack("<H", flags) + b"\x01s\x00" + b"\x01t\x00"
        body += (
            packed(len(columns)) + types + packed(len(metas)) + metas + nulls + self._metadata(columns, metadata, key)
        )
        self.event(19, body)

    def _metadata(self, columns: Sequence[ColumnDef], metadata: str, key: Sequence[int]) -> bytes:
        signs = [column.unsigned for column in columns if column.unsigned is not None]
        bits = bytearray((len(signs) + 7) // 8)
        for at, unsigned in enumerate(signs):
            bits[at // 8] |= unsigned << 7 - at % 8
        texts = [column.collation for column in columns if column.collation is not None and column.labels is None]
        labelled = [column for column in columns if column.labels is not None]
        fields = {1: bytes(bits), 3: b"".join(map(packed, texts))}
        if metadata != "FULL":
            return _told(fields) if metadata == "MINIMAL" else b""
        fields[4] = b"".join(packed(len(b"c%d" % at)) + b"c%d" % at for at in range(len(columns)))
        fields[11] = b"".join(packed(column.collation or 0) for column in labelled)
        fields[8] = b"".join(map(packed, key))
        for kind, code in ((5, 248), (6, 247)):
            fields[kind] = b"".join(
                packed(len(column.labels or ())) + b"".join(packed(len(label)) + label for label in column.labels or ())
                for column in labelled
                if column.meta[0] == code
            )
        return _told(fields)

    def rows(
        self,
        kind: int,
        width: int,
        images: bytes,
        *,
        table_id: int = 11,
        present: bytes | None = None,
        after: bytes | None = None,
        flags: int = 1,
    ) -> None:
        """Of an update `present` is the columns of the before images, `after` of the others; 1 ends a statement."""
        bitmap = bytes([0xFF] * ((width + 7) // 8)) if present is None else present
        head = struct.pack("<Q", table_id)[:6] + struct.pack("<H", flags) + b"\x02\x00" + packed(width)
        self.event(kind, head + bitmap + ((after or bitmap) if kind in {31, 39} else b"") + images)


def _told(fields: dict[int, bytes]) -> bytes:
    return b"".join(bytes([kind]) + packed(len(value)) + value for kind, value in fields.items() if value)


def image(values: Sequence[bytes | None]) -> bytes:
    """A row image: the bits of the NULLs, then the values."""
    nulls = bytearray((len(values) + 7) // 8)
    for at, value in enumerate(values):
        if value is None:
            nulls[at // 8] |= 1 << at % 8
    return bytes(nulls) + b"".join(value for value in values if value is not None)


def read_back(log: LogWriter | bytes, folder: Path) -> list[Logged]:
    path = folder / "log.000001"
    path.write_bytes(log if isinstance(log, bytes) else log.data)
    return whole_file(path)


def through(folder: Path, column: ColumnDef, values: Sequence[bytes | None]) -> list[object]:
    """The values that the reader decodes for one column, a row each."""
    log = LogWriter()
    log.begin()
    log.table_map([column])
    log.rows(30, 1, b"".join(image([value]) for value in values))
    log.commit()
    return [after[0] for _, _, after in row_changes(read_back(log, folder), "t") if after]
