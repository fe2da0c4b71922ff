"""Every public path that reads messages gives the same verdict on the same damaged header or number.

The checksum of each message is right: the damage was written, not made on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connector.errors import LogDamaged
from connector.kafka.trapped import logged_events
from connector.log.format.framing import FINGERPRINT
from connector.log.format.varint import write_long
from connector.schema import schema_fingerprint
from tests.fuzz.log_readers import AT, MESSAGE_READERS
from tests.fuzz.messages import resealed
from tests.support.fragments import change, encoded, in_parts, record, registered
from tests.unit.log.format.test_varint import TOO_LARGE, TOO_LONG

MARK = 987_654_321  # a number that a message has once, where the damage goes
GTID = "6f1c9a52-0000-11ee-8c99-0242ac120002:7"
ROWS = change("insert", [(None, [MARK, "a"])])
Reader = Callable[[bytes], object]
READERS: dict[str, Reader] = {
    name: read for name, read in MESSAGE_READERS.items() if name not in ("statements", "shards", "body", "place")
} | {"trapped": lambda value: list(logged_events(AT, iter([value]), lambda *_: True))}
OF_HEADERS = ("heads", "consume", "assembly", "list", "undo", "header", "spark", "collapse", "trapped")
FIRST = ("seqno", "epoch", "prev_seqno")  # the fields of `first_fields`
HEADER = (*FIRST, "last_barrier", "rows", "server_id", "thread_id", "last_committed", "sequence_number", "commit_time")


def refused(read: Reader, value: bytes) -> bool:
    try:
        read(value)
    except LogDamaged:
        return True
    return False


def verdicts(value: bytes, names: tuple[str, ...]) -> dict[str, bool]:
    return {name: refused(READERS[name], value) for name in names}


def with_number(message: bytes, number: bytes) -> bytes:
    """A message whose MARK is written as other bytes."""
    opening = 10 if message[:1] == b"\xc3" else 5
    body = message[opening:-4]
    assert body.count(write_long(MARK)) == 1
    return message[:opening] + resealed(body.replace(write_long(MARK), number))


@pytest.mark.parametrize("framed", [encoded, registered])
@pytest.mark.parametrize("number", [*TOO_LONG, *TOO_LARGE], ids=bytes.hex)
@pytest.mark.parametrize("field", HEADER)
def test_odd_number_in_a_header_is_refused_by_every_reader(
    field: str, number: bytes, framed: Callable[[dict[str, object]], bytes]
) -> None:
    message = with_number(framed(record(0, [change("insert", [(None, [1, "a"])])]) | {field: MARK}), number)
    assert set(verdicts(message, OF_HEADERS).values()) == {True}
    assert refused(MESSAGE_READERS["place"], message) == (field in FIRST)
    # The rest of the message is read, so what was refused is the number.
    assert not refused(READERS["header"], with_number(framed(record(0) | {field: MARK}), b"\x82\x80\x00"))


@pytest.mark.parametrize("number", [*TOO_LONG, *TOO_LARGE], ids=bytes.hex)
def test_odd_number_in_a_row_is_refused_by_every_reader(number: bytes) -> None:
    names = ("collapse", "collapse with columns", "collapse of a run", "spark", "consume", "list", "undo", "trapped")
    message = with_number(encoded(record(0, [ROWS])), number)
    assert set(verdicts(message, names).values()) == {True}


@pytest.mark.parametrize("number", [*TOO_LONG, *TOO_LARGE], ids=bytes.hex)
def test_odd_number_in_a_part_is_refused_by_every_reader(number: bytes) -> None:
    names = ("collapse", "consume", "list", "trapped", "undo")
    part = in_parts(ROWS, 1)[0]
    data = part["data"].replace(write_long(MARK), number)
    message = encoded(record(0, [part | {"data": data, "size": len(data)}], rows=1))
    assert set(verdicts(message, names).values()) == {True}


@pytest.mark.parametrize("name", OF_HEADERS)
def test_header_cut_anywhere_is_refused(name: str) -> None:
    whole = encoded(record(0, gtid=GTID))
    for end in range(11, len(whole) - 5):
        assert refused(READERS[name], whole[:10] + resealed(whole[10:end])), end


# Offsets in the body of a message whose seqno, fragno, epoch and prev_seqno take one byte each.
LAST_FRAG, KIND = 2, 4


@pytest.mark.parametrize(("at", "byte"), [(LAST_FRAG, 2), (LAST_FRAG, 0xFF), (KIND, 1), (KIND, 8), (KIND, 0x80)])
def test_byte_that_is_no_boolean_or_no_kind_is_refused_by_every_reader(at: int, byte: int) -> None:
    body = bytearray(encoded(record(1))[10:-4])
    body[at] = byte
    message = encoded(record(1))[:10] + resealed(bytes(body))
    assert set(verdicts(message, OF_HEADERS).values()) == {True}
    assert refused(MESSAGE_READERS["place"], message)


def test_negative_length_of_a_shard_is_refused_by_every_reader() -> None:
    body = encoded(record(1))[10:-4].replace(b"\x08shop", b"\x07shop", 1)
    message = encoded(record(1))[:10] + resealed(body)
    assert set(verdicts(message, OF_HEADERS).values()) == {True}
    assert refused(MESSAGE_READERS["place"], message)


def test_bytes_after_the_changes_are_refused_by_every_reader() -> None:
    names = ("collapse", "collapse of a run", "spark", "consume", "list", "undo", "trapped")
    message = encoded(record(0, [ROWS]))
    assert set(verdicts(message[:10] + resealed(message[10:-4] + b"\0"), names).values()) == {True}


def test_undamaged_message_is_read_by_every_reader() -> None:
    for framed in (encoded, registered):
        assert set(verdicts(framed(record(0, [ROWS])), tuple(READERS)).values()) == {False}


def test_fingerprint_is_the_schemas() -> None:
    assert schema_fingerprint() == FINGERPRINT
