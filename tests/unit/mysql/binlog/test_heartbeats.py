"""Dump heartbeats in a file, as in a stored stream; built byte by byte, because no server writes them to files.

They say how far the source is. So they pass between transactions and within them, and are checked like all others.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from connector.errors import CorruptBinlog
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Logged, end_of
from tests.support.binlog import whole_file
from tests.support.binlog_writer import ColumnDef, LogWriter, image, packed

INT = ColumnDef(3, unsigned=False)
NAME = b"log.000001"
FIRST, SECOND = 27, 41
END, FILE, OFFSET = 0, 1, 2
SIZE = 19 + 4  # of an event without a body
RELAY_LOG = 0x40


def first(log: LogWriter, name: bytes = NAME, **event: int) -> None:
    """Version 1: the name alone; the place is the header's."""
    log.event(FIRST, name, **event)


def second(log: LogWriter, name: bytes = NAME, place: int | None = None, **event: int) -> None:
    """Version 2: fields of type, length, value, each a packed integer; the place is one, and may be beyond 4 GiB."""
    size = SIZE + 2 + len(name) + 2 + 9 + 1
    told = b"\xfe" + struct.pack("<Q", len(log.data) + size if place is None else place)
    body = bytes([FILE]) + packed(len(name)) + name + bytes([OFFSET, len(told)]) + told + bytes([END])
    log.event(SECOND, body, **{"log_pos": 0, **event})


def begun(log: LogWriter) -> None:
    log.begin()
    log.table_map([INT])


def ended(log: LogWriter) -> None:
    log.rows(30, 1, image([struct.pack("<i", 1)]))
    log.commit()


def read(log: LogWriter, folder: Path, name: str = NAME.decode()) -> list[Logged]:
    path = folder / name
    path.write_bytes(log.data)
    return whole_file(path)


@pytest.mark.parametrize("beat", [first, second])
def test_dump_heartbeat_between_transactions_advances_the_position(beat: type[None], tmp_path: Path) -> None:
    log, places = LogWriter(), []
    for _ in range(2):
        begun(log)
        ended(log)
        places.append(len(log.data))
        beat(log)
        places.append(len(log.data))
    found = read(log, tmp_path)
    assert [type(item) for item in found] == [TransactionBatch, PositionAdvance, TransactionBatch, PositionAdvance]
    assert [end_of(item) for item in found] == [SourcePosition(NAME.decode(), place) for place in places]


@pytest.mark.parametrize("beat", [first, second])
def test_dump_heartbeat_within_a_transaction_is_ignored(beat: type[None], tmp_path: Path) -> None:
    """The place that they tell is not behind them there: whole transactions are what a source has read."""
    log = LogWriter()
    begun(log)
    start = len(log.data)
    beat(log, **({"log_pos": start} if beat is first else {"place": start}))
    beaten = len(log.data) - start
    rows = LogWriter()
    rows.data = log.data[:start]
    ended(rows)
    log.data += rows.data[start:]  # whose places do not count the heartbeat
    found = read(log, tmp_path)
    assert [end_of(item) for item in found] == [SourcePosition(NAME.decode(), len(log.data) - beaten)]


@pytest.mark.parametrize(
    ("beat", "wrong"),
    [
        (first, {"name": b"log.000002"}),
        (second, {"name": b"log.000002"}),
        (second, {"place": 4}),
        (second, {"place": (1 << 64) - 1}),
        (second, {"name": b""}),
    ],
    ids=["another file", "another file, version 2", "an earlier place", "no place", "no file"],
)
def test_wrong_position_of_a_dump_heartbeat_is_refused(
    beat: type[None], wrong: dict[str, object], tmp_path: Path
) -> None:
    log = LogWriter()
    begun(log)
    ended(log)
    place = len(log.data)
    beat(log, **wrong)
    with pytest.raises(CorruptBinlog) as raised:
        read(log, tmp_path)
    assert raised.value.where["pos"] == place
    assert str(raised.value.where["event"]).startswith("HEARTBEAT")


@pytest.mark.parametrize("beat", [first, second])
def test_wrong_checksum_of_a_dump_heartbeat_is_refused(beat: type[None], tmp_path: Path) -> None:
    log = LogWriter()
    beat(log)
    log.data = log.data[:-1] + bytes([log.data[-1] ^ 1])
    with pytest.raises(CorruptBinlog):
        read(log, tmp_path)


@pytest.mark.parametrize("cut", range(1, 12))
def test_truncated_heartbeat_v2_is_refused(cut: int, tmp_path: Path) -> None:
    log = LogWriter()
    whole = LogWriter()
    second(whole)
    body = whole.data[len(log.data) + 19 : -4]
    log.event(SECOND, body[: -1 - cut], log_pos=0)
    with pytest.raises(CorruptBinlog):
        read(log, tmp_path)
