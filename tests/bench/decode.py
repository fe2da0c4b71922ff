"""`python -m tests.bench.decode FILE …`: decodes a binary log from memory, without a server.

Prints for each file rows, transactions, bytes, and the best of three runs in rows and MB per second, with the CPU
seconds that a million rows cost.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from connector.config.filters import Filters
from connector.log.transaction.batch import PositionAdvance, Rows
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.transforms.filters import Filter

RUNS = 3


class MemorySource:
    """Bytes in memory, received as from a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def receive(self, into: memoryview, timeout: float) -> int:
        del timeout
        size = min(len(into), len(self._data))
        into[:size] = self._data[:size]
        self._data = self._data[size:]
        return size

    def close(self) -> None:
        self._data.release()


def run(data: bytes, name: str) -> tuple[int, int, float, float]:
    """Measure; return rows, transactions, seconds and CPU seconds."""
    reader = BinlogReader(
        MemorySource(data), EventFrames(), filters=Filter(Filters()), service="bench", batch_bytes=4 << 20, file=name
    )
    rows = transactions = 0
    began, cpu = time.perf_counter(), time.process_time()
    while not reader.ended:
        for piece in reader.read():
            if isinstance(piece, PositionAdvance):
                continue
            transactions += piece.ending is not None
            rows += sum(change.count for change in piece.changes if isinstance(change, Rows))
    return rows, transactions, time.perf_counter() - began, time.process_time() - cpu


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        data = path.read_bytes()
        rows, transactions, seconds, cpu = min((run(data, path.name) for _ in range(RUNS)), key=lambda found: found[2])
        print(
            f"{path.name}: {rows} rows, {transactions} transactions, {len(data) / 1e6:.0f} MB: "
            f"{rows / seconds:,.0f} rows/s, {len(data) / seconds / 1e6:,.0f} MB/s, "
            f"{cpu / max(rows, 1) * 1e6:.2f} CPU s per million rows"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
