"""The records of the topic of prepared transactions: pending ones are those written and not removed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import LogDamaged
from connector.kafka.prepared_records import (
    PreparedReader,
    PreparedState,
    attempt_tombstones,
    closing_record,
    message_key,
    tombstones,
)
from connector.log.ids import Kind
from connector.log.transaction.pending import Pending, PendingSet, Stored
from connector.log.transaction.position import SourcePosition


def made(xid: str, attempt: str, count: int) -> Pending:
    return Pending(
        xid=xid,
        attempt=attempt,
        batches=count,
        messages=count,
        gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:7",
        start=SourcePosition("binlog.000001", 4),
        time=9,
        kind=Kind.TRANSACTION,
    )


def found(records: list[Stored]) -> PreparedState:
    reading = PreparedReader()
    for offset, stored in enumerate(records):
        reading.accept(offset, stored.key, stored.value)
    return reading.state(len(records))


def compacted(records: list[Stored]) -> list[Stored]:
    """Only the newest of each key, and of those not the tombstones: all that Kafka may take away."""
    newest = {stored.key: stored for stored in records}
    return [stored for stored in records if newest[stored.key] is stored and stored.value is not None]


acts = st.lists(
    st.tuples(st.sampled_from(("prepare", "die within", "decide")), st.sampled_from("abc"), st.integers(0, 3)),
    max_size=15,
)


@given(acts)
def test_pending_transactions_are_found_with_or_without_compaction(happened: list[tuple[str, str, int]]) -> None:
    records: list[Stored] = []
    pending, strays = PendingSet(), set[bytes]()
    for number, (act, xid, count) in enumerate(happened):
        attempt = f"1.{number}"
        if act == "decide":
            one = pending.end(xid)
            records += tombstones(one, pending.kept) if one else []
            continue
        keys = [message_key(attempt, message) for message in range(count)]
        records += [Stored(key, b"x") for key in keys]
        if act == "die within":
            strays |= set(keys)
            continue
        before = pending.prepare(made(xid, attempt, count))
        records += attempt_tombstones(before.attempt, before.messages) if before else []
        records.append(closing_record(made(xid, attempt, count), pending.kept))
    for kept in (records, compacted(records)):
        state = found(kept)
        assert sorted(state.pending, key=lambda one: one.xid) == sorted(pending, key=lambda one: one.xid)
        assert state.pending.kept == pending.kept
        assert set(state.strays) == strays
        for one in pending:
            if one.messages:
                assert kept[state.starts[one.attempt]].key == message_key(one.attempt, 0)


def test_a_missing_message_of_a_prepared_transaction_is_damage() -> None:
    one = made("a", "1.1", 2)
    kept = PendingSet([one]).kept
    with pytest.raises(LogDamaged) as caught:
        found([Stored(message_key("1.1", 1), b"x"), closing_record(one, kept)])
    assert caught.value.where == {"xid": "a", "attempt": "1.1", "messages": 2, "found": 1}


@pytest.mark.parametrize(
    ("key", "value"), [(b"xid:a", b"{}"), (b"xid:a", b"x"), (b"piece:1.1", b"x"), (b"other", b"x"), (b"piece:1:x", b"")]
)
def test_an_unknown_record_is_damage(key: bytes, value: bytes) -> None:
    with pytest.raises(LogDamaged):
        found([Stored(key, value)])
