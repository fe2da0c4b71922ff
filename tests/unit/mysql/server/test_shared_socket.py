"""A socket that one thread reads while another writes, plain and with TLS."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from threading import Thread

import pytest

from connector.mysql.server.shared_socket import SharedSocket
from tests.support.certificates import write_certificates

PATIENCE = 30.0  # seconds: a fault here is a thread that waits for ever
BYTES = 1 << 20
Pair = tuple[SharedSocket, socket.socket]


@pytest.fixture(params=["plain", "tls"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    here, there = socket.socketpair()
    there.settimeout(PATIENCE)
    if request.param == "plain":
        with closing(SharedSocket(here)) as shared, there:
            yield shared, there
        return
    with write_certificates() as files:
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(files.certificate, files.key)
        asking = ssl.create_default_context(cafile=files.authority)
        secured: list[socket.socket] = []
        thread = Thread(target=lambda: secured.append(serving.wrap_socket(there, server_side=True)))
        thread.start()
        client = asking.wrap_socket(here, server_hostname="127.0.0.1")
        thread.join()
        with closing(SharedSocket(client)) as shared, secured[0]:
            yield shared, secured[0]


def received(read: Callable[[memoryview], int], total: int) -> bytes:
    found, buffer = b"", memoryview(bytearray(1 << 16))
    while len(found) < total:
        with suppress(TimeoutError):  # a part of a TLS record
            size = read(buffer)
            assert size
            found += buffer[:size]
    return found


def test_nothing_received_in_time_is_a_timeout(pair: Pair) -> None:
    shared, there = pair
    shared.settimeout(0.01)
    with pytest.raises(TimeoutError):
        shared.recv_into(memoryview(bytearray(10)))
    there.sendall(b"late")
    shared.settimeout(PATIENCE)
    assert received(shared.recv_into, 4) == b"late"


def test_end_of_the_other_side_is_the_end(pair: Pair) -> None:
    shared, there = pair
    shared.settimeout(PATIENCE)
    there.sendall(b"last")
    there.shutdown(socket.SHUT_RDWR)
    assert received(shared.recv_into, 4) == b"last"
    with suppress(ssl.SSLEOFError):  # TLS tells an end without its own farewell from a cut
        assert shared.recv_into(memoryview(bytearray(10))) == 0


def test_both_directions_at_once_lose_and_change_no_byte(pair: Pair) -> None:
    """The writer does not wait for the other side, which reads only afterwards: the rest goes with what is received."""
    shared, there = pair
    shared.settimeout(PATIENCE)
    down, up = bytes(range(256)) * (BYTES >> 8), bytes(range(255, -1, -1)) * (BYTES >> 8)
    sending = Thread(target=there.sendall, args=(down,))
    sending.start()
    writing = Thread(target=lambda: [shared.send(up[at : at + 600]) for at in range(0, BYTES, 600)])
    writing.start()
    assert received(shared.recv_into, BYTES) == down
    writing.join(PATIENCE)
    sending.join(PATIENCE)
    assert not writing.is_alive()
    got: list[bytes] = []
    thread = Thread(target=lambda: got.append(received(there.recv_into, BYTES)))
    thread.start()
    shared.settimeout(0.01)
    while thread.is_alive():
        with pytest.raises(TimeoutError):
            shared.recv_into(memoryview(bytearray(10)))
    assert got == [up]


def test_unsent_bytes_are_sent_while_nothing_is_received(pair: Pair) -> None:
    """A reader that waits for the other side for long wakes as soon as the connection accepts bytes again."""
    shared, there = pair
    shared.settimeout(100 * PATIENCE)
    up = bytes(range(256)) * (BYTES >> 8)
    shared.send(up)
    reading = Thread(target=received, args=(shared.recv_into, 4), daemon=True)
    reading.start()
    got = b""
    while len(got) < BYTES:
        part = there.recv(1 << 16)
        assert part
        got += part
    assert got == up
    there.sendall(b"done")
    reading.join(PATIENCE)
    assert not reading.is_alive()


def test_sending_on_a_closed_socket_is_an_error(pair: Pair) -> None:
    shared, _ = pair
    shared.close()
    with pytest.raises(OSError, match="closed"):
        shared.send(b"late")
