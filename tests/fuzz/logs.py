"""The fuzzer's initial logs, and its mutations."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

from tests.support.binlog_writer import ColumnDef, LogWriter, image
from tests.support.old_log import OldLog, load_body

RECORDED = Path("tests/testdata/binlog")
NUMBERS = (0, 1, 4, 5, 12, 13, 18, 19, 20, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFE, 0xFF, 0xFFFF, (1 << 31) - 1, 1 << 31)
HEADER = 19
START_V3 = b"\1"


def statements() -> bytes:
    """A log with everything that statement and mixed format write, with checksums."""
    log = LogWriter()
    log.begin()
    log.event(5, struct.pack("<BQ", 2, 41))
    log.event(13, struct.pack("<QQ", 1, 2))
    for kind, value in ((0, b"text"), (1, bytes(8)), (2, bytes(8)), (4, bytes.fromhex("04028c32"))):
        log.event(14, b"\1\0\0\0v\0" + struct.pack("<BII", kind, 255, len(value)) + value + b"\0")
    log.query(b"INSERT INTO t VALUES (@v)", state=b"\x05\x03UTC\x0c\x01shop\0")
    log.event(17, struct.pack("<I", 5) + b"1\n2\n")
    log.event(9, struct.pack("<I", 5) + b"3\n")
    log.event(18, struct.pack("<IIBHHIIIB", 7, 0, 1, 0, 0, 5, 9, 26, 1) + b"s\0LOAD DATA INFILE '/x' INTO TABLE t")
    log.table_map([ColumnDef(3, unsigned=False)])
    log.rows(30, 1, image([struct.pack("<i", 1)]))
    log.query(b"SAVEPOINT `p`")
    log.query(b"ROLLBACK TO `p`")
    log.query(b"ROLLBACK")
    log.event(4, struct.pack("<Q", 4) + b"log.000002")
    return log.data


def old(version: int) -> bytes:
    log = OldLog(version)
    log.query(b"SET ONE_SHOT CHARACTER_SET_CLIENT=33,TIME_ZONE='UTC'")
    log.event(5, struct.pack("<BQ", 1, 7))
    log.query(b"INSERT INTO t VALUES (1)")
    log.query(b"BEGIN")
    log.query(b"DELETE FROM t")
    log.query(b"COMMIT")
    log.event(6 if version == 1 else 12, load_body(6 if version == 1 else 12, flags=0x0A))
    log.event(4, b"log.002" if version == 1 else struct.pack("<Q", 4) + b"log.002")
    return log.data


def old_loads() -> bytes:
    """A log of 4.0 with the blocks of two files, of which one is dropped, and of relayed transactions."""
    log = OldLog(3)
    log.event(8, load_body(8, block=b"1|2\n"))
    log.event(8, load_body(8, block=b"gone", file_id=4))
    log.event(9, struct.pack("<I", 3) + b"3|4\n")
    log.event(11, struct.pack("<I", 4))
    log.query(b"BEGIN")
    log.event(10, struct.pack("<I", 3))
    log.query(b"COMMIT")
    log.event(8, load_body(8, file_id=5, flags=0x01))
    log.event(10, struct.pack("<I", 5))
    return log.data


def rare() -> bytes:
    """A log with statement texts beside rows, JSON differences, XA transactions and both heartbeat versions."""
    log = LogWriter()
    document = b"\x00" + struct.pack("<HHHHBH", 1, 12, 11, 1, 5, 7) + b"a"  # {"a": 7}
    value = struct.pack("<I", len(document)) + document
    removed = struct.pack("<I", 5) + b"\2\3$.a"
    xid = struct.pack("<III", 1, 2, 0) + b"ab"
    log.begin()
    log.event(29, b"\x0fUPDATE t SET j = 1")
    log.table_map([ColumnDef(245, b"\x04"), ColumnDef(3, unsigned=False)])
    number = struct.pack("<i", 1)
    log.rows(39, 2, b"\0" + value + number + b"\1\1\0" + removed + number)
    log.commit()
    log.event(27, b"f.1")
    for one_phase in (0, 1):
        log.query(b"XA START X'6162',X'',1")
        log.table_map([ColumnDef(3, unsigned=False)])
        log.rows(30, 1, image([number]))
        log.query(b"XA END X'6162',X'',1")
        log.event(38, bytes([one_phase]) + xid)
    place = len(log.data) + HEADER + 4 + 5 + 11 + 1
    log.event(41, b"\1\3f.1\2\x09\xfe" + struct.pack("<Q", place) + b"\0", log_pos=0)
    log.query(b"XA COMMIT X'6162',X'',1")
    log.begin()
    log.table_map([ColumnDef(3, unsigned=False)])
    log.rows(30, 1, image([number]))
    log.commit()
    return log.data


def seeds() -> list[bytes]:
    """The initial logs."""
    recorded = [path.read_bytes() for path in sorted(RECORDED.iterdir()) if path.suffix[1:].isdigit()]
    return [*recorded, statements(), rare(), old(1), old(3), old_loads()]


def events(data: bytes) -> list[tuple[int, int]]:
    """Start and end of every event that can be found by its length."""
    found, at = [], 4
    while at + 13 <= len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        if size < 13 or at + size > len(data):
            break
        found.append((at, at + size))
        at += size
    return found


def changed(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """The log with some damage: of bytes, of numbers, of whole events, of its end."""
    places = events(data)
    if not places:
        return data
    log = bytearray(data)
    start, end = draw.choice(places)
    match draw.randrange(8):
        case 0 | 1:
            for _ in range(draw.choice((1, 1, 2, 5, 20))):
                log[draw.randrange(start, end)] = draw.randrange(256)
        case 2 | 3:
            number, width = draw.choice(NUMBERS), draw.choice((1, 2, 4, 8))
            at = draw.randrange(start, max(start + 1, end - width))
            log[at : at + width] = (number & (1 << 8 * width) - 1).to_bytes(width, "little")
        case 4:
            del log[start:end]
        case 5:
            where = draw.choice(places)[0]
            log[where:where] = log[start:end]
        case 6:
            found = events(other)
            if found:
                first, last = draw.choice(found)
                log[start:end] = other[first:last]
        case _:
            at = draw.randrange(start, end)
            return bytes(log[:at])
    return resealed(bytes(log)) if draw.random() < 0.9 else bytes(log)


def resealed(data: bytes) -> bytes:
    """The log with positions and checksums made right again, so that the damage is decoded; old logs have none."""
    log = bytearray(data)
    if log[8:9] == START_V3:
        return data
    for start, end in events(data):
        if end - start >= HEADER:
            log[start + 13 : start + 17] = struct.pack("<I", end & 0xFFFFFFFF)
        if end - start > HEADER + 4:
            log[end - 4 : end] = struct.pack("<I", zlib.crc32(log[start : end - 4]))
    return bytes(log)
