"""A recorded log: its content, and that no damage to it is taken for data."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest

from connector.errors import ConnectorError, CorruptBinlog
from connector.log.ids import Kind
from connector.log.transaction.batch import PositionAdvance, Rows, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.reader import BinlogReader
from tests.support.binlog import ALL, changes, row_changes, whole_file
from tests.support.binlog_writer import read_back
from tests.support.long import long

LOG = Path("tests/testdata/binlog/mysql-9.7.000001")
FIRST = [
    1, -7, "12.50000", 0.1, "h\u00e9llo", "\u00e9\u20ac", b"\0\xff", "2024-02-29 01:02:03.000004",
    "2023-11-14 22:13:20.500", "y", "p,r", '{"a": [1, 2.5, null, true, "x"], "big": 12345678901}', b"\1\1",
]  # fmt: skip
SECOND = [
    "18446744073709551615", None, "-0.00001", -1e300, "", "", b"", "0001-01-01 00:00:00.000000", None, None, "",
    "[]", b"\0\0",
]  # fmt: skip
CHANGED = [1, -6, *FIRST[2:11], '{"a": [100, 2.5, null, true, "x"], "big": 12345678901}', b"\1\1"]


def events(data: bytes) -> list[tuple[int, int, int]]:
    """Start, end and type of every event."""
    found = []
    at = 4
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        found.append((at, at + size, data[at + 4]))
        at += size
    return found


def resealed(data: bytes, start: int, end: int) -> bytes:
    """With the event's checksum made right again, so that the damage is met by the decoder itself."""
    return data[: end - 4] + struct.pack("<I", zlib.crc32(data[start : end - 4])) + data[end:]


def test_recorded_log_has_the_recorded_transactions() -> None:
    found = whole_file(LOG)

    key = lambda n, text: [n, None, None, None, text] + [None] * 8  # noqa: E731
    assert row_changes(found, "t") == [
        ("INSERT", None, FIRST),
        ("INSERT", None, SECOND),
        ("UPDATE", FIRST, CHANGED),
        ("DELETE", CHANGED, None),
        ("INSERT", None, key(3, "kept")),
        ("INSERT", None, key(4, "compressed")),
        ("INSERT", None, key(5, "tagged")),
        ("DELETE", key(5, "tagged"), None),
    ]
    kinds = [piece.begin.kind for piece in found if isinstance(piece, TransactionBatch) and piece.begin]
    assert kinds == [Kind.DDL] * 2 + [Kind.TRANSACTION] * 6 + [Kind.DDL]
    gtids = [piece.begin.gtid or "" for piece in found if isinstance(piece, TransactionBatch) and piece.begin]
    assert [gtid.partition(":")[2] for gtid in gtids] == ["1", "2", "3", "4", "5", "6", "tagged:1", "7", "8"]
    assert found[-1] == PositionAdvance(SourcePosition("binlog.000002", 4), None)


def test_positions_follow_each_other_without_a_gap() -> None:
    items = [item for item in whole_file(LOG) if isinstance(item, TransactionBatch)]
    ends = [item.ending.end for item in items if item.ending]
    starts = [item.begin.start for item in items if item.begin]
    assert starts[1:] == ends[:-1]


@pytest.mark.parametrize("batch_bytes", [1, 60, 150])
def test_batch_size_changes_only_the_number_of_batches(batch_bytes: int) -> None:
    whole, cut = whole_file(LOG), whole_file(LOG, batch_bytes=batch_bytes)
    assert row_changes(cut, "t") == row_changes(whole, "t")
    assert len(cut) > len(whole)
    assert next(change for change in changes(cut) if isinstance(change, Rows)).layout.key == (0,)


@pytest.mark.long
def test_truncated_log_gives_whole_transactions_then_an_error(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    borders = {item.ending.end.offset for item in whole_file(LOG) if isinstance(item, TransactionBatch) and item.ending}
    borders |= {end for _, end, kind in events(data) if kind in {15, 35}} | {4, len(data)}
    for size in range(len(data)):
        path = tmp_path / "cut.000001"
        path.write_bytes(data[:size])
        reader = BinlogReader.from_file(path, filters=ALL, service="test", batch_bytes=1 << 20)
        if size in borders:
            while not reader.ended:
                reader.read()
        elif size:
            with pytest.raises(CorruptBinlog):
                while not reader.ended:
                    reader.read()
        reader.close()


@pytest.mark.long
def test_every_changed_bit_is_noticed(tmp_path: Path) -> None:
    """Checksums guard all but the file's magic, which is checked, and the flag that says a log is in use."""
    data = LOG.read_bytes()
    draw = random.Random(3)
    in_use = 8 * (4 + 17)
    for bit in [*range(32), *(draw.randrange(32, 8 * len(data)) for _ in range(1500))]:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        if bit == in_use:
            continue
        with pytest.raises(ConnectorError):
            read_back(bytes(damaged), tmp_path)


@pytest.mark.parametrize("seed", [0, *long(1, 2, 3)])
def test_damage_under_a_right_checksum_ends_in_data_or_a_connector_error(tmp_path: Path, seed: int) -> None:
    """Nothing else: no crash, no other exception, no endless loop. (Half of such damage is a value like any other.)"""
    data = LOG.read_bytes()
    draw = random.Random(seed)
    places = events(data)
    outcomes = {"data": 0, "error": 0}
    for _ in range(600):
        start, end, _ = draw.choice(places)
        damaged = bytearray(data)
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            at = draw.randrange(start + 19, end - 4) if draw.random() < 0.9 else draw.randrange(start, end)
            damaged[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFA, 0xFC, 0xFE, 0xFF, draw.randrange(256)])
        try:
            read_back(resealed(bytes(damaged), start, end), tmp_path)
            outcomes["data"] += 1
        except ConnectorError as error:
            assert error.where.get("file") or not error.where
            outcomes["error"] += 1
    assert min(outcomes.values()) > 20


def test_missing_event_is_refused_as_a_jump(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    start, end, _ = next(event for event in events(data) if event[2] == 33)
    with pytest.raises(CorruptBinlog) as jump:
        read_back(data[:start] + data[end:], tmp_path)
    assert "ends" in jump.value.where
