"""Fragments of the compiled encoder are read by fastavro: any event, any batches, any fragment size."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import CorruptBinlog
from connector.log.ids import NO_SEQNO, Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import (
    PositionAdvance,
    Rows,
    Statement,
    TransactionBatch,
    TransactionEnd,
    TransactionStart,
)
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import Digest
from connector.log.transaction.source_position import SourcePosition
from connector.log.writing.fragment import Fragment
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.fragment import EventHeader, FragmentWriter
from connector.producer.encode.numbering import Limits, Numbering
from connector.schema import framing, single_object_header
from tests.support import encoding as making

LAYOUT = TableLayout(TableName("shop", "orders"), (Column("id", "bigint", False, "", (), False),), (0,))

# As many numbers of each length.
LONGS = st.integers(0, 18).flatmap(lambda digits: st.integers(10**digits // 10, min(10 ** (digits + 1), 2**63) - 1))


def encoder(fragment: int = 1 << 16, shard: int = 1 << 22, message: int = 1 << 20, partitions: int = 4) -> Encoder:
    result = Encoder(
        service="shop",
        source_id="db:3306",
        partitions=partitions,
        limits=Limits(fragment=fragment, shard=shard, message=message),
    )
    result.begin(Numbering(epoch=Epoch(3), next_seqno=Seqno(42), tails={0: Seqno(40)}, last_barrier=Seqno(39)))
    return result


def encode(pieces: list[TransactionBatch], by: Encoder) -> list[Fragment]:
    return [fragment for piece in pieces for fragment in by.encode(piece)]


def flat(changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Row by row, with its table and action: the same however it was cut."""
    result: list[tuple[Any, ...]] = []
    for change in changes:
        if "sql" in change:
            result.append((change["schema"], change["sql"], change["options"]))
            continue
        for row in change["rows"]:
            result.append((change["schema"], change["table"], change["columns"], change["key_columns"]))
            result.append((change["action"], change["before_present"], change["after_present"]))
            result.append((row["before"], row["after"]))
    return result


def expected(event: list[making.Change | Statement]) -> list[tuple[Any, ...]]:
    result: list[tuple[Any, ...]] = []
    for change in event:
        if isinstance(change, Statement):
            result.append((change.schema, change.sql, change.options))
            continue
        columns = [
            {
                "name": column.name,
                "type": column.type,
                "unsigned": column.unsigned,
                "charset": column.charset,
                "labels": list(column.labels),
                "nullable": column.nullable,
            }
            for column in change.layout.columns
        ]
        for row in change.rows:
            result.append((*change.layout.name, columns, list(change.layout.key)))
            result.append((change.action.name.lower(), change.before, change.after))
            result.append((row["before"], row["after"]))
    return result


@given(making.events.flatmap(lambda event: st.tuples(st.just(event), making.pieces(event))), st.integers(1, 600))
def test_any_fragment_size_keeps_the_rows_in_order(
    case: tuple[list[making.Change | Statement], list[TransactionBatch]], limit: int
) -> None:
    event, pieces = case
    fragments = encode(pieces, encoder(fragment=limit))
    records = [making.decoded(fragment.value) for fragment in fragments]
    assert flat([change for record in records for change in record["changes"]]) == expected(event)
    assert [record["fragno"] for record in records] == list(range(len(records)))
    assert [record["last_frag"] for record in records] == [False] * (len(records) - 1) + [True]
    assert records[-1]["rows"] == sum(len(change.rows) for change in event if isinstance(change, making.Change))


@given(st.lists(making.events.flatmap(making.pieces), max_size=4), st.integers(1, 2000))
def test_batches_are_encoded_up_to_another_item_or_a_number_of_bytes(
    events: list[list[TransactionBatch]], limit: int
) -> None:
    batches = [piece for event in events for piece in event]
    advance = PositionAdvance(making.ENDING.end, None)
    by, at, fragments = encoder(fragment=200), 0, list[Fragment]()
    while at < len(batches):
        found: list[Fragment] = []
        before = at
        at, size = by.encode_on([*batches, advance, *batches], at, limit, found)
        assert size == sum(len(fragment.value) for fragment in found)
        assert at == len(batches) or size >= limit
        # Nothing but the last batch lies beyond the limit.
        again = encoder(fragment=200)
        encode(batches[:before], again)
        assert before == at - 1 or sum(len(one.value) for one in encode(batches[before : at - 1], again)) < limit
        fragments += found
    assert fragments == encode(batches, encoder(fragment=200))
    assert by.encode_on([advance], 0, limit, fragments) == (0, 0)


def test_a_batch_that_ends_at_the_number_of_bytes_is_the_last() -> None:
    [batch] = making.whole([])
    size = sum(len(one.value) for one in encode([batch], encoder()))
    assert encoder().encode_on([batch, batch], 0, size, []) == (1, size)
    assert encoder().encode_on([batch, batch], 0, size + 1, [])[0] == 2


@given(making.events.flatmap(lambda event: st.tuples(st.just(event), making.pieces(event))), st.integers(1, 600))
def test_any_fragment_size_keeps_each_row_with_its_statement(
    case: tuple[list[making.Change | Statement], list[TransactionBatch]], limit: int
) -> None:
    event, pieces = case
    told, query = [], ""
    for fragment in encode(pieces, encoder(fragment=limit)):
        record = making.decoded(fragment.value)
        for number, change in enumerate(record["changes"]):
            query = record["metadata"].pop(f"rows_query.{number}", query)
            told += [query] * len(change.get("rows", ()))
        assert set(record["metadata"]) == {"mysql_server_id", "dbms_type", "tz_aware", "service", "shard"}
    asked = [(change.query or "", change.rows) for change in event if isinstance(change, making.Change)]
    assert told == [query for query, rows in asked for _ in rows]


@given(
    making.events.flatmap(lambda event: st.tuples(st.just(event), making.pieces(event))),
    st.integers(1, 600),
    st.integers(1, 600),
)
def test_digest_and_shard_do_not_depend_on_the_fragment_size(
    case: tuple[list[making.Change | Statement], list[TransactionBatch]], limit: int, held: int
) -> None:
    event, pieces = case
    one = encode(making.whole(event), encoder(shard=held))[-1]
    other = encode(pieces, encoder(fragment=limit, shard=held))[-1]
    assert one.finished == other.finished
    assert (one.key, one.partition, one.barrier) == (other.key, other.partition, other.barrier)


@given(making.events, st.integers(1, 600), st.integers(0, 2**31 - 1))
def test_a_message_with_a_registry_differs_only_in_its_framing(
    event: list[making.Change | Statement], limit: int, number: int
) -> None:
    by = Encoder(
        service="shop",
        source_id="db:3306",
        partitions=4,
        limits=Limits(fragment=limit, shard=1 << 22, message=1 << 20),
        framing=framing(number, number + 1),
    )
    by.begin(Numbering(epoch=Epoch(3), next_seqno=Seqno(42), tails={0: Seqno(40)}, last_barrier=Seqno(39)))
    told, plain = encode(making.whole(event), by), encode(making.whole(event), encoder(fragment=limit))
    assert told[-1].finished == plain[-1].finished
    for one, other in zip(told, plain, strict=True):
        assert one.value[:5] == b"\0" + number.to_bytes(4, "big")
        record, expect = making.decoded(bytes(5) + one.value), making.decoded(other.value)
        assert record["metadata"].pop("schema") == other.value[2:10].hex()
        assert record.pop("crc32") == struct.pack(">I", crc32(one.value[5:-4]))
        assert record == {name: value for name, value in expect.items() if name != "crc32"}


@given(making.events, st.integers(1, 600))
def test_every_fragment_has_its_own_checksum_and_header(event: list[making.Change | Statement], limit: int) -> None:
    for fragment in encode(making.whole(event), encoder(fragment=limit)):
        record = making.decoded(fragment.value)
        assert fragment.value[:10] == single_object_header()
        assert record["crc32"] == struct.pack(">I", crc32(fragment.value[10:-4]))
        assert (record["seqno"], record["epoch"], record["last_barrier"]) == (42, 3, 39)
        assert record["prev_seqno"] == (40 if fragment.partition == 0 else NO_SEQNO)
        assert (record["server_id"], record["thread_id"], record["gtid"]) == (7, 1748, making.BEGIN.gtid)
        assert record["shard"].encode() == fragment.key
        assert record["metadata"]["shard"] == record["shard"]
        last = record["last_frag"]
        assert (record["outcome"], record["event_id"]) == (
            ("commit", "mysql-bin.000002:0000000000002081;1748") if last else (None, None)
        )


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=":;\0"), min_size=1), LONGS, LONGS)
def test_an_event_has_the_id_of_its_end_and_connection(file: str, offset: int, thread_id: int) -> None:
    begin = TransactionStart(7, thread_id, None, 0, 0, SourcePosition(file, 4), Kind.TRANSACTION)
    ending = TransactionEnd(end=SourcePosition(file, offset), commit_time=0, outcome=Outcome.COMMIT)
    (fragment,) = encode([TransactionBatch(begin, [], ending)], encoder())
    assert making.decoded(fragment.value)["event_id"] == str(EventId(file, offset, thread_id))


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_every_long_and_int_survives(number: int, small: int) -> None:
    head = EventHeader(number, number, 0, "s", number, number, number, number, None, number, number, b"\x00")
    record = making.decoded(FragmentWriter(single_object_header(), "x").write(head, small, False, number, []))
    assert {record[name] for name in ("seqno", "epoch", "prev_seqno", "rows", "thread_id")} == {number}
    assert record["fragno"] == small


def test_two_events_have_consecutive_seqnos() -> None:
    by = encoder()
    first = encode(making.whole([making.Change(layout("a"), Action.INSERT, [row(1)])]), by)[-1]
    second = making.decoded(encode(making.whole([making.Change(layout("a"), Action.INSERT, [row(2)])]), by)[-1].value)
    assert (first.seqno, second["seqno"], second["prev_seqno"]) == (42, 43, 42)


def test_an_event_of_two_schemas_or_with_a_statement_is_a_barrier() -> None:
    by = encoder()
    both = [making.Change(layout(name), Action.INSERT, [row(1)]) for name in ("a", "b")]
    assert encode(making.whole(both), by)[-1].barrier
    one = encode(making.whole(both[:1]), by)[-1]
    assert (one.key, one.barrier) == (b"a", False)
    assert making.decoded(one.value)["last_barrier"] == 42
    assert encode(making.whole([Statement("a", "x")]), by)[-1].key == b"#UNKNOWN"


def test_a_savepoint_touches_no_table() -> None:
    by = encoder()
    rows = making.Change(layout("a"), Action.INSERT, [row(1)])
    assert encode(making.whole([Statement("a", "SAVEPOINT `x`"), rows]), by)[-1].key == b"a"
    assert encode(making.whole([rows, Statement("a", "ROLLBACK TO `x`")]), by)[-1].key == b"#UNKNOWN"


@pytest.mark.parametrize("option", ["@v", "insert_id", "rand_seed2", "load_data_block"])
def test_the_digest_of_a_statement_covers_the_values_it_was_executed_with(option: str) -> None:
    def digest(value: str) -> Digest:
        pieces = making.whole([Statement("a", "INSERT INTO t VALUES (@v)", {"sql_mode": "0", option: value})])
        finished = encode(pieces, encoder())[-1].finished
        assert finished is not None
        return finished.digest

    assert digest("1") == digest("1") != digest("2")


def test_a_large_event_gives_fragments_before_it_ends() -> None:
    by = encoder(fragment=100, shard=500)
    big = [making.Change(layout("a"), Action.INSERT, [row("x" * 50) for _ in range(40)])]
    rows = making.whole(big)[0].changes
    fragments = by.encode(TransactionBatch(making.BEGIN, rows, None))
    assert fragments
    assert {fragment.key for fragment in fragments} == {b"#UNKNOWN"}
    assert by.open
    last = by.encode(TransactionBatch(None, [], making.ENDING))
    assert last[-1].finished is not None
    assert last[-1].finished.digest.rows == 40
    assert not by.open


def test_an_unfinished_event_is_dropped_when_numbering_begins_again() -> None:
    by = encoder(fragment=100, shard=500)
    by.encode(
        TransactionBatch(
            making.BEGIN, making.whole([making.Change(layout("a"), Action.INSERT, [row(1)])])[0].changes, None
        )
    )
    by.begin(Numbering(epoch=Epoch(4), next_seqno=Seqno(42), tails={}, last_barrier=NO_SEQNO))
    record = making.decoded(encode(making.whole([]), by)[-1].value)
    assert (record["seqno"], record["epoch"], record["rows"]) == (42, 4, 0)


def test_batches_out_of_order_are_refused() -> None:
    by = encoder()
    with pytest.raises(CorruptBinlog) as outside:
        by.encode(TransactionBatch(None, [], making.ENDING))
    by.encode(TransactionBatch(making.BEGIN, [], None))
    with pytest.raises(CorruptBinlog) as within:
        by.encode(TransactionBatch(making.BEGIN, [], None))
    assert "start" not in outside.value.where
    assert within.value.where["start"] == making.BEGIN.start


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 4), (2, 2), (3, 2)])
def test_a_slice_outside_its_rows_is_refused(start: int, stop: int) -> None:
    head = EventHeader(0, 1, 0, "s", -1, -1, 1, 1, None, 0, 0, b"\x00")
    writer = FragmentWriter(single_object_header(), "x")
    with pytest.raises(ValueError):
        writer.write(head, 0, False, 1, [(b"", 1, b"abc", start, stop)])


def test_a_last_fragment_without_outcome_is_refused() -> None:
    head = EventHeader(0, 1, 0, "s", -1, -1, 1, 1, None, 0, 0, b"\x00")
    with pytest.raises(ValueError):
        FragmentWriter(single_object_header(), "x").write(head, 0, True, 1, [])


def layout(schema: str) -> making.TableLayout:
    return making.TableLayout(making.TableName(schema, "t"), (making.Column("c", "bigint"),), (0,))


def row(value: object) -> dict[str, Any]:
    return {"before": None, "after": [value]}


@given(
    st.lists(making.events.flatmap(lambda event: st.tuples(st.just(event), making.pieces(event))), max_size=4),
    st.sampled_from([200, 1 << 16]),
    st.booleans(),
)
def test_rows_and_bytes_are_counted_by_table_when_their_event_ends(
    cases: list[tuple[list[making.Change | Statement], list[TransactionBatch]]], limit: int, whole: bool
) -> None:
    by = encoder(fragment=limit)
    found: Counter[TableName] = Counter()
    size = 0
    for _, pieces in cases:
        if whole:  # in one batch, as the source's reader gives small transactions
            changes = [frozen(change) for piece in pieces for change in piece.changes]
            pieces = [TransactionBatch(making.BEGIN, changes, making.ENDING)]  # noqa: PLW2901
        for piece in pieces:
            by.encode(piece)
            counts = by.drain_counts()
            assert piece.ending is not None or not counts
            found.update({name: 0 for name, *_ in counts})
            for name, rows, bytes_ in counts:
                found[name] += rows
                size += bytes_
    asked = [change for event, _ in cases for change in event if isinstance(change, making.Change)]
    expected: Counter[TableName] = Counter()
    for change in asked:
        expected[change.layout.name] += len(change.rows)
    assert +found == +expected
    assert size == sum(len(rows.data) for change in asked for rows in making.encoded_rows(change))
    assert by.drain_counts() == []


def frozen(change: Rows | Statement) -> Rows | Statement:
    """A change whose rows are bytes."""
    if isinstance(change, Statement):
        return change
    data = bytes(change.data)
    return Rows(change.layout, change.action, data, change.ends, change.before, change.after, change.query)


def test_an_event_that_was_given_up_is_not_counted() -> None:
    by = encoder()
    rows = making.encoded_rows(making.Change(LAYOUT, Action.INSERT, [{"before": None, "after": [1]}]))
    by.encode(TransactionBatch(making.BEGIN, [*rows], None))
    by.begin(Numbering(epoch=Epoch(4), next_seqno=Seqno(42), tails={}, last_barrier=Seqno(39)))
    assert by.drain_counts() == []
    by.encode(TransactionBatch(making.BEGIN, [*rows], making.ENDING))
    assert by.drain_counts() == [(LAYOUT.name, 1, len(rows[0].data))]
