"""A socket that one thread reads while another writes."""

from __future__ import annotations

import select
import socket
import ssl
from threading import Lock
from typing import Final

NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SharedSocket:
    """A connected socket, plain or TLS, of one reading and one writing thread.

    A TLS object may not be used by two threads at once, and `recv` and `send` of a blocking socket would exclude each
    other for as long as they block. So no call on the socket blocks; each holds a lock, and waiting does not.

    Args:
        connected: the socket; nobody else may use it afterwards.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._lock = Lock()
        self._closed = False
        self._unsent = b""
        self._timeout = 0.0
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def settimeout(self, seconds: float) -> None:
        """Set the longest wait of `recv_into`."""
        self._timeout = seconds

    def recv_into(self, into: memoryview) -> int:
        """Fill `into` with received bytes; return their number, 0 at the end.

        Raises:
            TimeoutError: none came in time; or, sooner, only a part of what TLS decrypts at once.
            OSError: the connection is lost.
        """
        received = self._receive(into)
        if received is None:
            self._poll.modify(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            self._poll.poll(self._timeout * 1000)
            received = self._receive(into)
        if received is None:
            raise TimeoutError
        return received

    def send(self, data: bytes) -> None:
        """Send bytes. What the connection does not accept now is sent by a later call of `send` or `recv_into`.

        Raises:
            OSError: the connection is lost, or closed.
        """
        with self._lock:
            self._unsent += data
            self._send()

    def close(self) -> None:
        """Close the socket. May be repeated."""
        with self._lock:
            self._closed = True
            self._socket.close()

    def _receive(self, into: memoryview) -> int | None:
        with self._lock:
            self._send()
            try:
                return self._socket.recv_into(into)
            except NOT_NOW:
                return None

    def _send(self) -> None:
        if self._closed:
            raise ConnectionAbortedError("the connection was closed")
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except NOT_NOW:
                return
            self._unsent = self._unsent[sent:]
