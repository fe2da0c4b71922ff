"""The applier receives the worker's messages whole, however the socket cuts them."""

from __future__ import annotations

import pickle
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.log.compact.without_rows import without_rows
from connector.spark.stream.socket_sink import ABSENT, HEADER, FrameDecoder, SocketSink
from tests.support.fragments import change, encoded, load_record

LOAD = encoded(load_record(0, [change("read", [(None, [1, "z"])])], targets=("lake",)))
MESSAGES = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.none() | st.binary(max_size=200)), max_size=20
)


@given(MESSAGES, st.data())
def test_messages_cut_anywhere_come_whole_and_in_order(
    sent: list[tuple[int, int, bytes | None]], data: st.DataObject
) -> None:
    stream = b"".join(
        HEADER.pack(partition, offset, ABSENT if value is None else len(value), 7) + (value or b"")
        for partition, offset, value in sent
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    decoder = FrameDecoder()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += decoder.feed(stream[start:end])
    assert found == sent
    assert decoder.left_out == 7 * len(sent)


def test_an_unpickled_sink_is_connected_before_the_first_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # a worker's is closed
    address = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(1)
        listening.settimeout(5)
        sink = pickle.loads(pickle.dumps(SocketSink(address, "shelf")))  # noqa: S301 (our own)
        connection, _ = listening.accept()
        with connection:
            assert sink(3, 7, bytearray(b"value"))
            assert sink(3, 8, None)
            assert sink(3, 9, bytearray())
            assert sink(3, 10, bytearray(LOAD))
            short = without_rows(LOAD, "shelf")
            assert short is not None
            expected = [(3, 7, b"value"), (3, 8, None), (3, 9, b""), (3, 10, short)]
            decoder = FrameDecoder()
            found = decoder.feed(connection.recv(1000))
            while len(found) < len(expected):
                found += decoder.feed(connection.recv(1000))
            assert found == expected
            assert decoder.left_out == len(LOAD) - len(short)
