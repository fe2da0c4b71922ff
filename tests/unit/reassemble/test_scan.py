"""A message's header, as fastavro wrote it; and messages that are none."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.reassemble.scan import Message, Scanner
from connector.thl.header import FragmentHeader
from connector.thl.piece import Statement
from connector.thl.words import Kind, Outcome

from .fragments import PREFIX, batch, change, encoded, record, statement

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
OPTIONAL_TEXT = st.none() | TEXT


def scanned(*values: bytes) -> list[Message]:
    return list(Scanner("thl.shop").scan(batch(values, partition=3, offset=40)))


@st.composite
def headers(draw: st.DrawFn) -> dict[str, Any]:
    return record(
        draw(LONG),
        fragno=draw(st.integers(0, 2**31 - 1)),
        last_frag=draw(st.booleans()),
        epoch=draw(LONG),
        kind=draw(st.sampled_from(["transaction", "ddl", "heartbeat", "epoch"])),
        shard=draw(TEXT),
        prev_seqno=draw(LONG),
        last_barrier=draw(LONG),
        rows=draw(LONG),
        source_id=draw(TEXT),
        server_id=draw(LONG),
        thread_id=draw(LONG),
        gtid=draw(OPTIONAL_TEXT),
        last_committed=draw(LONG),
        sequence_number=draw(LONG),
        metadata=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        event_id=draw(OPTIONAL_TEXT),
        commit_time=draw(st.none() | LONG),
        outcome=draw(st.sampled_from([None, "commit", "rollback", "void"])),
    )


@given(st.lists(headers(), min_size=1, max_size=4))
def test_every_header_field_is_read_as_it_was_written(records: list[dict[str, Any]]) -> None:
    for fields, message in zip(records, scanned(*map(encoded, records)), strict=True):
        expected = {name: value for name, value in fields.items() if name not in ("changes", "crc32")}
        expected["kind"] = Kind[fields["kind"].upper()]
        expected["outcome"] = fields["outcome"] and Outcome[fields["outcome"].upper()]
        assert message.header == FragmentHeader(**expected)


def test_a_message_knows_where_it_stood_and_how_long_it_is() -> None:
    values = [encoded(record(n)) for n in range(3)]
    messages = scanned(*values)
    assert [(m.partition, m.offset, m.size) for m in messages] == [(3, 40 + n, len(values[n])) for n in range(3)]


def test_a_sliced_batch_is_read_from_where_the_slice_begins() -> None:
    whole = batch([encoded(record(n)) for n in range(5)])
    assert [m.header.seqno for m in Scanner("t").scan(whole.slice(2, 2))] == [2, 3]


def test_strings_that_come_again_are_one_object() -> None:
    first, second = scanned(encoded(record(0, metadata={"a": "b"})), encoded(record(1, metadata={"a": "b"})))
    assert first.header.shard is second.header.shard
    assert first.header.source_id is second.header.source_id
    assert first.header.metadata is second.header.metadata


def test_statements_are_read_with_their_options() -> None:
    (message,) = scanned(
        encoded(record(0, [statement("CREATE TABLE é (i INT)", "shop", {"sql_mode": "ANSI"}), statement("x", "")]))
    )
    assert message.statements() == [
        Statement("shop", "CREATE TABLE é (i INT)", {"sql_mode": "ANSI"}),
        Statement("", "x", {}),
    ]


def test_a_message_with_bytes_of_its_own_says_the_same() -> None:
    _, message = scanned(encoded(record(0)), encoded(record(1, [statement("DROP TABLE t")])))
    before = message.statements()
    message.own()
    assert message.statements() == before


def test_rows_after_statements_are_left_for_later() -> None:
    (message,) = scanned(encoded(record(0, [statement("CREATE TABLE t …"), change("insert", [(None, [1, 2])])])))
    assert [found.sql for found in message.statements()] == ["CREATE TABLE t …"]


@given(st.data())
def test_one_changed_byte_is_noticed_and_located(data: st.DataObject) -> None:
    good = encoded(record(0, [change("insert", [(None, [1, "two"])])]))
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LogDamaged, match=r"thl\.shop-3@41"):
        scanned(good, bytes(bad))


@pytest.mark.parametrize("size", range(len(encoded(record(0)))))
def test_a_message_cut_short_is_noticed(size: int) -> None:
    with pytest.raises(LogDamaged):
        scanned(encoded(record(0))[:size])


@given(st.binary(max_size=60))
def test_bytes_with_a_right_checksum_that_are_no_fragment_raise_only_ours(body: bytes) -> None:
    with pytest.raises(LogDamaged):
        scanned(PREFIX + body + zlib.crc32(body).to_bytes(4, "big"))
