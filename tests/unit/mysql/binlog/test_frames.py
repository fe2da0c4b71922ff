"""Packets and events from bytes received in parts of any size."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import ConnectorError, CorruptBinlog, PreflightError, SourceUnavailable
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Logged
from connector.mysql.binlog.frames import PacketFrames, SemiSyncFrames
from connector.mysql.binlog.reader import BinlogReader
from tests.support.binlog import ALL, row_changes
from tests.support.binlog_writer import ColumnDef, LogWriter, image

PART = 0xFFFFFF
BLOB = ColumnDef(252, b"\x04", collation=63)


class EndOfTest(Exception):
    pass


class Pieces:
    """A source that returns its bytes in given sizes."""

    def __init__(self, data: bytes, sizes: Iterator[int]) -> None:
        self._data = memoryview(data)
        self._sizes = sizes

    def receive(self, into: memoryview, timeout: float) -> int | None:
        size = min(next(self._sizes), len(into), len(self._data))
        if not len(self._data):
            raise EndOfTest
        into[:size] = self._data[:size]
        self._data = self._data[size:]
        return size or None

    def close(self) -> None:
        self._data.release()


def packets(payloads: list[bytes]) -> bytes:
    out = b""
    sequence = 1
    for payload in payloads:
        for at in range(0, len(payload) + 1, PART):
            part = payload[at : at + PART]
            out += struct.pack("<I", len(part))[:3] + bytes([sequence]) + part
            sequence = (sequence + 1) % 256
    return out


def stream_of(log: LogWriter, *, file: bytes = b"f.000001") -> list[bytes]:
    """The events of a log as a server sends them: an artificial Rotate first."""
    body = struct.pack("<Q", 4) + file
    rotate = struct.pack("<IBIIIH", 0, 4, 1, 19 + len(body), 0, 0x20) + body
    payloads = [b"\0" + rotate]
    at = 4
    while at < len(log.data):
        size = int.from_bytes(log.data[at + 9 : at + 13], "little")
        payloads.append(b"\0" + log.data[at : at + size])
        at += size
    return payloads


def read(
    data: bytes, sizes: Iterator[int], *, buffer: int = 1 << 16, frames: type[PacketFrames] = PacketFrames
) -> list[Logged]:
    reader = BinlogReader(Pieces(data, sizes), frames(buffer), filters=ALL, service="test", batch_bytes=1 << 20)
    found: list[Logged] = []
    with pytest.raises(EndOfTest):
        while True:
            found += reader.read()
    return found


def semi_sync_packets(payloads: list[bytes], waits: set[int], header: bytes = b"\xef") -> bytes:
    """Packets as a semi-synchronous source sends them: it restarts the numbers after an event that it waits for."""
    out, sequence = b"", 1
    for number, payload in enumerate(payloads):
        body = payload[:1] + header + bytes([number in waits]) + payload[1:]
        out += struct.pack("<I", len(body))[:3] + bytes([sequence]) + body
        sequence = (sequence + 1) % 256
        if number in waits:
            sequence = 1
    return out


def small_log() -> LogWriter:
    log = LogWriter()
    for number in range(30):
        log.begin()
        log.table_map([BLOB])
        log.rows(30, 1, image([struct.pack("<I", number) + bytes(number)]))
        log.commit()
    return log


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1), st.sampled_from([64, 100, 1 << 16]))
def test_events_do_not_depend_on_the_sizes_received(sizes: list[int], buffer: int) -> None:
    def forever() -> Iterator[int]:
        while True:
            yield from sizes
            yield 1000

    found = read(packets(stream_of(small_log())), forever(), buffer=buffer)

    assert [after for _, _, after in row_changes(found, "t")] == [[bytes(number)] for number in range(30)]
    last = found[-1]
    assert isinstance(last, TransactionBatch)
    assert last.ending is not None
    assert last.ending.end == SourcePosition("f.000001", len(small_log().data))


@pytest.mark.parametrize("more", [-30, -1, 0, 1, PART])
def test_events_around_and_above_a_packets_limit_are_joined(more: int) -> None:
    """The row's event is `more` bytes longer than a packet; the next one follows it."""
    log = LogWriter()
    log.begin()
    log.table_map([BLOB])
    size = PART + more - len(b"\0") - 19 - 8 - 2 - 1 - 1 - 1 - 4 - 4
    value = bytes(range(256)) * (size // 256 + 1)
    log.rows(30, 1, image([struct.pack("<I", size) + value[:size]]))
    log.rows(30, 1, image([struct.pack("<I", 1) + b"x"]))
    log.commit()
    payloads = stream_of(log)
    assert len(payloads[4]) == PART + more

    found = read(packets(payloads), iter(lambda: 300_000, 0))

    assert row_changes(found, "t") == [("INSERT", None, [value[:size]]), ("INSERT", None, [b"x"])]


def whole(payloads: list[bytes]) -> list[Logged]:
    return read(packets(payloads), iter(lambda: 1 << 20, 0))


def test_a_lost_packet_is_noticed() -> None:
    payloads = stream_of(small_log())
    data = packets(payloads[:3])
    second = packets(payloads[:4])[len(packets(payloads[:3])) :]
    broken = data + second[:3] + bytes([second[3] + 1]) + second[4:]
    with pytest.raises(CorruptBinlog) as raised:
        read(broken, iter(lambda: 1 << 20, 0))
    assert raised.value.where == {"file": "f.000001", "pos": 170}


@pytest.mark.parametrize(
    ("packet", "error", "code", "hint"),
    [
        (b"\xff\xd4\x04#HY000Could not find first log file name", PreflightError, 1236, "SHOW BINARY LOGS"),
        (b"\xff\xd4\x04#HY000A replica with the same server_uuid/server_id as", PreflightError, 1236, "server_id"),
        (b"\xff\xd4\x04#HY000anonymous transaction", PreflightError, 1236, "ON_PERMISSIVE"),
        (b"\xff\xcb\x04#42000Access denied", PreflightError, 1227, "REPLICATION SLAVE"),
        (b"\xff\x1d\x04#08S01Server shutdown in progress", SourceUnavailable, 1053, ""),
        (b"\xff\x01\x00no state", ConnectorError, 1, ""),
        (b"\xfe\x00\x00\x02\x00", SourceUnavailable, None, ""),
        (b"", CorruptBinlog, None, ""),
        (b"\x01abc", CorruptBinlog, None, ""),
        (b"\0abc", CorruptBinlog, None, ""),
    ],
)
def test_packet_that_is_no_event_raises_the_error_of_its_code(
    packet: bytes, error: type[ConnectorError], code: int | None, hint: str
) -> None:
    with pytest.raises(error) as raised:
        whole([*stream_of(small_log())[:2], packet])
    assert type(raised.value) is error
    assert raised.value.where.get("code") == code
    assert hint in raised.value.hint


def test_an_event_that_is_not_as_long_as_its_packet_is_corrupt() -> None:
    payloads = stream_of(small_log())
    with pytest.raises(CorruptBinlog):
        whole([*payloads[:2], payloads[2] + b"\0"])


def test_whole_events_before_an_error_are_returned_first() -> None:
    payloads = stream_of(small_log())
    reader = BinlogReader(
        Pieces(packets([*payloads, b""]), iter(lambda: 1 << 20, 0)),
        PacketFrames(),
        filters=ALL,
        service="test",
        batch_bytes=1 << 20,
    )
    assert len(row_changes(reader.read(), "t")) == 30
    for _ in range(2):
        with pytest.raises(CorruptBinlog):
            reader.read()


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 300)), st.integers(1, 3000))
def test_semi_synchronous_events_are_those_without_their_headers(waits: set[int], size: int) -> None:
    def forever() -> Iterator[int]:
        while True:
            yield size

    payloads = stream_of(small_log())
    found = read(semi_sync_packets(payloads, waits), forever(), frames=SemiSyncFrames)
    assert [after for _, _, after in row_changes(found, "t")] == [[bytes(number)] for number in range(30)]


def test_event_without_the_semi_synchronous_header_is_refused() -> None:
    def forever() -> Iterator[int]:
        while True:
            yield 1000

    for data in (packets(stream_of(small_log())), semi_sync_packets(stream_of(small_log()), set(), b"\xee")):
        with pytest.raises(CorruptBinlog, match="header of semi-synchronous"):
            read(data, forever(), frames=SemiSyncFrames)


def test_semi_synchronous_packet_that_is_missing_is_noticed() -> None:
    payloads = stream_of(small_log())
    whole = semi_sync_packets(payloads, {5})
    before, lost = semi_sync_packets(payloads[:7], {5}), semi_sync_packets(payloads[:8], {5})
    with pytest.raises(CorruptBinlog, match="packet is missing"):
        read(before + whole[len(lost) :], iter([len(whole)] * 9), frames=SemiSyncFrames)
