"""The rule that gives tables their shards, and what another rule makes of a log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.loading import load
from connector.errors import ConfigError
from connector.kafka.records import control_message, control_state
from connector.log.epochs.control import PartitionMap
from connector.log.format.shard_rule import BY_SCHEMA, BY_TABLE, SINCE, VERSION, ShardRule
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.layout import TableName
from connector.log.writing.online import TailFound, decide, go_back
from connector.patterns import table_pattern
from tests.support.log_objects import control, position
from tests.unit.log.writing.test_online import EMPTY, NOTHING, SOURCE

names = st.text("ab.*?[Ü_", min_size=1, max_size=4)
tables = st.builds(TableName, st.text("abB.[Ü_", min_size=1, max_size=3), st.text("abB.[Ü_", min_size=1, max_size=3))
patterns = st.one_of(
    st.text("ab*?[Ü_", min_size=1, max_size=3),
    st.builds("{}.{}".format, st.text("ab*?[Ü_", min_size=1, max_size=3), names),
)
rules = st.builds(
    ShardRule,
    by=st.sampled_from([BY_SCHEMA, BY_TABLE]),
    patterns=st.lists(st.tuples(names, patterns), max_size=3).map(tuple),
)


@given(tables)
def test_without_patterns_a_shard_is_a_schema_or_a_table(table: TableName) -> None:
    assert ShardRule().of(table) == table.schema
    assert ShardRule(BY_TABLE).of(table) == f"{table.schema}.{table.table}"


@given(rules, tables)
def test_table_belongs_to_the_first_pattern_that_matches(rule: ShardRule, table: TableName) -> None:
    found = [
        name
        for name, pattern in rule.patterns
        if table_pattern(pattern, ignore_case=True).finds(table.schema, table.table)
    ]
    assert rule.of(table) == (found[0] if found else replace(rule, patterns=()).of(table))


@given(st.lists(st.tuples(rules, st.integers(0, 9)), max_size=4), rules)
def test_partition_map_reads_back_and_has_the_version_of_each_event(
    later: list[tuple[ShardRule, int]], rule: ShardRule
) -> None:
    record, of, first = PartitionMap(1, 3, rule), {}, 0
    for number, (another, events) in enumerate(later, 1):
        of |= dict.fromkeys(range(first, first + events), number)
        first += events
        record = record.by(another, Seqno(first))
    assert control_state([control_message(record)]).partitions == record
    assert record.version == len(later) + 1 == record.at(Seqno(first))
    assert record.since == (first if later else NO_SEQNO)
    assert {seqno: record.at(Seqno(seqno)) for seqno in of} == of


def test_partition_map_without_a_rule_is_by_schema() -> None:
    old = (b"partitions", b'{"generation":1,"count":3}')
    assert control_state([old]).partitions == PartitionMap(1, 3, ShardRule(BY_SCHEMA))


def test_new_log_has_the_rule_from_its_first_event() -> None:
    plan = decide(NOTHING, None, {0: EMPTY}, SOURCE, rule=ShardRule(BY_TABLE))
    assert plan.partitions == plan.control.partitions == PartitionMap(1, 1, ShardRule(BY_TABLE))
    assert SINCE not in plan.markers[0].metadata


@pytest.mark.parametrize("rule", [None, ShardRule()])
def test_same_rule_begins_no_version(rule: ShardRule | None) -> None:
    tails = {0: TailFound(Seqno(8), Epoch(1), 0, 30)}
    plan = decide(control(0), position(8), tails, SOURCE, rule=rule)
    assert plan.partitions is None
    assert plan.control.partitions == PartitionMap(1, 1)


def test_another_rule_begins_a_version_that_every_marker_names() -> None:
    tails = {0: TailFound(Seqno(8), Epoch(1), 0, 30), 1: TailFound(Seqno(7), Epoch(1), 0, 30)}
    at = position(8, tails={0: 8, 1: 7})
    plan = decide(control(0, count=2), at, tails, SOURCE, rule=ShardRule(BY_TABLE))
    assert plan.partitions == plan.control.partitions == PartitionMap(2, 2, ShardRule(BY_TABLE), (Seqno(9),))
    told = [(marker.metadata[VERSION], marker.metadata[SINCE]) for marker in plan.markers.values()]
    assert told == [("2", "9")] * 2
    # dying before its first event, and going back within that: it is still the first of the version
    again = {number: replace(tail, epoch=Epoch(2)) for number, tail in tails.items()}
    for later in (decide(plan.control, at, again, SOURCE, rule=ShardRule(BY_TABLE)), go_back(plan.control, at, SOURCE)):
        assert later.partitions is None
        assert later.control.partitions == plan.partitions
        assert later.markers[1].metadata[SINCE] == "9"


def test_wrong_shard_in_the_configuration_names_its_field() -> None:
    shards = "[{name: money, pattern: shop.pay*}, {name: money, pattern: bank}]"
    config = load(None, {"THL_PUBLISH__SHARDS": shards}, ["publish.shard_by=table"])
    assert [(one.name, one.pattern) for one in config.publish.shards] == [("money", "shop.pay*"), ("money", "bank")]
    for setting, field in (
        ("shards=[{name: '#UNKNOWN', pattern: shop}]", "publish.shards.0.name"),
        ("shards=[{name: a, pattern: .orders}]", "publish.shards.0.pattern"),
        ("shards=[{name: a, pattern: shop.}]", "publish.shards.0.pattern"),
        ("shards=[{name: a}]", "publish.shards.0.pattern"),
        ("shards=[shop.*]", "publish.shards.0"),
        ("shard_by=row", "publish.shard_by"),
        ("bookkeeping=.x", "publish.bookkeeping.0"),
    ):
        with pytest.raises(ConfigError) as wrong:
            load(None, {}, [f"publish.{setting}"])
        assert list(wrong.value.fields) == [field]
