"""Each event of a log is returned whole, once and in order, after any failure and by any way of reading."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.consume import Consumer
from connector.consume.assembly import Assembly, ConsumedMessage, SomeShards, WholeLog
from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of
from connector.log.ids import LogId, Seqno, ShardId
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.rules import Rule
from connector.log.transaction.load import Part
from connector.log.transaction.position import TargetPosition
from tests.support.events import MemoryLog, Story, shard_in
from tests.support.fragments import record

DECODER = MessageDecoder("t")
STEPS = ("event", "event", "event", "long", "barrier", "ddl", "given up", "aborted", "online", *Part)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    partitions = draw(st.integers(1, 3))
    story = Story(MemoryLog(partitions))
    story.log.online()
    shards = [shard_in(partition, partitions) for partition in range(partitions)] + ["more", "#UNKNOWN"]
    for what, shard in draw(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(shards)), max_size=25)):
        match what:
            case "event" | "long":
                story.event(shard, 3 if what == "long" else 1, 1)
            case "barrier" | "ddl":
                story.event("#UNKNOWN", 1, 1, "ddl" if what == "ddl" else "transaction")
            case Part.ROWS:
                story.event(shard, 2, 1, what)
            case Part():
                story.event("#UNKNOWN", 1, 1, what)
            case "given up":
                story.given_up(shard)
            case "aborted":
                story.aborted(shard)
            case "online":
                story.log.online()
    return story


class Reading:
    """A consumer without Kafka: reads from any partition that is not paused, in a drawn order."""

    def __init__(
        self, story: Story, start: ConsumerPosition, *, seed: int = 0, limit: int = 1 << 30, memory: int = 200
    ) -> None:
        log = story.log
        assert isinstance(log, MemoryLog)
        self.random, self.limit = random.Random(seed), limit
        self.joined: ShardSequencer[Fragments] | None = None
        offsets = dict.fromkeys(range(log.partitions), 0) | dict(start.offsets)
        history = History(LogId(log.log_id), tuple(log.epochs), Seqno(story.seqno))
        if start.shards is None:
            history.prove(start.log_id, start.seqno, start.epoch)
            target = TargetPosition(
                service="s", log_id=start.log_id, seqno=start.seqno, epoch=start.epoch, offsets=start.offsets
            )
            sequencer: EventSequencer[Fragments, Any] = EventSequencer(
                topic="t", partitions=log.partitions, position=target, history=history
            )
            self.order: WholeLog | SomeShards = WholeLog(sequencer, "s", history.log_id)
        else:
            chosen = {0, *(partition_of(shard, log.partitions) for shard in start.shards)}
            offsets = {partition: offsets[partition] for partition in chosen}
            self.joined = ShardSequencer(
                topic="t",
                log_id=history.log_id,
                shards=start.shards,
                offsets=offsets,
                floor=start.floor,
                tails=start.tails,
                barrier=start.barrier,
            )
            self.order = SomeShards(self.joined, start)
        self.rest = {p: [m for m in log.messages[p] if m[0] >= offset] for p, offset in offsets.items()}
        self.assembly = Assembly(self.order, DECODER, "t", memory)

    def __iter__(self) -> Iterator[Event]:
        paused: set[int] = set()
        while readable := [p for p, rest in self.rest.items() if rest and p not in paused]:
            partition = self.random.choice(readable)
            for _ in range(self.random.randint(1, 4)):
                if self.rest[partition]:
                    yield from self.assembly.accept(ConsumedMessage(partition, *self.rest[partition].pop(0)))
            yield from self.shown()
            paused = set(self.order.ahead(self.limit))
        yield from self.shown()
        assert not any(self.rest.values()), "nothing may be read, and something is left"

    def shown(self) -> Iterator[Event]:
        """Here a partition's end is known."""
        while self.joined is not None and (lagging := self.joined.lagging())[1]:
            ended = [partition for partition in lagging[1] if not self.rest[partition]]
            for partition in ended:
                self.joined.reached(partition, lagging[0])
            yield from self.assembly.ready()
            if not ended:
                return


def place(*shards: str) -> ConsumerPosition:
    return ConsumerPosition(
        service="s", log_id=LogId("f" * 32 if shards else ""), shards=tuple(map(ShardId, shards)) if shards else None
    )


def plain(event: Event) -> tuple[int, int, str, int]:
    return event.seqno, event.epoch, event.shard, sum(len(getattr(change, "rows", [1])) for change in event.changes)


def expected(story: Story, *shards: str) -> list[tuple[int, int, str, int]]:
    return [
        (seqno, epoch, shard, sum(len(change.get("rows", [1])) for change in changes))
        for seqno, epoch, shard, changes in story.expected
        if not shards or shard in (*shards, "#UNKNOWN")
    ]


@given(stories(), st.integers(0, 99), st.sampled_from((0, 500, 1 << 30)), st.data())
def test_every_event_is_returned_in_order_and_the_rest_from_any_position(
    story: Story, seed: int, limit: int, data: st.DataObject
) -> None:
    found = list(Reading(story, place(), seed=seed, limit=limit))
    assert [plain(event) for event in found] == expected(story)
    if found:
        event = data.draw(st.sampled_from(found))
        stored = ConsumerPosition.from_json(event.position.to_json())
        assert stored.seqno == event.seqno
        assert [plain(e) for e in Reading(story, stored, seed=seed + 1)] == expected(story)[event.seqno + 1 :]


@given(stories(), st.integers(0, 99), st.sampled_from((0, 500, 1 << 30)), st.data())
def test_events_of_some_shards_are_returned_in_order_on_the_right_side_of_every_barrier(
    story: Story, seed: int, limit: int, data: st.DataObject
) -> None:
    names = ["more", *(shard_in(partition, story.log.partitions) for partition in range(story.log.partitions))]
    shards = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    found = list(Reading(story, place(*shards), seed=seed, limit=limit))
    told = [plain(event) for event in found]
    assert sorted(told) == expected(story, *shards)
    for shard in shards:
        assert [event for event in told if event[2] in (shard, "#UNKNOWN")] == expected(story, shard)
    if found:
        taken = data.draw(st.integers(1, len(found)))
        stored = ConsumerPosition.from_json(found[taken - 1].position.to_json())
        rest = [plain(event) for event in Reading(story, stored, seed=seed + 1)]
        assert sorted(rest) == sorted(told[taken:])


@given(stories(), st.integers(0, 99), st.booleans(), st.data())
def test_a_missing_message_is_damage_or_the_end(story: Story, seed: int, whole: bool, data: st.DataObject) -> None:
    log = story.log
    assert isinstance(log, MemoryLog)
    partition = data.draw(st.sampled_from(range(log.partitions)))
    messages = log.messages[partition]
    at = data.draw(st.integers(0, len(messages) - 1))
    last = all(DECODER.header(value, "").kind.name == "EPOCH" for _, value in messages[at + 1 :])
    lost = DECODER.header(messages[at][1], "").seqno
    del messages[at]
    shard = shard_in(log.partitions - 1, log.partitions)
    shards = () if whole else (shard,)
    wanted, found = expected(story, *shards), []
    try:
        for event in Reading(story, place(*shards), seed=seed):
            found.append(plain(event))
    except LogDamaged as error:
        assert "seqno" in error.where
        assert str(error.where["at"]).startswith("t-")
    else:
        # The removed message is then the partition's end, or of an unread event: not between two events.
        assert last or found == wanted
    # A lost end is noticed when the partition goes on; until then a barrier does not wait for unknown events.
    ended = last and not whole and found == [event for event in wanted if event[0] != lost][: len(found)]
    assert found == wanted[: len(found)] or ended


def test_a_partition_that_is_far_ahead_is_paused() -> None:
    story = Story(MemoryLog(2))
    story.log.online()
    first, second = shard_in(0, 2), shard_in(1, 2)
    story.event(first)
    for _ in range(50):
        story.event(second)
    story.event(first)
    reading = Reading(story, place(), limit=1000)
    given: list[Event] = []

    def read(partition: int) -> None:
        given.extend(reading.assembly.accept(ConsumedMessage(partition, *reading.rest[partition].pop(0))))

    read(1)
    while 1 not in reading.order.ahead(1000):
        read(1)
    assert 40 < len(reading.rest[1]) < 50
    assert not given
    read(0)
    assert set(reading.order.ahead(1000)) == {1}
    read(0)
    assert not reading.order.ahead(1000)
    assert [event.seqno for event in given] == list(range(len(given)))
    assert len(given) > 2


def test_a_marker_of_another_log_is_refused() -> None:
    for start in (place(), place("more")):
        story = Story(MemoryLog(1))
        story.log.online()
        story.event("more")
        story.log.log_id = "e" * 32
        story.log.online()
        story.log.log_id = "f" * 32
        with pytest.raises(HistoriesDiffer) as refused:
            list(Reading(story, start))
        assert (refused.value.where["log_id"], refused.value.where["expected"]) == ("e" * 32, "f" * 32)


# What is done to an event of three fragments, and the fields of the error.
DAMAGE: dict[str, tuple[Callable[[list[dict[str, Any]]], object], dict[str, int]]] = {
    "missing events": (lambda f: f[0].update(prev_seqno=7), {"seqno": 1, "fragno": 0, "prev_seqno": 7}),
    "a later barrier": (lambda f: f[0].update(last_barrier=3), {"seqno": 1, "fragno": 0, "last_barrier": 3}),
    "no first fragment": (lambda f: f.pop(0), {"seqno": 1, "fragno": 1}),
    "no second fragment": (lambda f: f.pop(1), {"seqno": 1, "fragno": 2}),
    "an unfinished event": (lambda f: f[1].update(seqno=9), {"seqno": 9, "fragno": 1}),
    "an unknown barrier": (lambda f: [e.update(last_barrier=0) for e in f], {"seqno": 1, "last_barrier": 0}),
}


@pytest.mark.parametrize("shards", [(), ("more",)])
@pytest.mark.parametrize(("damage", "fields"), DAMAGE.values(), ids=DAMAGE)
def test_an_event_that_contradicts_the_protocol_is_damage(
    damage: Callable[[list[dict[str, Any]]], object], fields: dict[str, int], shards: tuple[str, ...]
) -> None:
    story = Story(MemoryLog(1))
    story.log.online()
    story.event("more")
    broken = story.fragments("more", 3, 1)
    damage(broken)
    story.log.events(broken)
    found = []
    with pytest.raises(LogDamaged) as refused:
        for event in Reading(story, place(*shards)):
            found.append(event.seqno)
    assert fields.items() <= refused.value.where.items()
    assert found == [0]


def a_reading(log: MemoryLog) -> tuple[Assembly, WholeLog, list[tuple[int, int, bool]]]:
    """An assembly of the whole log, and the attempts at events that it has seen: seqno, messages, whole."""
    attempts: list[tuple[int, int, bool]] = []
    target = TargetPosition(service="s", log_id=LogId(""))
    sequencer: EventSequencer[Fragments, Any] = EventSequencer(topic="t", partitions=log.partitions, position=target)
    order = WholeLog(sequencer, "s", LogId(log.log_id))

    def ended(header: FragmentHeader, fragments: Fragments, whole: bool) -> None:
        attempts.append((header.seqno, len(list(fragments)), whole))

    return Assembly(order, DECODER, "t", 1 << 20, ended), order, attempts


def test_an_event_that_no_partition_can_have_is_damage() -> None:
    """Each partition's messages are linked; that the second of three events is in none of them shows only together."""
    log = MemoryLog(2)
    log.online()
    log.events([record(0)], 0)
    log.events([record(2, prev_seqno=0)], 0)
    assembly, order, _ = a_reading(log)
    for partition, messages in log.messages.items():
        for message in messages:
            list(assembly.accept(ConsumedMessage(partition, *message)))
    assert order.ahead(1 << 20) == []  # event 1 may be in partition 1
    log.events([record(3, prev_seqno=-1)], 1)
    list(assembly.accept(ConsumedMessage(1, *log.messages[1][-1])))
    with pytest.raises(LogDamaged) as refused:
        order.ahead(1 << 20)
    assert refused.value.where == {"rule": Rule.EVENT_MISSING, "seqno": 1}


def test_every_attempt_at_an_event_is_reported_when_it_ends() -> None:
    log = MemoryLog(1)
    log.online()
    log.events([record(0)], 0)
    log.events([record(1, last_frag=False, prev_seqno=0), record(1, last_frag=False, prev_seqno=0, fragno=1)], 0)
    log.online()
    log.events([record(1, prev_seqno=0)], 0)
    assembly, _, attempts = a_reading(log)
    for message in log.messages[0]:
        list(assembly.accept(ConsumedMessage(0, *message)))
    assert attempts == [(0, 1, True), (1, 2, False), (1, 1, True)]


def test_a_consumer_ignores_heartbeats_and_warns() -> None:
    with pytest.deprecated_call():
        Consumer("localhost:9", "shop", heartbeats=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Consumer("localhost:9", "shop")
