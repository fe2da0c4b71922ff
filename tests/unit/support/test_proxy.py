"""The proxy of the fault tests: the bytes that pass, and what both ends see of a cut."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from threading import Thread

import pytest

from tests.support.clock import PATIENCE
from tests.support.proxy import HOST, Cut, Proxy, Way

MOMENT = 0.3


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as made:
        made.settimeout(PATIENCE)
        yield made


@pytest.fixture
def proxy(listener: socket.socket) -> Iterator[Proxy]:
    with Proxy(listener.getsockname()) as made:
        yield made


def connected(proxy: Proxy, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of one connection through the proxy."""
    client = socket.create_connection((HOST, proxy.port), timeout=PATIENCE)
    server, _ = listener.accept()
    server.settimeout(PATIENCE)
    return client, server


def received(end: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (more := end.recv(count - len(found))):
        found += more
    return found


def is_reset(end: socket.socket) -> bool:
    try:
        return end.recv(1) == b"!"  # neither a byte nor an orderly end
    except ConnectionResetError:
        return True


def test_bytes_of_both_directions_arrive_and_are_counted(proxy: Proxy, listener: socket.socket) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        many = bytes(range(256)) * 2000
        Thread(target=client.sendall, args=(many,), daemon=True).start()
        assert received(server, len(many)) == many
        server.sendall(b"answer")
        assert received(client, 6) == b"answer"
        client.close()
        assert server.recv(1) == b""
        assert proxy.passed == {Way.UP: len(many), Way.DOWN: 6}


@pytest.mark.parametrize("after", [0, 1, 700, 100_000])
def test_a_reset_lets_exactly_so_many_bytes_pass(proxy: Proxy, listener: socket.socket, after: int) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        client.sendall(b"before")
        assert received(server, 6) == b"before"
        proxy.arm(Cut(Way.UP, "reset", after=after))
        client.sendall(b"x" * after)
        assert received(server, after) == b"x" * after
        assert proxy.armed
        client.sendall(b"y")
        assert is_reset(client)
        assert is_reset(server)
        assert not proxy.armed
    client, server = connected(proxy, listener)  # once: the next connection is whole
    with closing(client), closing(server):
        client.sendall(b"z" * (after + 1))
        assert received(server, after + 1) == b"z" * (after + 1)
        assert proxy.cuts == 1


def test_first_part_of_a_cut_chunk_passes(proxy: Proxy, listener: socket.socket) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        proxy.arm(Cut(Way.DOWN, "silence", after=3))
        server.sendall(b"abcdef")
        assert received(client, 3) == b"abc"
        client.settimeout(MOMENT)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.sendall(b"is anybody there?")
        server.settimeout(MOMENT)
        with pytest.raises(TimeoutError):
            server.recv(1)


def test_silence_blocks_the_sender(proxy: Proxy, listener: socket.socket) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        proxy.arm(Cut(Way.UP, "silence"))
        client.settimeout(MOMENT)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(64 << 20))
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_lost_answer_is_one_to_a_request_that_arrived(proxy: Proxy, listener: socket.socket) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        proxy.arm(Cut(Way.UP, "lost answer", at=lambda chunk: chunk == b"COMMIT"))
        client.sendall(b"BEGIN")
        assert received(server, 5) == b"BEGIN"
        server.sendall(b"done")
        assert received(client, 4) == b"done"
        client.sendall(b"COMMIT")
        assert received(server, 6) == b"COMMIT"
        client.settimeout(MOMENT)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(PATIENCE)
        server.sendall(b"done")
        assert is_reset(client)
        assert is_reset(server)


def test_a_lost_request_does_not_arrive(proxy: Proxy, listener: socket.socket) -> None:
    client, server = connected(proxy, listener)
    with closing(client), closing(server):
        proxy.arm(Cut(Way.UP, "reset", at=lambda chunk: chunk == b"COMMIT"))
        client.sendall(b"COMMIT")
        assert is_reset(client)
        assert is_reset(server)
        assert proxy.passed[Way.UP] == 0


def test_proxy_switches_to_another_server(proxy: Proxy, listener: socket.socket) -> None:
    old, server = connected(proxy, listener)
    with closing(old), closing(server), socket.create_server((HOST, 0)) as second:
        second.settimeout(PATIENCE)
        proxy.server = second.getsockname()
        proxy.reset()
        assert is_reset(old)
        new, other = connected(proxy, second)
        with closing(new), closing(other):
            other.sendall(b"other")
            assert received(new, 5) == b"other"


def test_connection_ends_if_the_server_does_not_listen(proxy: Proxy, listener: socket.socket) -> None:
    listener.close()
    with closing(socket.create_connection((HOST, proxy.port), timeout=PATIENCE)) as client:
        assert client.recv(1) == b""
