"""Inputs of the benchmarks, made once: a source's log, and the output of each stage.

The table is that of `tests.bench.workload`: ten mixed columns, 200-300 bytes a row. A small transaction changes five
rows by five statements: three inserts, an update, a delete. A large one is one INSERT of many rows, in row events of
8 KiB as a server writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from random import Random

import pyarrow as pa

from connector.config.filters import Filters
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.transaction.xa import Logged
from connector.log.writing.fragment import Fragment
from connector.mysql.binlog.frames import EventFrames, Frames, PacketFrames
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.transforms.filters import Filter
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from tests.bench.decode import MemorySource
from tests.support.binlog_writer import ColumnDef, LogWriter, image

SMALL = 200  # transactions
SMALL_ROWS = 5 * SMALL
LARGE = 5_000  # rows in one transaction
EVENT_BYTES = 8192
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
UTF8MB4, BINARY = 255, 63
INSERT, UPDATE, DELETE = 30, 31, 32
LIMITS = Limits(fragment=512 << 10, shard=16 << 20, message=64 << 20)
TABLE = (
    ColumnDef(8, unsigned=True),
    ColumnDef(3, unsigned=False),
    ColumnDef(8, unsigned=False),
    ColumnDef(246, bytes([18, 4]), unsigned=False),
    ColumnDef(18, b"\x06"),
    ColumnDef(17, b"\x00"),
    ColumnDef(5, b"\x08", unsigned=False),
    ColumnDef(15, struct.pack("<H", 400), collation=UTF8MB4),
    ColumnDef(254, bytes([254, 80]), collation=UTF8MB4),
    ColumnDef(15, struct.pack("<H", 60), collation=BINARY),
)


def decimal_18_4(number: int) -> bytes:
    """DECIMAL(18,4) from its digits: 5 and 9 before the point, 4 behind it."""
    whole, part = divmod(number, 10**4)
    head, tail = divmod(whole, 10**9)
    return (head | 1 << 23).to_bytes(3, "big") + tail.to_bytes(4, "big") + part.to_bytes(2, "big")


def datetime_6(number: int) -> bytes:
    """DATETIME(6) in 2026: year and month, day, hour, minute, second; microseconds."""
    packed = 1 << 39 | (2026 * 13 + 1 + number % 12) << 22 | (1 + number % 28) << 17 | number % 24 << 12
    return packed.to_bytes(5, "big") + (number % 1_000_000).to_bytes(3, "big")


def row(key: int, changed: int = 0) -> bytes:
    """A row image of `TABLE`."""
    chance = Random(key)
    return image(
        [
            struct.pack("<Q", key),
            struct.pack("<i", key * 7 % 2**31 + changed),
            struct.pack("<q", key * 1_000_003),
            decimal_18_4(key * 10**4 // 13),
            datetime_6(key),
            None if key % 5 == 0 else struct.pack(">I", 1_767_225_600 + key),
            struct.pack("<d", key / 7),
            struct.pack("<H", 96) + chance.randbytes(48).hex().encode(),
            b"\x14" + chance.randbytes(10).hex().encode(),
            None if key % 3 == 0 else b"\x30" + chance.randbytes(48),
        ]
    )


def _begin(log: LogWriter, number: int) -> None:
    clock = struct.pack("<BQQ", 2, number, number + 1) + (1_700_000_000_000_000 + number).to_bytes(7, "little")
    log.event(33, b"\x01" + bytes(range(16)) + struct.pack("<Q", number + 1) + clock)
    log.begin()


@cache
def small_log() -> bytes:
    """`SMALL` transactions of five row changes."""
    log = LogWriter()
    for number in range(SMALL):
        _begin(log, number)
        changed, gone = 3 * (number + SMALL), 3 * (number + SMALL) + 1
        changes = [(INSERT, row(3 * SMALL * 3 + 3 * number + n)) for n in range(3)]
        changes += [(UPDATE, row(changed) + row(changed, 1)), (DELETE, row(gone))]
        for kind, images in changes:
            log.table_map(TABLE, key=[0])
            log.rows(kind, len(TABLE), images)
        log.commit()
    return log.data


@cache
def large_log() -> bytes:
    """One transaction of `LARGE` rows."""
    log = LogWriter()
    _begin(log, 0)
    log.table_map(TABLE, key=[0])
    images = b""
    for key in range(LARGE):
        images += row(key)
        if len(images) > EVENT_BYTES or key == LARGE - 1:
            log.rows(INSERT, len(TABLE), images)
            images = b""
    log.commit()
    return log.data


def column_log(columns: Sequence[ColumnDef], rows: Sequence[Sequence[bytes | None]]) -> bytes:
    """One transaction with these values."""
    log = LogWriter()
    _begin(log, 0)
    log.table_map(columns)
    for at in range(0, len(rows), 50):
        log.rows(INSERT, len(columns), b"".join(image(values) for values in rows[at : at + 50]))
    log.commit()
    return log.data


def as_packets(log: bytes) -> bytes:
    """A file as the dump command sends it: one packet per event."""
    packets, at, sequence = bytearray(), 4, 1
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        packets += (size + 1).to_bytes(3, "little") + bytes([sequence & 0xFF, 0]) + log[at : at + size]
        at, sequence = at + size, sequence + 1
    return bytes(packets)


def read_all(data: bytes, *, packets: bool = False, filters: Filters | None = None) -> list[Logged]:
    """Every item that the reader returns for a log."""
    frames: Frames = PacketFrames() if packets else EventFrames()
    reader = BinlogReader(
        MemorySource(data),
        frames,
        filters=Filter(filters or Filters()),
        service="micro",
        batch_bytes=4 << 20,
        file="binlog.000001",
    )
    found = []
    while not reader.ended:
        found += reader.read()
    return found


def pieces(log: bytes) -> list[TransactionBatch]:
    """The transactions of a log."""
    return [piece for piece in read_all(log) if isinstance(piece, TransactionBatch)]


def encoder(partitions: int = 1) -> Encoder:
    """An encoder at the beginning of a log."""
    made = Encoder(service="micro", source_id="db:3306", partitions=partitions, limits=LIMITS)
    tails = dict.fromkeys(range(partitions), NO_SEQNO)
    made.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails=tails, last_barrier=NO_SEQNO))
    return made


def nowhere() -> PositionRecord:
    """The position of an empty log."""
    start = SourcePosition("binlog.000001", 4)
    return PositionRecord(finished=None, resume=start, gtid_set="", open=None, tails={0: NO_SEQNO})


@cache
def fragments(log: bytes) -> list[Fragment]:
    """A log as it is published."""
    made = encoder()
    return [fragment for piece in pieces(log) for fragment in made.encode(piece)]


@cache
def batch(log: bytes) -> pa.RecordBatch:
    """A log as Spark hands it over."""
    values = [fragment.value for fragment in fragments(log)]
    return pa.record_batch(
        {
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "value": pa.array(values, pa.binary()),
        }
    )
