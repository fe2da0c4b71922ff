"""A man in the middle that removes TLS from a MySQL server's greeting."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

HOST: Final = "127.0.0.1"
_TLS: Final = 0x0800  # CLIENT_SSL


class Stripped:
    """The bytes received and sent by the proxy.

    Args:
        port: listening port.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard = bytearray()


@contextmanager
def stripping(server: tuple[str, int]) -> Iterator[Stripped]:
    """Listens; passes on the server's greeting without its TLS flag, and records the client's answer."""
    with socket.create_server((HOST, 0)) as listener:
        found = Stripped(listener.getsockname()[1])
        thread = Thread(target=_serve, args=(listener, server, found), daemon=True)
        thread.start()
        yield found
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _serve(listener: socket.socket, server: tuple[str, int], found: Stripped) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, socket.create_connection(server, timeout=10) as upstream:
                client.settimeout(10)
                client.sendall(without_tls(_packet(upstream)))
                while said := client.recv(4096):
                    found.heard += said


def _packet(sock: socket.socket) -> bytes:
    head = _exactly(sock, 4)
    return head + _exactly(sock, int.from_bytes(head[:3], "little"))


def _exactly(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = sock.recv(length - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def without_tls(greeting: bytes) -> bytes:
    """A greeting of protocol 10: after version and thread id come 8 bytes of salt, a zero, and the capabilities."""
    at = greeting.index(b"\0", 5) + 1 + 4 + 8 + 1
    (capabilities,) = struct.unpack_from("<H", greeting, at)
    return greeting[:at] + struct.pack("<H", capabilities & ~_TLS) + greeting[at + 2 :]
