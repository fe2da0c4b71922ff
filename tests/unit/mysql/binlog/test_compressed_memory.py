"""The memory for compressed events is limited, whatever size they claim."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from connector.config.filters import Filters
from connector.errors import Unsupported
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import row_changes, whole_file
from tests.support.binlog_command import binlog
from tests.support.binlog_writer import ColumnDef, LogWriter, packed

MB = 1 << 20
BLOB = ColumnDef(252, b"\4", collation=63)
# Reads a log in a process of its own; prints how many rows, what ended it, and by how many MB the process has grown.
READ = """
import resource, sys
from pathlib import Path
from connector.mysql.transforms.filters import Filter
from connector.mysql.binlog.reader import BinlogReader
from connector.config.filters import Filters
from connector.errors import ConnectorError

reader = BinlogReader.from_file(Path(sys.argv[1]), filters=Filter(Filters()), service="t", batch_bytes=1 << 20)
before, rows, error = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0, None
try:
    while not reader.ended:
        rows += sum(change.count for piece in reader.read() for change in getattr(piece, "changes", ()))
except ConnectorError as raised:
    error = raised
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, error, getattr(error, "hint", ""))
"""


def inner(size: int, rows: int) -> Iterator[bytes]:
    """The events of a transaction with so many rows of so many zero bytes, in parts."""
    log = LogWriter(checksum=False)
    begin = len(log.data)
    log.begin()
    log.table_map([BLOB])
    yield log.data[begin:]
    head = struct.pack("<Q", 11)[:6] + b"\1\0\2\0\1\xff\0" + struct.pack("<I", size)
    for _ in range(rows):
        yield struct.pack("<IBIIIH", 1_700_000_000, 30, 1, 19 + len(head) + size, 0, 0) + head
        yield from (bytes(min(MB, size - at)) for at in range(0, size, MB))
    yield struct.pack("<IBIIIHQ", 1_700_000_000, 16, 1, 27, 0, 0, 9)


def compressed(size: int, rows: int) -> bytes:
    """A log with that transaction as MySQL compresses it."""
    stream = zstandard.ZstdCompressor().compressobj()
    data, length = b"", 0
    for part in inner(size, rows):
        data += stream.compress(part)
        length += len(part)
    data += stream.flush()
    numbers = {2: packed(0), 3: b"\xfe" + struct.pack("<Q", length), 1: packed(len(data))}
    fields = b"".join(bytes([kind, len(value)]) + value for kind, value in numbers.items())
    log = LogWriter()
    log.event(40, fields + b"\0" + data)
    return log.data


def read_aside(path: Path, data: bytes) -> tuple[int, int, str]:
    """Rows, MB, what ended it."""
    path.write_bytes(data)
    run = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, timeout=120, check=True)
    rows, grown, error = run.stdout.split(" ", 2)
    return int(rows), int(grown), error


def test_small_event_that_expands_to_gigabytes_is_refused(tmp_path: Path) -> None:
    data = compressed(512 * MB, 1)
    assert len(data) < 32 << 10
    rows, grown, error = read_aside(tmp_path / "log.000001", data)
    assert rows == 0
    assert grown < 64
    assert "size=536870948 limit=268435456" in error
    assert "source.largest_event_bytes (thl binlog --largest-event) = 536870948" in error


def test_a_transaction_of_any_size_is_read_in_the_same_memory(tmp_path: Path) -> None:
    rows, grown, error = read_aside(tmp_path / "log.000001", compressed(MB, 600))
    assert (rows, error.strip()) == (600, "None")
    assert grown < 64


@pytest.mark.parametrize("largest", [2 * MB, 4 * MB])
def test_largest_event_can_be_configured(tmp_path: Path, largest: int) -> None:
    path = tmp_path / "log.000001"
    path.write_bytes(compressed(3 * MB, 1))
    told = binlog("--largest-event", largest, path)
    if largest > 3 * MB:
        assert (told.code, len(told.rows)) == (0, 1)
    else:
        assert told.code != 0
        assert "--largest-event" in told.err


def test_mariadb_compressed_events_and_values_have_the_same_limit(tmp_path: Path) -> None:
    """Rows by log_bin_compress, then a column that is COMPRESSED itself."""
    row = b"\0" + struct.pack("<I", 3 * MB) + bytes(3 * MB)
    images = b"\x84" + struct.pack(">I", len(row)) + zlib.compress(row)
    small = b"\x84" + struct.pack(">I", 3 * MB) + zlib.compress(bytes(3 * MB))
    log = LogWriter(server=b"11.4.5-MariaDB-log")
    log.begin()
    log.table_map([BLOB])
    log.event(166, struct.pack("<Q", 11)[:6] + b"\1\0\1\xff" + images)
    log.commit()
    other = LogWriter(server=b"11.4.5-MariaDB-log")
    other.begin()
    other.table_map([ColumnDef(140, b"\4", collation=63)])
    other.rows(30, 1, b"\0" + struct.pack("<I", len(small)) + small)
    other.commit()
    for data in (log.data, other.data):
        path = tmp_path / "log.000001"
        path.write_bytes(data)
        (change,) = row_changes(whole_file(path, filters=Filter(Filters(), largest_event=4 * MB)), "t")
        assert change == ("INSERT", None, [bytes(3 * MB)])
        with pytest.raises(Unsupported) as raised:
            whole_file(path, filters=Filter(Filters(), largest_event=2 * MB))
        assert raised.value.where["limit"] == 2 * MB
        assert "source.largest_event_bytes" in raised.value.hint
