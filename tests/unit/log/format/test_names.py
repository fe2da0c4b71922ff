"""Event ids, shards and partitions as texts and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.log.format.shard import murmur2, partition_of, shard_of
from connector.log.ids import UNKNOWN_SHARD, ShardId
from connector.log.transaction.event_id import EventId


def test_an_event_id_is_written_as_file_end_and_thread() -> None:
    assert str(EventId("mysql-bin.000002", 2081, 1748)) == "mysql-bin.000002:0000000000002081;1748"


@given(st.from_regex(r"[a-z.\-0-9]{1,20}", fullmatch=True), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_an_event_id_reads_back(file: str, end: int, thread: int) -> None:
    event = EventId(file, end, thread)
    assert EventId.parse(str(event)) == event


@given(st.lists(st.integers(0, 10**16 - 1), min_size=2))
def test_event_ids_of_one_file_sort_by_their_ends(ends: list[int]) -> None:
    texts = [str(EventId("mysql-bin.000001", end, 0)) for end in ends]
    assert sorted(texts) == [str(EventId("mysql-bin.000001", end, 0)) for end in sorted(ends)]


@pytest.mark.parametrize(
    "text", ["", "mysql-bin.000001:4;1", "mysql-bin.000001:0000000000000004", ":0000000000000004;1"]
)
def test_malformed_event_id_is_refused(text: str) -> None:
    with pytest.raises(LogDamaged):
        EventId.parse(text)


@pytest.mark.parametrize(
    ("key", "hash_"),
    # From the test of Kafka's own class, UtilsTest.testMurmur2.
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_hash_of_a_key_is_kafkas(key: str, hash_: int) -> None:
    assert murmur2(key.encode()) == hash_ & 0xFFFFFFFF


def test_one_schema_is_a_shard_and_none_or_several_are_unknown() -> None:
    assert shard_of({"shop"}) == "shop"
    assert shard_of({"shop", "stock"}) == UNKNOWN_SHARD
    assert shard_of(set()) == UNKNOWN_SHARD
    assert shard_of({""}) == UNKNOWN_SHARD


@given(st.text(max_size=64), st.integers(1, 64))
def test_a_shard_has_one_partition_and_the_unknown_one_is_the_first(name: str, count: int) -> None:
    assert 0 <= partition_of(ShardId(name), count) < count
    assert partition_of(UNKNOWN_SHARD, count) == 0
    assert partition_of(ShardId(name), 1) == 0


def test_a_known_key_goes_where_kafka_would_send_it() -> None:
    assert partition_of(ShardId("abc"), 7) == 479470107 % 7
    assert partition_of(ShardId("foobar"), 7) == (-790332482 & 0x7FFFFFFF) % 7


def test_log_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError):
        partition_of(ShardId("shop"), 0)
