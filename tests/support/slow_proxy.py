"""A TCP proxy on loopback that delays what passes, as a network with long round trips does; throughput stays.

`python -m tests.support.slow_proxy HOST PORT SECONDS` prints its port; each direction is delayed by half of them.
It is a process of its own, so that its work is not the measured one's.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from threading import Thread
from typing import Final

HOST: Final = "127.0.0.1"
CHUNK: Final = 1 << 18
WAITING: Final = 256  # chunks of a connection that are on their way


@contextmanager
def slow_proxy(host: str, port: int, seconds: float) -> Iterator[int]:
    """Start a proxy for a server; yields its port.

    Args:
        host, port: of the server.
        seconds: by which each round trip is longer.
    """
    command = [sys.executable, "-m", __name__, host, str(port), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve(host: str, port: int, seconds: float) -> None:
    """Accept connections for ever."""
    listener = socket.create_server((HOST, 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection((host, port))
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            way: Queue[tuple[float, bytes]] = Queue(WAITING)
            Thread(target=_receive, args=(one, way, seconds / 2), daemon=True).start()
            Thread(target=_send, args=(other, way), daemon=True).start()


def _receive(source: socket.socket, way: Queue[tuple[float, bytes]], delay: float) -> None:
    chunk = b""
    with suppress(OSError):
        while chunk := source.recv(CHUNK):
            way.put((time.monotonic() + delay, chunk))
    way.put((0.0, b""))


def _send(sink: socket.socket, way: Queue[tuple[float, bytes]]) -> None:
    with suppress(OSError):
        while (next_one := way.get())[1]:
            due, chunk = next_one
            if (left := due - time.monotonic()) > 0:
                time.sleep(left)
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
