"""The rule that gives tables their shards, and what another rule makes of a log."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.loading import load
from connector.errors import ConfigError
from connector.kafka.records import control_message, control_state
from connector.log.epochs.control import PartitionMap
from connector.log.format.partition_map import BY_SCHEMA, BY_TABLE, GENERATION, SINCE, ShardRule, finds
from connector.log.ids import NO_SEQNO, Epoch, Seqno
from connector.log.transaction.layout import TableName
from connector.log.writing.online import TailFound, decide, go_back
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
def test_the_first_pattern_that_finds_a_table_has_it(rule: ShardRule, table: TableName) -> None:
    found = [name for name, pattern in rule.patterns if finds(pattern, table)]
    assert rule.of(table) == (found[0] if found else replace(rule, patterns=()).of(table))


@given(patterns, tables)
def test_a_pattern_means_what_its_wildcards_say_whatever_the_case(pattern: str, table: TableName) -> None:
    schema, dot, name = pattern.partition(".")

    def expected(part: str, text: str) -> bool:
        """Without any regular expression."""
        if not part:
            return not text
        if part[0] == "*":
            return any(expected(part[1:], text[cut:]) for cut in range(len(text) + 1))
        return bool(text) and (part[0] == "?" or part[0].lower() == text[0].lower()) and expected(part[1:], text[1:])

    assert finds(pattern, table) == (expected(schema, table.schema) and (not dot or expected(name, table.table)))
    assert finds(pattern, table) == finds(pattern, TableName(table.schema.swapcase(), table.table.swapcase()))


@given(st.lists(st.tuples(rules, st.integers(0, 9)), max_size=4), rules)
def test_a_partition_map_survives_and_tells_the_generation_of_an_event(
    later: list[tuple[ShardRule, int]], rule: ShardRule
) -> None:
    record, of, first = PartitionMap(1, 3, rule), {}, 0
    for number, (another, events) in enumerate(later, 1):
        of |= dict.fromkeys(range(first, first + events), number)
        first += events
        record = record.by(another, Seqno(first))
    assert control_state([control_message(record)]).partitions == record
    assert record.generation == len(later) + 1 == record.at(Seqno(first))
    assert record.since == (first if later else NO_SEQNO)
    assert {seqno: record.at(Seqno(seqno)) for seqno in of} == of


def test_a_map_of_before_there_were_rules_is_by_schema() -> None:
    old = (b"partitions", b'{"generation":1,"count":3}')
    assert control_state([old]).partitions == PartitionMap(1, 3, ShardRule(BY_SCHEMA))


def test_a_new_log_has_the_rule_from_its_first_event() -> None:
    plan = decide(NOTHING, None, {0: EMPTY}, SOURCE, rule=ShardRule(BY_TABLE))
    assert plan.partitions == plan.control.partitions == PartitionMap(1, 1, ShardRule(BY_TABLE))
    assert SINCE not in plan.markers[0].metadata


@pytest.mark.parametrize("rule", [None, ShardRule()])
def test_the_same_rule_is_no_other_generation(rule: ShardRule | None) -> None:
    tails = {0: TailFound(Seqno(8), Epoch(1), 0, 30)}
    plan = decide(control(0), position(8), tails, SOURCE, rule=rule)
    assert plan.partitions is None
    assert plan.control.partitions == PartitionMap(1, 1)


def test_another_rule_is_a_generation_from_the_next_event_on_that_every_marker_tells() -> None:
    tails = {0: TailFound(Seqno(8), Epoch(1), 0, 30), 1: TailFound(Seqno(7), Epoch(1), 0, 30)}
    at = position(8, tails={0: 8, 1: 7})
    plan = decide(control(0, count=2), at, tails, SOURCE, rule=ShardRule(BY_TABLE))
    assert plan.partitions == plan.control.partitions == PartitionMap(2, 2, ShardRule(BY_TABLE), (Seqno(9),))
    told = [(marker.metadata[GENERATION], marker.metadata[SINCE]) for marker in plan.markers.values()]
    assert told == [("2", "9")] * 2
    # dying before its first event, and going back within that: it is still the first of the generation
    again = {number: replace(tail, epoch=Epoch(2)) for number, tail in tails.items()}
    for later in (decide(plan.control, at, again, SOURCE, rule=ShardRule(BY_TABLE)), go_back(plan.control, at, SOURCE)):
        assert later.partitions is None
        assert later.control.partitions == plan.partitions
        assert later.markers[1].metadata[SINCE] == "9"


def test_the_configuration_names_what_is_wrong_with_a_shard() -> None:
    shards = "[{name: money, pattern: shop.pay*}, {name: money, pattern: bank}]"
    config = load(None, {"THL_PUBLISH__SHARDS": shards}, ["publish.shard_by=table"])
    assert [(one.name, one.pattern) for one in config.publish.shards] == [("money", "shop.pay*"), ("money", "bank")]
    for setting, told in (
        ("[{name: '#UNKNOWN', pattern: shop}]", "publish.shards.0.name: "),
        ("[{name: a, pattern: .orders}]", "publish.shards.0.pattern: "),
        ("[{name: a, pattern: shop.}]", "publish.shards.0.pattern: "),
        ("[{name: a}]", "publish.shards.0.pattern: Field required"),
        ("[shop.*]", "publish.shards.0: "),
    ):
        with pytest.raises(ConfigError, match=re.escape(told)):
            load(None, {}, [f"publish.shards={setting}"])
    with pytest.raises(ConfigError, match=r"publish\.shard_by"):
        load(None, {}, ["publish.shard_by=row"])
    with pytest.raises(ConfigError, match=r"publish\.bookkeeping\.0: "):
        load(None, {}, ["publish.bookkeeping=.x"])
