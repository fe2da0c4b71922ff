"""Messages of the event topic are decoded whole or as headers; anything else is damage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connector.errors import LogDamaged
from connector.inspect.thl_events.decoding import body_of, fragment_of, header_of
from tests.support.fragments import change, encoded, record, registered, statement

RECORD = record(7, [statement("x"), change("insert", [(None, [1, "a"])])], metadata={"heartbeat": "mine"})
MESSAGE = encoded(RECORD)
NUMBERED = registered(RECORD)


def test_a_header_is_the_fragment_without_its_changes() -> None:
    whole = fragment_of(MESSAGE, "t-0@1")
    assert [one.get("sql", "rows") for one in whole.pop("changes")] == ["x", "rows"]
    assert len(whole.pop("crc32")) == 4
    assert header_of(MESSAGE, "t-0@1") == whole
    assert (whole["seqno"], whole["metadata"], whole["event_id"]) == (7, {"heartbeat": "mine"}, RECORD["event_id"])


def test_a_header_is_read_before_damaged_changes() -> None:
    size = len(encoded(record(7, metadata={"heartbeat": "mine"}))) - 5  # without the empty array and the CRC
    assert header_of(MESSAGE[:size] + b"\xff" * 9, "t-0@1")["seqno"] == 7


@pytest.mark.parametrize("read", [body_of, fragment_of, header_of])
def test_another_schema_is_damage(read: object) -> None:
    assert callable(read)
    refused(read, MESSAGE[:2] + bytes(8) + MESSAGE[10:])


def test_a_message_in_a_registrys_framing_is_decoded_the_same() -> None:
    plain, told = fragment_of(MESSAGE, "t-0@1"), fragment_of(NUMBERED, "t-0@1")
    assert told["metadata"].pop("schema") == MESSAGE[2:10].hex()
    assert {**told, "crc32": b""} == {**plain, "crc32": b""}
    assert header_of(NUMBERED, "t-0@1")["seqno"] == 7
    assert body_of(NUMBERED, "t-0@1") == NUMBERED[5:]


@pytest.mark.parametrize("read", [body_of, fragment_of, header_of])
def test_another_schema_in_a_registrys_framing_and_a_foreign_message_are_damage(read: object) -> None:
    assert callable(read)
    refused(read, registered(RECORD, schema="0" * 16))
    refused(read, NUMBERED[:5] + MESSAGE[10:])
    refused(read, b'{"a": 1, "b": 2}')


def refused(read: Callable[[bytes, str], object], value: bytes) -> None:
    """The error names the message's offset and its first bytes."""
    with pytest.raises(LogDamaged) as raised:
        read(value, "t-0@1")
    assert raised.value.where["at"] == "t-0@1"
    assert value.hex().startswith(str(raised.value.where["begins"]))


@pytest.mark.parametrize("size", [10, 20, 60, len(MESSAGE) - 5])
def test_a_message_that_ends_early_is_damage(size: int) -> None:
    with pytest.raises(LogDamaged) as raised:
        fragment_of(MESSAGE[:size], "t-0@1")
    assert raised.value.where["at"] == "t-0@1"


def test_a_wrong_checksum_is_damage_or_with_no_checksum_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    wrong = MESSAGE[:-1] + bytes([MESSAGE[-1] ^ 1])
    with pytest.raises(LogDamaged):
        fragment_of(wrong, "t-0@1")
    assert {**fragment_of(wrong, "t-0@1", checksums=False), "crc32": b""} == {
        **fragment_of(MESSAGE, "t-0@1", checksums=False),
        "crc32": b"",
    }
    assert [record.__dict__["at"] for record in caplog.records] == ["t-0@1"]
    refused(lambda value, at: fragment_of(value, at, checksums=False), MESSAGE[:2] + bytes(8) + MESSAGE[10:])
