"""Headers are read as fastavro wrote them; other bytes are refused."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.compact.scan import Scanner
from connector.log.format import checked
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.ids import Kind, Outcome
from connector.log.reading.event_range import is_plain, joins
from connector.log.rules import Rule
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from tests.support.broken_rules import breaks
from tests.support.fragments import PREFIX, batch, change, encoded, record, registered, statement
from tests.support.fragments import scanned as messages

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=20)
OPTIONAL_TEXT = st.none() | TEXT


def scanned(*values: bytes) -> list[Message]:
    return messages(values, topic="thl.shop", partition=3, offset=40)


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
        commit_time=draw(st.none() | st.integers(0, checked.LATEST)),
        outcome=draw(st.sampled_from([None, "commit", "rollback", "void"])),
    )


@given(st.lists(st.tuples(headers(), st.booleans()), min_size=1, max_size=4))
def test_messages_framed_for_a_registry_are_read_beside_others(
    records: list[tuple[dict[str, Any], bool]],
) -> None:
    values = [registered(fields) if with_registry else encoded(fields) for fields, with_registry in records]
    plain = scanned(*(encoded(fields) for fields, _ in records))
    for message, other, value, (_, with_registry) in zip(scanned(*values), plain, values, records, strict=True):
        told = {"schema": PREFIX[2:].hex()} if with_registry else {}
        assert message.header == replace(other.header, metadata={**other.header.metadata, **told})
        assert message.size == len(value)


def test_message_of_another_schema_is_refused_in_either_framing() -> None:
    ours, other = registered(record(1)), registered(record(2), schema="0" * 16)
    silent = ours[:5] + encoded(record(2))[10:]
    foreign = b"\xc3\x01" + bytes(8) + encoded(record(2))[10:]
    for value in (other, silent, foreign):
        with breaks(Rule.OTHER_SCHEMA, at="thl.shop-3@41"):
            scanned(ours, value)
    with breaks(Rule.NOT_A_FRAGMENT, at="thl.shop-3@41"):
        scanned(ours, b"\1" + ours[1:])
    with breaks(Rule.WRONG_CHECKSUM, at="thl.shop-3@41"):
        scanned(ours, b"\0" * 16)
    (message,) = scanned(ours)
    message.own()
    assert message.header.seqno == 1
    assert message.statements() == []


@given(st.lists(headers(), min_size=1, max_size=4))
def test_every_header_field_is_read_as_it_was_written(records: list[dict[str, Any]]) -> None:
    for fields, message in zip(records, scanned(*map(encoded, records)), strict=True):
        expected = {name: value for name, value in fields.items() if name not in ("changes", "crc32")}
        expected["kind"] = Kind[fields["kind"].upper()]
        expected["outcome"] = fields["outcome"] and Outcome[fields["outcome"].upper()]
        assert message.header == FragmentHeader(**expected)


def test_message_has_its_offset_and_size() -> None:
    values = [encoded(record(n)) for n in range(3)]
    messages = scanned(*values)
    assert [(m.partition, m.offset, m.size) for m in messages] == [(3, 40 + n, len(values[n])) for n in range(3)]


def test_a_sliced_batch_is_read_from_where_the_slice_begins() -> None:
    whole = batch([encoded(record(n)) for n in range(5)])
    (run,) = Scanner("t").scan(whole.slice(2, 2))
    assert [(m.header.seqno, m.offset) for m in run] == [(2, 2), (3, 3)]


def test_repeated_strings_are_one_object() -> None:
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


def test_message_with_its_own_bytes_has_the_same_statements() -> None:
    _, message = scanned(encoded(record(0)), encoded(record(1, [statement("DROP TABLE t")])))
    before = message.statements()
    message.own()
    assert message.statements() == before


def test_rows_after_statements_are_not_read_with_them() -> None:
    (message,) = scanned(encoded(record(0, [statement("CREATE TABLE t …"), change("insert", [(None, [1, 2])])])))
    assert [found.sql for found in message.statements()] == ["CREATE TABLE t …"]


@given(st.data())
def test_one_changed_byte_is_refused_with_its_place(data: st.DataObject) -> None:
    good = encoded(record(0, [change("insert", [(None, [1, "two"])])]))
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LogDamaged) as damaged:
        scanned(good, bytes(bad))
    assert damaged.value.where["at"] == "thl.shop-3@41"


@pytest.mark.parametrize("size", range(len(encoded(record(0)))))
def test_message_cut_short_is_refused(size: int) -> None:
    with pytest.raises(LogDamaged):
        scanned(encoded(record(0))[:size])


@given(st.binary(max_size=60))
def test_random_bytes_with_a_right_checksum_raise_errors_of_this_package_alone(body: bytes) -> None:
    with pytest.raises(LogDamaged):
        scanned(PREFIX + body + zlib.crc32(body).to_bytes(4, "big"))


FEW = st.integers(-1, 3)
TARGETS = ((), ("lake",), ("pond", "shelf"))  # of a load


@st.composite
def neighbours(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Headers of which some follow each other."""
    made: list[dict[str, Any]] = []
    seqno = barrier = -1
    for _ in range(draw(st.integers(1, 8))):
        changes = draw(st.sampled_from(["nothing"] * 4 + ["barrier", "link", "kind", "load", "load"]))
        one: dict[str, Any] = {"prev_seqno": seqno, "last_barrier": barrier}
        seqno += draw(st.sampled_from([1, 1, 1, 2, 3]))
        if changes == "barrier":
            one["shard"], barrier = "#UNKNOWN", seqno
        if changes == "link":
            one = {"prev_seqno": draw(FEW), "last_barrier": draw(FEW), "epoch": draw(FEW)}
        if changes == "kind":
            one |= {
                "kind": draw(st.sampled_from(["transaction", "ddl", "heartbeat", "epoch"])),
                "shard": draw(st.sampled_from(["shop", "#UNKNOWN", "a #UNKNOWN", ""])),
                "fragno": draw(st.integers(0, 1)),
                "last_frag": draw(st.booleans()),
                "outcome": draw(st.sampled_from([None, "commit", "rollback", "void"])),
                "metadata": draw(st.sampled_from([{}, *({"snapshot": what} for what in ("begin", "rows", "end"))])),
            }
        if changes == "load":
            event = LoadEvent("l", draw(st.sampled_from(Part)), TableName("s", "t"), draw(st.sampled_from(TARGETS)))
            one |= {"kind": "load", "metadata": event.metadata()}
        made.append(record(seqno, **one))
    return made


def test_event_with_a_statement_stays_alone_if_statements_are_executed() -> None:
    rows = change("insert", [(None, [1, "two"])])
    events = [
        record(0, [rows]),
        record(1, [rows, statement("UPDATE t")], shard="#UNKNOWN"),
        record(2, [rows], shard="#UNKNOWN", last_barrier=1),
        record(3, [rows], last_barrier=2),
    ]
    values = batch([encoded(one) for one in events])
    assert [len(found) for found in Scanner("t").scan(values)] == [4]
    assert [len(found) for found in Scanner("t", statements=True).scan(values)] == [1, 1, 2]


@given(neighbours(), st.sampled_from([0, 0, 1, 4, 1 << 20]), st.sampled_from([None, "", "lake", "shelf"]))
def test_scanned_messages_are_grouped_by_the_rule_of_event_ranges(
    records: list[dict[str, Any]], interval: int, target: str | None
) -> None:
    found = Scanner("t", interval, target).scan(batch([encoded(one) for one in records]))
    parts: list[list[FragmentHeader]] = []
    for header in map(one_header, records):
        if (
            parts
            and is_plain(parts[-1][-1], target)
            and is_plain(header, target)
            and joins(parts[-1][0], parts[-1][-1], header, interval)
        ):
            parts[-1].append(header)
        else:
            parts.append([header])
    assert [[message.header for message in part] for part in found] == parts


def one_header(fields: dict[str, Any]) -> FragmentHeader:
    (message,) = scanned(encoded(fields))
    return message.header


def test_offsets_that_do_not_ascend_are_of_different_ranges() -> None:
    values = [encoded(record(n)) for n in range(3)]
    columns = {"partition": pa.array([0, 0, 0], pa.int32()), "offset": pa.array([7, 7, 8]), "value": pa.array(values)}
    assert [len(part) for part in Scanner("t").scan(pa.record_batch(columns))] == [1, 2]
    columns |= {"partition": pa.array([0, 0, 1], pa.int32()), "offset": pa.array([6, 7, 8])}
    assert [len(part) for part in Scanner("t").scan(pa.record_batch(columns))] == [2, 1]


def test_event_range_has_the_facts_of_its_headers() -> None:
    values = [encoded(record(n, rows=n)) for n in range(3, 8)]
    (messages,) = Scanner("t").scan(batch(values, partition=2, offset=10))
    run = messages.since(1).event_range()
    assert (run.partition, run.first, run.prev_seqno, run.last_barrier) == (2, 4, 3, -1)
    assert (list(run.offsets), run.header.seqno, len(run.body)) == ([11, 12, 13, 14], 7, 4)
    assert (run.body.rows(0, 2), run.body.commit_time(0)) == (9, run.body.header(0).commit_time)
    assert messages.size == sum(map(len, values))
    for wrong in (-1, 5):
        with pytest.raises(IndexError):
            messages.header(wrong)


@given(
    st.lists(
        st.sampled_from(
            ["u:1", "u:2", "u:3", "u:10", "v:4", "u:t:4", "u:x", "0-1-7", "0-1-8", "0-2-9", "", "u:", None]
        ),
        max_size=9,
    )
)
def test_consecutive_gtids_are_one_range(gtids: list[str | None]) -> None:
    (messages,) = Scanner("t").scan(batch([encoded(record(n, gtid=gtid)) for n, gtid in enumerate([*gtids, None])]))
    told = []
    for first, _, count in messages.gtids(0, len(messages)):
        separator = ":" if ":" in first else "-"
        source, _, number = first.rpartition(separator)
        told += [first] + [f"{source}{separator}{int(number) + more}" for more in range(1, count)]
    assert told == [gtid for gtid in gtids if gtid is not None]
    assert messages.gtids(1, 1) == []


def test_gtid_that_is_not_utf8_is_refused_with_its_place() -> None:
    values = [encoded(record(n, gtid=f"u{n}:9")) for n in range(3)]
    body = values[1][len(PREFIX) : -4].replace(b"u1:9", b"\xff1:9")
    values[1] = PREFIX + body + zlib.crc32(body).to_bytes(4, "big")
    (messages,) = Scanner("t").scan(batch(values, partition=2, offset=10))
    with pytest.raises(LogDamaged) as damaged:
        messages.gtids(0, 3)
    assert damaged.value.where["at"] == "t-2@11"
