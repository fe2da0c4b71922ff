"""A TCP proxy on loopback that cuts connections: by a reset or by silence, within or after given bytes.

What passes is not looked at, but by who arms a cut or changes it. A cut happens once, on the first connection that
comes to it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Literal, Self

HOST = "127.0.0.1"
CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: close sends RST


class Way(Enum):
    """The direction of bytes."""

    UP = "to the server"
    DOWN = "to the client"


How = Literal["reset", "silence", "lost answer"]


@dataclass(frozen=True, eq=False)
class Cut:
    """When and how a connection is cut.

    Args:
        way: direction of the bytes that are counted or compared.
        after: bytes of one connection that still pass after the cut was armed.
        at: alternative to `after`: cut at the first chunk for which this is true.
        how: `reset`: the rest does not pass, and both ends are reset. `silence`: the rest does not pass, nothing is
            read any more, and no end is notified. `lost answer`: the chunk passes as a whole, but not the answer to
            it, and both ends are reset: the request has been executed.
    """

    way: Way
    how: How
    after: int = 0
    at: Callable[[bytes], bool] | None = None

    def passing(self, counted: int, chunk: bytes) -> int | None:
        """The number of bytes of a chunk that pass before the cut; None if it is not in this chunk."""
        if self.at is not None:
            return 0 if self.at(chunk) else None
        return self.after - counted if counted + len(chunk) > self.after else None


class Proxy:
    """Listens on a port of its own and connects to a server.

    Args:
        server: target of new connections; may be changed.
        change: what passes instead of a chunk.
    """

    def __init__(self, server: tuple[str, int], change: Callable[[Way, bytes], bytes] | None = None) -> None:
        self.server = server
        self.change = change
        self._listener = socket.socket()
        # Inherited by accepted sockets, so that few unread bytes look as if they had arrived.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK)
        self._listener.bind((HOST, 0))
        self._listener.listen()
        self.port: int = self._listener.getsockname()[1]
        self.passed = dict.fromkeys(Way, 0)
        """Bytes."""
        self.cuts = 0
        """How many have happened."""
        self._cut: Cut | None = None
        self._lock = Lock()
        self._wires: list[_Wire] = []
        self._closed = Event()
        Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut) -> None:
        """Cut the next connection."""
        with self._lock:
            self._cut = cut
            for wire in self._wires:
                wire.counted = 0

    @property
    def armed(self) -> bool:
        """True until the cut has happened."""
        return self._cut is not None

    def reset(self) -> None:
        """Reset all connections."""
        with self._lock:
            wires, self._wires = self._wires, []
        for wire in wires:
            wire.reset()

    def close(self) -> None:
        """Stop listening and reset all connections. May be repeated."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:  # so that `reset` misses none that its server has seen
                try:
                    server = socket.create_connection(self.server, timeout=10)
                except OSError:
                    client.close()
                    continue
                wire = _Wire(self, client, server)
                self._wires.append(wire)
            if self._closed.is_set():
                wire.reset()
            wire.start()

    def judge(self, wire: _Wire, way: Way, chunk: bytes) -> tuple[int, How | None]:
        """The number of bytes of a chunk that pass, and whether the connection is then cut."""
        with self._lock:
            cut, passing = self._cut, None
            if cut is not None and cut.way is way:
                passing = cut.passing(wire.counted, chunk)
                wire.counted += len(chunk)
            if cut is None or passing is None:
                self.passed[way] += len(chunk)
                return len(chunk), None
            self._cut = None
            self.cuts += 1
            passing = len(chunk) if cut.how == "lost answer" else passing
            self.passed[way] += passing
            return passing, cut.how


class _Wire:
    """One connection: a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._ends = {Way.UP: (client, server), Way.DOWN: (server, client)}
        self.counted = 0  # since a cut was armed, of its way
        self._silent = False  # also after a reset: no thread then reports an orderly end
        self._answers: Way | None = None  # of which way nothing may pass any more
        for end in (client, server):
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for way in Way:
            Thread(target=self._pump, args=(way,), daemon=True).start()

    def reset(self) -> None:
        self._silent = True
        for end in self._ends[Way.UP]:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                # a thread in recv holds the socket open: without this, close would send nothing
                end.shutdown(socket.SHUT_RD)
            end.close()

    def _pump(self, way: Way) -> None:
        source, sink = self._ends[way]
        try:
            while chunk := source.recv(CHUNK):
                if self._silent:
                    return
                if self._answers is way:
                    self.reset()
                    return
                if self._proxy.change is not None:
                    chunk = self._proxy.change(way, chunk)
                passing, how = self._proxy.judge(self, way, chunk)
                if how == "silence":
                    self._silent = True
                if how == "lost answer":
                    self._answers = Way.DOWN if way is Way.UP else Way.UP
                sink.sendall(chunk[:passing])
                if how == "reset":
                    self.reset()
                if how in ("reset", "silence"):
                    return
            if not self._silent:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.reset()
