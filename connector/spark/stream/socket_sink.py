"""Sends messages from a Python worker of Spark to the applier, over a Unix socket.

Spark's continuous processing has no sink that calls back into the driver, so a function that Spark calls for every row
sends the row's HEADER and the value's bytes.

The worker imports this module, so it uses little more than the standard library.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Final

from connector.log.compact.without_rows import without_rows

HEADER: Final = struct.Struct("<iqii")  # partition, offset, size of the value (ABSENT: null), bytes left out of it
ABSENT: Final = -1


_EARLIER: list[SocketSink] = []  # sinks of this worker


class SocketSink:
    """The function that Spark calls for every row. A worker's copy connects at its task's start, before the first row.

    Args:
        address: path of the socket on which the applier listens.
        target: the target's ID, as that of `load.for_others`: rows of loads for other targets are left out; None: no
            rows are.
    """

    def __init__(self, address: str, target: str | None = None) -> None:
        self._address = address
        self._target = target
        self._connection: socket.socket | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _connected, (self._address, self._target)

    def __call__(self, partition: int, offset: int, value: bytearray | None) -> bool:
        """Send one message; waits while the socket's buffer is full.

        Raises:
            OSError: the applier has closed the connection.
        """
        connection = self._connection or self.connect()
        if value is None:
            connection.sendall(HEADER.pack(partition, offset, ABSENT, 0))
            return True
        short = None if self._target is None else without_rows(value, self._target)
        sent = value if short is None else short
        connection.sendall(HEADER.pack(partition, offset, len(sent), len(value) - len(sent)) + sent)
        return True

    def close(self) -> None:
        """Close the connection; sent messages still arrive."""
        if self._connection is not None:
            self._connection.close()

    def connect(self) -> socket.socket:
        """Connect to the applier.

        Raises:
            OSError: no process listens on the socket.
        """
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(self._address)
        return self._connection


def _connected(address: str, target: str | None) -> SocketSink:
    # Spark ends a worker by closing its socket, for which the worker would print a traceback. Spark itself reports
    # errors of this function to the driver.
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the worker's life)
    sink = SocketSink(address, target)
    sink.connect()
    # A worker runs several tasks; an open connection of an earlier task would look like a running task.
    while _EARLIER:
        _EARLIER.pop().close()
    _EARLIER.append(sink)
    return sink


class FrameDecoder:
    """Splits the bytes of one connection into messages, and keeps the bytes of an unfinished one.

    Attributes:
        left_out: the bytes that the worker has left out of the messages so far.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self.left_out = 0

    def feed(self, data: bytes) -> list[tuple[int, int, bytes | None]]:
        """Add received bytes.

        Returns:
            Partition, offset and value of every message that is complete now.
        """
        self._data += data
        found: list[tuple[int, int, bytes | None]] = []
        at = 0
        with memoryview(self._data) as view:
            while at + HEADER.size <= len(view):
                partition, offset, size, left_out = HEADER.unpack_from(view, at)
                end = at + HEADER.size + max(size, 0)
                if end > len(view):
                    break
                self.left_out += left_out
                found.append((partition, offset, None if size == ABSENT else bytes(view[at + HEADER.size : end])))
                at = end
        del self._data[:at]
        return found
