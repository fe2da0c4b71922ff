"""An event's bytes and a consumer's position are read back unchanged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.consume import ConsumerPosition, Start
from connector.consume.fragments import Fragments
from connector.errors import ConfigError
from connector.log.ids import Epoch, LogId, Seqno, ShardId

numbers = st.integers(0, 2**62)


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(0, 1000))
def test_fragments_of_any_size_come_back_with_their_offsets_each_time(values: list[bytes], memory: int) -> None:
    fragments = Fragments(0, 0, memory)
    for count, value in enumerate(values, 1):
        fragments.add(value, 10 * count)
        assert fragments.held <= memory
        if count == len(values) // 2:
            assert list(fragments) == values[:count]
    first, second = iter(fragments), iter(fragments)
    assert [next(first) for _ in values] == [next(second) for _ in values] == values
    assert fragments.size == sum(map(len, values))
    assert list(fragments.messages()) == [(10 * count, value) for count, value in enumerate(values, 1)]


@given(
    st.builds(
        ConsumerPosition,
        service=st.text(),
        log_id=st.text().map(LogId),
        seqno=st.integers(-1, 2**62).map(Seqno),
        epoch=numbers.map(Epoch),
        offsets=st.dictionaries(st.integers(0, 1023), numbers),
        shards=st.none(),
    )
    | st.builds(
        ConsumerPosition,
        service=st.text(),
        log_id=st.text().map(LogId),
        offsets=st.dictionaries(st.integers(0, 1023), numbers),
        shards=st.lists(st.text().map(ShardId)).map(tuple),
        tails=st.dictionaries(st.integers(0, 1023), numbers.map(Seqno)),
        floor=numbers.map(Seqno),
        barrier=st.none() | numbers.map(Seqno),
    )
)
def test_a_stored_position_is_read_back_unchanged(position: ConsumerPosition) -> None:
    assert ConsumerPosition.from_json(position.to_json()) == position


STORED = '{"service":"s","log_id":"x","seqno":1,"epoch":1,"offsets":{}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "7",
        "[" * 100_000,
        STORED.replace(":1,", ':"a",', 1) + "}",
        STORED.replace(":1,", ':"7",', 1) + "}",
        STORED.replace(":1,", ":Infinity,", 1) + "}",
        STORED + ',"shards":"abc"}',
        STORED + ',"floor":1.5}',
        STORED + ',"tails":{"0":"x"}}',
    ],
)
def test_a_text_that_is_not_a_position_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ConsumerPosition.from_json(text)
    assert refused.value.where == {"text": text[:200]}


def test_a_start_time_keeps_microseconds_and_requires_a_zone() -> None:
    assert Start.time(datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)).number == 1_709_208_000_000_001
    with pytest.raises(ValueError):
        Start.time(datetime(2024, 2, 29))
