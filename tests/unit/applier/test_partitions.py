"""Events of several partitions are applied in one order, in bounded memory, however they are read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.applier import core as core_module
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.reading.event_sequencer import EventSequencer
from tests.support.fragments import batch, record
from tests.support.memory_target import MemoryTarget
from tests.support.partitioned_log import PartitionedLog
from tests.unit.applier.test_core import TOPIC, Ranges, history, ids, insert


@dataclass
class Topic(PartitionedLog):
    """Remembers what was fetched of it by itself."""

    seqnos: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    fetched: list[int] = field(default_factory=list)

    def event(self, partition: int, fragments: int = 1, *, given_up: bool = False) -> None:
        """The next event; all of it but its last fragment, where it is given up."""
        seqno = self.last + 1
        for number in range(fragments):
            fields: dict[str, Any] = {"epoch": len(self.firsts), "prev_seqno": self.tails[partition]}
            last = number == fragments - 1
            if last and given_up:
                break
            changes = [insert(1000 * seqno + number)]
            self.add(partition, record(seqno, changes, fragno=number, rows=number + 1, last_frag=last, **fields))
        if given_up:
            self.epoch()
        else:
            self.tails[partition] = self.last = seqno

    def add(self, partition: int, fields: dict[str, Any]) -> None:
        super().add(partition, fields)
        self.seqnos[partition].append(fields["seqno"])

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        self.fetched.append(self.seqnos[partition][offset])
        return batch([self.values[partition][offset]], partition=partition, offset=offset)

    def rest(self) -> None:
        """Nothing is held."""


def core_of(topic: Topic, target: MemoryTarget) -> tuple[ApplyCore, EventSequencer[Message, Messages | Segment]]:
    position = target.claim("shop")
    known = history(topic.firsts, topic.last)
    sequencer = EventSequencer[Message, Messages | Segment](
        topic=TOPIC, partitions=topic.count, position=position, history=known
    )
    core = ApplyCore(
        target,
        position,
        sequencer,
        PartitionBuffers(TOPIC, topic, Ranges()),
        log_id=known.log_id,
        gtid_set="",
        topic=TOPIC,
        clock=SystemClock(),
    )
    return core, sequencer


def read(topic: Topic, upto: list[int], since: list[int], large: bool) -> list[pa.RecordBatch]:
    parts = []
    for partition, (start, end) in enumerate(zip(since, upto, strict=True)):
        values = [None] * (end - start) if large else topic.values[partition][start:end]
        parts.append(batch(values, partition=partition, offset=start))
    return [part for part in parts if part.num_rows]


EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=25)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 4), EVENTS, st.booleans(), st.sampled_from([0, 300, 1 << 20]), st.data())
def test_partitions_of_any_lead_are_all_applied(
    count: int, events: list[tuple[int, int, int]], large: bool, most: int, data: st.DataObject
) -> None:
    topic = Topic(count)
    for partition, fragments, luck in events:
        if luck == 0:
            topic.event(partition % count, fragments, given_up=True)
        topic.event((partition + luck) % count, fragments)
    target = MemoryTarget()
    core, sequencer = core_of(topic, target)
    core_module.WAITING_BYTES, kept = most, core_module.WAITING_BYTES  # type: ignore[misc]
    try:
        at = [0] * count
        while any(here < len(values) for here, values in zip(at, topic.values, strict=True)):
            full = core.full()
            left = [p for p in range(count) if at[p] < len(topic.values[p]) and p not in full]
            assert left, "nothing is read, and what is awaited is not there"
            chosen = data.draw(st.sets(st.sampled_from(left), min_size=1))
            steps = {partition: data.draw(st.integers(1, 6)) for partition in chosen}
            upto = [min(len(values), at[p] + steps.get(p, 0)) for p, values in enumerate(topic.values)]
            core.accept(read(topic, upto, at, large))
            at = upto
            assert sequencer.waiting <= 6 * count
    finally:
        core_module.WAITING_BYTES = kept  # type: ignore[misc]
    assert ids(target) == {1000 * seqno + number for seqno in range(len(events)) for number in range(events[seqno][1])}
    assert [event.seqno for event in target.events] == list(range(len(events)))
    assert not core.full()


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_large_message_is_fetched_when_its_turn_comes(ahead: int) -> None:
    topic = Topic(2)
    for partition in [1 - ahead] * 10 + [ahead] * 10:
        topic.event(partition, 3)
    target = MemoryTarget()
    core, _ = core_of(topic, target)
    core.accept(read(topic, [31, 31], [0, 0], large=True))
    assert target.position is not None
    assert target.position.seqno == 19
    behind = len(topic.fetched) - topic.fetched[::-1].index(9)
    assert sum(seqno > 9 for seqno in topic.fetched[:behind]) == 1  # the one that tells that others come first
    assert len(topic.fetched) == 62


def test_a_partition_ahead_is_full_until_half_of_it_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(2)
    for partition in [0] * 20 + [1] * 40:
        topic.event(partition)
    size = read(topic, [0, 1], [0, 0], large=False)[0].nbytes
    target = MemoryTarget()
    core, _ = core_of(topic, target)
    monkeypatch.setattr(core_module, "WAITING_BYTES", 2 * 20 * size)
    core.accept(read(topic, [1, 12], [0, 0], large=False))
    core.accept(read(topic, [1, 20], [1, 12], large=False))
    assert core.full() == frozenset()
    core.accept(read(topic, [1, 41], [1, 20], large=False))
    assert core.full() == {1}
    core.accept(read(topic, [20, 41], [1, 41], large=False))
    assert core.full() == {1}
    core.accept(read(topic, [21, 41], [20, 41], large=False))
    assert core.full() == frozenset()
    assert ids(target) == {1000 * seqno for seqno in range(60)}


def test_a_full_partition_stays_full_until_half_of_its_share_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that it would be paused and resumed around its limit, with every batch."""
    topic = Topic(2)
    for partition in [0] + [1] * 11 + [0] + [1] * 8 + [0] + [1] * 9:
        topic.event(partition)
    size = read(topic, [0, 2], [0, 1], large=False)[0].nbytes  # of an event
    monkeypatch.setattr(core_module, "WAITING_BYTES", 2 * 20 * size)
    core, _ = core_of(topic, MemoryTarget())
    # The first event of a batch that must wait for partition 0 takes its batch out of the buffer.
    for start, end in pairwise([0, 2, 12, 13, 20, 21, 29]):
        core.accept(read(topic, [1 if start == 0 else 0, end], [0, start], large=False))
    assert core.full() == {1}  # 27 of 20 wait
    core.accept(read(topic, [2, 0], [1, 0], large=False))
    assert core.full() == {1}  # 16
    core.accept(read(topic, [3, 0], [2, 0], large=False))
    assert core.full() == frozenset()  # 8

    core, _ = core_of(topic, MemoryTarget())
    for start, end in pairwise([0, 2, 12, 13, 18]):
        core.accept(read(topic, [1 if start == 0 else 0, end], [0, start], large=False))
    assert core.full() == frozenset()  # 16, and never more
