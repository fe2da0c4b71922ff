"""Messages of the event topic are decoded whole, or as far as their headers go; others are damage."""

from __future__ import annotations

import pytest

from connector.errors import LogDamaged
from connector.inspect.events.decoding import body_of, fragment_of, header_of
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


def test_a_header_is_read_though_what_follows_is_damaged() -> None:
    size = len(encoded(record(7, metadata={"heartbeat": "mine"}))) - 5  # without the empty array and the CRC
    assert header_of(MESSAGE[:size] + b"\xff" * 9, "t-0@1")["seqno"] == 7


@pytest.mark.parametrize("read", [body_of, fragment_of, header_of])
def test_another_schema_is_damage(read: object) -> None:
    assert callable(read)
    with pytest.raises(LogDamaged, match=r"another schema than ours \[at=t-0@1 begins=c301"):
        read(MESSAGE[:2] + bytes(8) + MESSAGE[10:], "t-0@1")


def test_a_message_of_a_producer_with_a_registry_is_decoded_likewise() -> None:
    plain, told = fragment_of(MESSAGE, "t-0@1"), fragment_of(NUMBERED, "t-0@1")
    assert told["metadata"].pop("schema") == MESSAGE[2:10].hex()
    assert {**told, "crc32": b""} == {**plain, "crc32": b""}
    assert header_of(NUMBERED, "t-0@1")["seqno"] == 7
    assert body_of(NUMBERED, "t-0@1") == NUMBERED[5:]


@pytest.mark.parametrize("read", [body_of, fragment_of, header_of])
def test_another_schema_in_a_registry_is_damage_and_so_is_what_is_no_message(read: object) -> None:
    assert callable(read)
    with pytest.raises(LogDamaged, match=r"another schema than ours \[at=t-0@1 begins=00"):
        read(registered(RECORD, schema="0" * 16), "t-0@1")
    with pytest.raises(LogDamaged, match=r"another schema than ours \[at=t-0@1 begins=00"):
        read(NUMBERED[:5] + MESSAGE[10:], "t-0@1")
    with pytest.raises(LogDamaged, match=r"not a fragment \[at=t-0@1 begins=7b"):
        read(b'{"a": 1, "b": 2}', "t-0@1")


@pytest.mark.parametrize("size", [10, 20, 60, len(MESSAGE) - 5])
def test_a_message_that_ends_early_is_damage(size: int) -> None:
    with pytest.raises(LogDamaged, match="cannot be decoded"):
        fragment_of(MESSAGE[:size], "t-0@1")
