"""The shard of an event, the mark of bookkeeping, and that readers of some shards miss none of their events."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import ShardsChanged
from connector.log.epochs.control import PartitionMap
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of, shard_of
from connector.log.format.shard_rule import BY_TABLE, ShardRule
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD, Action, Epoch, Kind, Outcome, Seqno, ShardId
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.transaction.batch import Rows, Statement, TransactionBatch
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.writing.fragment import Fragment
from connector.log.writing.online import markers
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering, Sharding
from tests.support import encoding as making
from tests.support.log_objects import LOG, epochs, position

TABLES = [TableName(schema, table) for schema in ("a", "b", "") for table in ("t", "u")]
LAYOUTS = {name: TableLayout(name, (Column("c", "bigint"),), (0,)) for name in TABLES}
RULES = [
    ShardRule(),
    ShardRule(BY_TABLE),
    ShardRule(patterns=(("first", "a.t"), ("both", "*.u"))),
    ShardRule(BY_TABLE, (("b.t", "a.t"),)),
]
SMALL = Limits(fragment=64, shard=1 << 20, message=1 << 20)
WHOLE = replace(SMALL, fragment=1 << 16)  # an event is one fragment, which takes the encoder's short way


def encoder(partitions: int = 1, *, limits: Limits = SMALL, sharding: Sharding | None = None) -> Encoder:
    made = Encoder(service="s", source_id="db:1", partitions=partitions, limits=limits, sharding=sharding)
    made.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
    return made


def change(table: TableName, rows: int = 1) -> making.Change:
    return making.Change(LAYOUTS[table], Action.INSERT, [{"before": None, "after": [n]} for n in range(rows)])


def transaction(*tables: TableName, rows: int = 1) -> list[TransactionBatch]:
    """Rows in bytes, as the reader gives them: what is small goes the short way."""
    [whole] = making.whole([change(table, rows) for table in tables])
    changes = [Rows(one.layout, one.action, bytes(one.data), one.ends) for one in whole.changes]
    return [TransactionBatch(whole.begin, changes, whole.ending)]


def decoded(fragments: list[Fragment]) -> list[dict[str, Any]]:
    return [making.decoded(fragment.value) for fragment in fragments]


def take(by: Encoder, pieces: list[TransactionBatch]) -> list[dict[str, Any]]:
    return decoded([fragment for piece in pieces for fragment in by.encode(piece)])


@given(
    st.lists(st.sampled_from(TABLES), max_size=4),
    st.sampled_from(RULES),
    st.booleans(),
    st.integers(1, 9),
    st.sampled_from([SMALL, WHOLE]),
)
def test_an_event_of_one_shard_has_it_and_any_other_is_unknown(
    tables: list[TableName], rule: ShardRule, cut: bool, rows: int, limits: Limits
) -> None:
    by = encoder(5, limits=limits, sharding=Sharding(rule=rule))
    [whole] = transaction(*tables, rows=rows)
    pieces = [
        TransactionBatch(whole.begin, whole.changes[:1], None),
        TransactionBatch(None, whole.changes[1:], whole.ending),
    ]
    found = take(by, pieces if cut else [whole])
    expected = shard_of({rule.of(table) for table in tables})
    assert {record["shard"] for record in found} == {record["metadata"]["shard"] for record in found} == {expected}
    assert not any("is_metadata" in record["metadata"] for record in found)


@pytest.mark.parametrize("limits", [SMALL, WHOLE])
def test_each_event_names_the_server_that_executed_it_first(limits: Limits) -> None:
    by = encoder(limits=limits)
    [rows] = transaction(TABLES[0])
    events = [replace(rows, begin=replace(making.BEGIN, server_id=server)) for server in (7, 8, 8, 7)]
    found = [take(by, [event])[-1] for event in events]
    assert [record["server_id"] for record in found] == [7, 8, 8, 7]
    assert [record["metadata"]["mysql_server_id"] for record in found] == ["7", "8", "8", "7"]


@pytest.mark.parametrize("rule", RULES)
def test_statements_and_ddl_are_unknown(rule: ShardRule) -> None:
    by = encoder(sharding=Sharding(rule=rule))
    [rows] = transaction(TABLES[0])
    statement = Statement(schema="a", sql="UPDATE t SET c = 1")
    for changes in ([statement], [*rows.changes, statement]):
        assert take(by, [TransactionBatch(rows.begin, changes, rows.ending)])[0]["shard"] == UNKNOWN_SHARD
    ddl = replace(making.BEGIN, kind=Kind.DDL)
    assert take(by, [TransactionBatch(ddl, rows.changes, rows.ending)])[0]["shard"] == UNKNOWN_SHARD


@pytest.mark.parametrize("limits", [SMALL, WHOLE])
def test_an_event_with_ddl_is_marked_unsafe_for_a_block_of_events(limits: Limits) -> None:
    """Events of the same shard before and after it are not."""
    by = encoder(limits=limits)
    [rows] = transaction(TABLES[0], TABLES[2], rows=3)
    statement = Statement(schema="a", sql="CREATE TABLE t (c INT)")
    ddl = replace(making.BEGIN, kind=Kind.DDL)
    events = [rows, TransactionBatch(ddl, [statement, *rows.changes], rows.ending), rows]
    for event, marked in zip(events, (False, True, False), strict=True):
        found = take(by, [event])
        assert {record["shard"] for record in found} == {UNKNOWN_SHARD}
        assert {record["metadata"].get("unsafe_for_block_commit") for record in found} == {"" if marked else None}
        assert {record["metadata"]["tz_aware"] for record in found} == {"true"}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("limits", [SMALL, WHOLE])
@pytest.mark.parametrize("rule", [ShardRule(), ShardRule(BY_TABLE)])
def test_an_event_of_bookkeeping_tables_alone_is_marked(cut: bool, limits: Limits, rule: ShardRule) -> None:
    sharding = Sharding(rule=rule, bookkeeping=("a.t", "B"))
    by = encoder(limits=limits, sharding=sharding)
    ours, theirs, data = TABLES[0], TABLES[2], TABLES[1]
    for tables, marked in (
        ([ours], True), ([data], False), ([ours, theirs], True), ([data, ours], False), ([ours, data], False),
        ([ours], True), ([], False),
    ):  # fmt: skip
        [whole] = transaction(*tables, rows=3)
        pieces = [
            TransactionBatch(whole.begin, whole.changes[:1], None),
            TransactionBatch(None, whole.changes[1:], whole.ending),
        ]
        found = take(by, pieces if cut else [whole])
        assert {record["metadata"].get("is_metadata") for record in found} == {"true" if marked else None}
    [whole] = transaction(ours)
    statement = Statement(schema="a", sql="UPDATE t SET c = 1")
    assert (
        "is_metadata"
        not in take(by, [TransactionBatch(whole.begin, [*whole.changes, statement], whole.ending)])[0]["metadata"]
    )
    held = encoder(limits=replace(SMALL, shard=10), sharding=sharding)  # it leaves before all of it is known
    found = take(held, transaction(ours, rows=99))
    assert len(found) > 1
    assert not any("is_metadata" in record["metadata"] for record in found)


@pytest.mark.parametrize("limits", [SMALL, WHOLE])
def test_bookkeeping_is_marked_event_by_event_within_a_shard(limits: Limits) -> None:
    """The route of a shard is kept from one event to the next; whether that was bookkeeping is no part of the shard."""
    by = encoder(limits=limits, sharding=Sharding(bookkeeping=("a.t",)))
    books, data = TableName("a", "t"), TableName("a", "u")
    told = [
        (record["shard"], record["metadata"].get("is_metadata"))
        for table in (books, data, books, books, data, data)
        for record in take(by, transaction(table))
    ]
    assert told == [("a", mark) for mark in ("true", None, "true", "true", None, None)]


steps = st.lists(st.lists(st.sampled_from(TABLES[:4]), min_size=1, max_size=2), max_size=6)


@given(st.lists(st.tuples(st.sampled_from(RULES), steps), min_size=1, max_size=4), st.integers(1, 4), st.randoms())
def test_a_consumer_of_shards_gets_all_up_to_the_next_rule_and_an_error_there(
    versions: list[tuple[ShardRule, list[list[TableName]]]], partitions: int, chance: random.Random
) -> None:
    log: dict[int, list[FragmentHeader]] = {partition: [] for partition in range(partitions)}
    firsts: list[int] = []
    map_ = PartitionMap(1, partitions)
    at, events = position(tails=dict.fromkeys(range(partitions), -1)), list[FragmentHeader]()
    for number, (rule, transactions) in enumerate(versions, 1):
        map_ = map_.by(rule, Seqno(len(events))) if number > 1 else PartitionMap(1, partitions, rule)
        firsts.append(len(events))
        [*_, epoch] = epochs(*firsts)
        at = replace(at, last_barrier=max((e.seqno for e in events if e.barrier), default=NO_SEQNO))
        for partition, header in markers(LOG, epoch, at, map_).items():
            log[partition].append(header)
        by = encoder(partitions, sharding=Sharding(rule=rule, since=map_.since))
        first = Numbering(
            epoch=epoch.epoch, next_seqno=Seqno(len(events)), tails=at.tails, last_barrier=at.last_barrier
        )
        by.begin(first)
        tails = dict(at.tails)
        for tables in transactions:
            for fragment in by.encode(transaction(*tables)[0]):
                header = header_of(making.decoded(fragment.value))
                log[fragment.partition].append(header)
            events.append(header)
            tails[fragment.partition] = header.seqno
        at = replace(at, tails=tails)

    which = chance.randrange(len(versions))
    begin = chance.randint(firsts[which], [*firsts, len(events)][which + 1])
    at_open = chance.randint(which, len(versions) - 1)  # the newest that it can have known
    version = PartitionMap(1, 1, begins=tuple(map(Seqno, firsts[1 : at_open + 1]))).at(Seqno(begin))
    ends = firsts[version:]
    end = min(ends, default=len(events))
    names = sorted({event.shard for event in events[begin:end]} | {ShardId("another")})
    shards = chance.sample(names, chance.randint(1, len(names)))
    chosen = sorted({0, *(partition_of(shard, partitions) for shard in shards)})
    skipped = {p: next((n for n, h in enumerate(log[p]) if h.seqno >= begin), len(log[p])) for p in chosen}
    joined: ShardSequencer[int] = ShardSequencer(
        topic="t", log_id=LOG, shards=shards, offsets=skipped, floor=Seqno(begin - 1), version=version
    )
    given_, told = list[FragmentHeader](), None
    left = {p: iter(list(enumerate(log[p]))[skipped[p] :]) for p in chosen}
    try:
        while left:
            partition = chance.choice(list(left))
            found = next(left[partition], None)
            if found is None:
                joined.reached(partition, Seqno(len(events)))
                del left[partition]
            else:
                joined.accept(found[1], partition, found[0], found[0])
            while (event := joined.next()) is not None:
                given_.append(event.header)
    except ShardsChanged as changed:
        told = changed.where["seqno"]
    assert told == (end if ends and end < len(events) else None)
    wanted = [event.seqno for event in events[begin:end] if event.barrier or event.shard in shards]
    assert sorted(event.seqno for event in given_) == wanted
    for shard in shards:
        of_shard = [event.seqno for event in given_ if event.barrier or event.shard == shard]
        assert of_shard == sorted(of_shard)


def header_of(record: dict[str, Any]) -> FragmentHeader:
    names_ = {name for name in FragmentHeader.__dataclass_fields__ if name not in ("kind", "outcome")}
    told = {name: record[name] for name in names_}
    return FragmentHeader(**told, kind=Kind[record["kind"].upper()], outcome=Outcome[record["outcome"].upper()])
