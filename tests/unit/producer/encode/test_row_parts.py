"""A change larger than a message is published in row parts and read back whole."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import Unsupported
from connector.log.format.decoded_parts import DecodedParts
from connector.log.ids import Action
from connector.log.transaction.batch import Statement
from connector.producer.encode.row_parts import OVERHEAD, row_parts
from tests.support import encoding as making
from tests.support.fragments import CHANGE
from tests.unit.producer.encode.test_fragments import encode, encoder, expected, flat, layout, row

BATCH = 512  # Kafka's own, at most


def decode(data: bytes) -> Any:
    stream = io.BytesIO(data)
    change = fastavro.schemaless_reader(stream, CHANGE, None)
    assert not stream.read()
    return change


def large(event: list[making.Change | Statement], sizes: list[int]) -> list[making.Change | Statement]:
    """The same with some large values."""
    found: list[making.Change | Statement] = []
    for change, size in zip(event, sizes, strict=False):
        if isinstance(change, Statement):
            found.append(Statement(change.schema, change.sql + "x" * size, change.options))
            continue
        for each in change.rows:
            for image in each.values():
                if image:
                    image[0] = bytes(range(256)) * (size // 256)
        found.append(change)
    return found


events = st.tuples(making.events, st.lists(st.integers(0, 30_000), min_size=6, max_size=6)).map(lambda it: large(*it))


@given(
    events.flatmap(lambda event: st.tuples(st.just(event), making.pieces(event))),
    st.integers(2500, 20_000),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_large_change_is_cut_below_the_limit_and_comes_out_whole(
    case: tuple[list[making.Change | Statement], Any], message: int, part: int, early: bool
) -> None:
    event, pieces = case
    by = encoder(message=message, fragment=message // 2 // part, shard=1000 if early else 1 << 30)
    fragments = encode(pieces, by)
    joining = DecodedParts(decode, "t-0@0")
    found: list[Any] = []
    rows = 0
    for number, fragment in enumerate(fragments):
        assert len(fragment.value) + len(fragment.key) + BATCH <= message
        record = making.decoded(fragment.value)
        assert (record["fragno"], record["last_frag"]) == (number, number == len(fragments) - 1)
        whole = joining.whole(record["fragno"], record["changes"])
        rows += sum(len(change.get("rows", ())) for change in whole)
        assert record["rows"] == rows
        found += whole
    assert flat(found) == expected(event)


def test_the_last_part_of_a_change_has_the_text_of_its_statement() -> None:
    change = making.Change(layout("a"), Action.INSERT, [row("x" * 9000)], query="INSERT INTO t VALUES ('x…')")
    records = [making.decoded(fragment.value) for fragment in encode(making.whole([change]), encoder(message=4000))]
    assert len(records) == 3
    assert ["rows_query.0" in record["metadata"] for record in records] == [False, False, True]


def test_metadata_that_fill_a_message_are_refused_with_the_table() -> None:
    with pytest.raises(Unsupported) as refused:
        encode(making.whole([making.Change(layout("a"), Action.INSERT, [row("x" * 5000)])]), encoder(message=1600))
    assert str(refused.value.where["table"]) == "a.t"
    assert "kafka.max_message_bytes" in refused.value.hint


@given(st.binary(max_size=100), st.binary(min_size=1, max_size=3000), st.integers(1, 700), st.booleans())
def test_parts_cut_at_any_byte_join_to_the_change(head: bytes, data: bytes, size: int, rows: bool) -> None:
    change = (head, 3, data, 0, len(data)) if rows else data
    joining = DecodedParts(partial(_same, (head + b"\x06" + data + b"\0") if rows else data), "t-0@0")
    parts = [*row_parts(change, OVERHEAD + size)]
    assert [whole for _, whole in parts] == [False] * (len(parts) - 1) + [True]
    assert all(len(part) <= OVERHEAD + size for part, _ in parts)
    found = [joining.whole(1, [decode(part)]) for part, _ in parts]
    assert [len(each) for each in found] == [0] * (len(parts) - 1) + [1]


def _same(expected: bytes, data: bytes) -> Any:
    assert data == expected
    return {}
