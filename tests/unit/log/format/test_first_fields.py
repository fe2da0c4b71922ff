"""The first fields of a fragment are read as the encoder wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.format.first_fields import FirstFields, first_fields
from connector.log.ids import Epoch, Kind, Seqno
from connector.producer.encode.fragment import EventHeader, FragmentWriter
from connector.schema import framing


def fragment(place: FirstFields, shard: str, number: int | None = None) -> bytes:
    head = EventHeader(place.seqno, place.epoch, place.kind, shard, place.prev_seqno, -1, 1, 2, None, 0, 0, b"\x00")
    head.end("x", 1, 0)
    framed = framing(number, number)
    opening = framed.load_opening if place.kind is Kind.LOAD else framed.opening
    return FragmentWriter(opening, "db:3306").write(head, place.fragno, place.last_frag, 0, [])


longs = st.integers(-1, 2**63 - 1)
places = st.builds(
    FirstFields,
    seqno=longs.map(Seqno),
    fragno=st.integers(0, 2**31 - 1),
    last_frag=st.booleans(),
    epoch=longs.map(Epoch),
    kind=st.sampled_from(Kind),
    prev_seqno=longs.map(Seqno),
)


@given(places, st.text(max_size=200), st.none() | st.integers(0, 2**31 - 1))
def test_first_fields_read_back(place: FirstFields, shard: str, number: int | None) -> None:
    found = first_fields(fragment(place, shard, number), "t-0@0")
    assert found == place
    assert found.finishes == (place.last_frag and place.kind is not Kind.EPOCH)


@pytest.mark.parametrize("size", [0, 1, 2, 10, 12, 15])
def test_message_that_ends_early_is_refused(size: int) -> None:
    place = FirstFields(Seqno(70_000), 0, True, Epoch(3), Kind.TRANSACTION, Seqno(69_999))
    with pytest.raises(LogDamaged):
        first_fields(fragment(place, "a-long-shard")[:size], "t-0@0")


def test_message_that_is_no_fragment_is_refused() -> None:
    with pytest.raises(LogDamaged) as damaged:
        first_fields(b'{"a": 1, "b": "some json"}', "t-0@0")
    assert damaged.value.where["at"] == "t-0@0"
