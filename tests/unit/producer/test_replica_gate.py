"""Transactions are published only after the replicas have them, and no Kafka transaction stays open meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.clock import SystemClock
from connector.config.loading import load
from connector.config.model import Config
from connector.config.publish import Publish
from connector.errors import ConfigError
from connector.health import BOUND, ProcessHealth
from connector.kafka.records import position_record
from connector.log.epochs.control import ControlState
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.log.transaction.position import SnapshotCompleted, SourcePosition
from connector.log.writing.online import SourceFound, TailFound, decide
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.publish.fragments import gtids_of
from connector.producer.publish.publisher import READING, Publisher
from connector.producer.publish.queue import Work
from connector.producer.publish.replica_gate import ReplicaLagging
from tests.support import encoding as making
from tests.support.clock import PATIENCE, Slept

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
PLACE = SourcePosition("mysql-bin.000002", 5000)
CONFIG = Config(service="s", publish=Publish(commit_ms=1, fragment_bytes=50, shard_bytes=50))


def encoder() -> Encoder:
    made = Encoder(service="s", source_id="db:1", partitions=1, limits=Limits(fragment=50, shard=50, message=1 << 20))
    made.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
    return made


def event(by: Encoder, gtid: str | None, statements: int = 1) -> list[Any]:
    begin = replace(making.BEGIN, gtid=gtid)
    changes = [Statement("a", "x" * 40)] * statements
    return [*by.encode(TransactionBatch(begin, changes, making.ENDING))]


gtids = st.one_of(st.none(), st.builds("{}:{}".format, st.sampled_from([UUID, OTHER]), st.integers(1, 12)))
works = st.lists(
    st.tuples(st.sampled_from(["event", "long", "passed", "loaded"]), gtids, st.integers(0, 3)), max_size=12
)


def items_of(steps: list[tuple[str, str | None, int]]) -> tuple[list[Work], GtidSet]:
    """The steps as work, every `cut` a new one; and all GTIDs in them."""
    by, done, every = encoder(), list[Work](), GtidSet()
    work: Work = []
    for what, gtid, cut in steps:
        if gtid is not None:
            every.add(gtid)
        match what:
            case "passed":
                work.append(PositionAdvance(PLACE, gtid))
            case "loaded":
                work.append(SnapshotCompleted(gtid))
            case _:
                fragments = event(by, gtid, 3 if what == "long" else 1)
                if cut == 1 and what == "long":
                    work.append(fragments.pop(0))
                    done.append(work)
                    work = []
                work += fragments
        if not cut:
            done.append(work)
            work = []
    return [*done, work], every


@given(works)
def test_gtids_of_work_are_those_of_the_events_that_end_in_it(steps: list[tuple[str, str | None, int]]) -> None:
    divided, every = items_of(steps)
    assert str(GtidSet.parse(gtids_of([item for work in divided for item in work]))) == str(every)
    assert str(GtidSet.parse(",".join(gtids_of(work) for work in divided))) == str(every)


def test_an_unfinished_event_has_no_gtid_to_wait_for() -> None:
    assert gtids_of(event(encoder(), f"{UUID}:3", 3)[:-1]) == ""
    assert (
        gtids_of([PositionAdvance(PLACE, "0-1-7"), PositionAdvance(PLACE, "0-1-8"), PositionAdvance(PLACE, "1-1-3")])
        == "0-1-8,1-1-3"
    )


class Kafka:
    """Transactions that remember."""

    def __init__(self) -> None:
        self.open = False
        self.sent: list[tuple[str, bytes | None]] = []
        self.committed: list[tuple[str, bytes | None]] = []

    def begin(self) -> None:
        assert not self.open
        self.open = True

    def send(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        assert self.open
        self.sent.append((topic, value))

    def commit(self) -> None:
        self.open = False
        self.committed += self.sent
        self.sent = []

    @property
    def gtids(self) -> str:
        """What the newest committed position has."""
        position = next(value for topic, value in reversed(self.committed) if topic == CONFIG.position_topic)
        return position_record(position or b"").gtid_set or ""


class Slow:
    """A hold that has nothing until it is waited for."""

    def __init__(self, kafka: Kafka, never: str = "") -> None:
        self.kafka, self.there = kafka, GtidSet()
        self.never, self.waiting = never, Event()

    def has(self, gtids: str) -> bool:
        return not GtidSet.parse(gtids) - self.there

    def wait(self, gtids: str, given_up: Callable[[], bool]) -> None:
        assert not self.kafka.open
        assert not self.kafka.sent
        if self.never and self.never in GtidSet.parse(gtids):
            self.waiting.set()
            give_up = SystemClock().monotonic() + PATIENCE
            while not given_up():
                assert SystemClock().monotonic() < give_up
                SystemClock().sleep(0.001)
            raise ReplicaLagging
        if self.kafka.committed:
            assert self.has(self.kafka.gtids)
        self.there = GtidSet.parse(f"{self.there},{gtids}")


def publisher(kafka: Kafka, hold: Slow, gtid_set: str = "", health: ProcessHealth | None = None) -> Publisher:
    facts = SourceFound(
        source_id="db:1", server_uuid="u", now=0, log_id=LogId("a" * 32), start=PLACE, gtid_set=gtid_set
    )
    plan = decide(ControlState(None, None, ()), None, {0: TailFound()}, facts)
    point = lambda _: None  # noqa: E731
    made = Publisher(CONFIG, kafka, SystemClock(), point, hold, health=health)  # type: ignore[arg-type]
    made.online(plan, [])
    return made


@given(works)
def test_transactions_that_replicas_lack_are_not_committed_and_none_is_open_meanwhile(
    steps: list[tuple[str, str | None, int]],
) -> None:
    divided, every = items_of([step for step in steps if step[0] != "loaded"])
    kafka = Kafka()
    hold = Slow(kafka)
    by = publisher(kafka, hold)
    for work in divided:
        by.put(work)
    by.drain()
    assert str(GtidSet.parse(kafka.gtids)) == str(every) == str(hold.there)
    fragments = [value for topic, value in kafka.committed if topic == CONFIG.topic]
    assert fragments == [
        item.value for work in divided for item in work if not isinstance(item, PositionAdvance | SnapshotCompleted)
    ]


def test_a_new_log_waits_for_the_transactions_before_it_and_of_its_initial_load() -> None:
    kafka = Kafka()
    hold = Slow(kafka)
    by = publisher(kafka, hold, f"{UUID}:1-5")
    assert str(hold.there) == f"{UUID}:1-5"
    by.put([*event(encoder(), None), SnapshotCompleted(f"{UUID}:1-9")])
    by.drain()
    assert str(hold.there) == f"{UUID}:1-9"


@pytest.mark.parametrize("how", ["drain", "end"])
def test_held_transactions_are_given_up_with_all_later_ones(how: str) -> None:
    kafka = Kafka()
    hold = Slow(kafka, never=f"{UUID}:2")
    by, made = publisher(kafka, hold), encoder()
    by.put(event(made, f"{UUID}:1"))
    by.put(event(made, f"{UUID}:2"))
    by.put(event(made, f"{UUID}:3"))
    assert hold.waiting.wait(PATIENCE)
    if how == "drain":
        with pytest.raises(ReplicaLagging):
            by.drain(hurried=True)
        with pytest.raises(ReplicaLagging):
            by.put([])
    else:
        by.end()
    assert by.committed.gtid_set == kafka.gtids == f"{UUID}:1"
    assert len([topic for topic, _ in kafka.committed if topic == CONFIG.topic]) == 1
    assert not kafka.open


def test_publication_that_waits_for_replicas_is_alive() -> None:
    kafka = Kafka()
    hold, clock = Slow(kafka, never=f"{UUID}:1"), Slept()
    health = ProcessHealth(clock)
    by = publisher(kafka, hold, health=health)
    by.put(event(encoder(), f"{UUID}:1"))
    assert hold.waiting.wait(PATIENCE)
    clock.sleep(BOUND + 1)
    assert health.alive().ok
    by.end()


def test_reader_that_waits_for_publication_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka, clock, seen = Kafka(), Slept(), []
    health = ProcessHealth(clock)
    by = publisher(kafka, Slow(kafka), health=health)

    def full(_: Work) -> None:
        clock.sleep(BOUND + 1)
        seen.append(health.loop(READING).stuck_for)

    monkeypatch.setattr(by._queue, "put", full)
    with health.loop(READING).under_way():
        by.put(event(encoder(), f"{UUID}:1"))
        seen.append(health.loop(READING).stuck_for)
    by.end()
    assert seen == [None, None]


def test_publication_that_hangs_in_kafka_is_stuck() -> None:
    class Hanging(Kafka):
        """Transactions of which the second commit does not return by itself."""

        def __init__(self) -> None:
            super().__init__()
            self.hangs, self.go_on = Event(), Event()

        def commit(self) -> None:
            if self.committed:
                self.hangs.set()
                assert self.go_on.wait(PATIENCE)
            super().commit()

    clock, kafka = Slept(), Hanging()
    health = ProcessHealth(clock)
    by = publisher(kafka, Slow(kafka), health=health)
    by.put(event(encoder(), f"{UUID}:1"))
    assert kafka.hangs.wait(PATIENCE)
    clock.sleep(BOUND + 1)
    assert health.alive() == (False, "publishing has not gone on for 601 s")
    kafka.go_on.set()
    by.drain()
    assert health.alive().ok


def test_replicas_are_waited_for_again_after_a_hurried_drain() -> None:
    given_up = []

    class Asked(Slow):
        def wait(self, gtids: str, given: Callable[[], bool]) -> None:
            super().wait(gtids, given)
            given_up.append(given())

    by, made = publisher(kafka := Kafka(), Asked(kafka)), encoder()
    by.drain(hurried=True)
    by.resume()
    by.put(event(made, f"{UUID}:1"))
    by.drain()
    assert kafka.gtids == f"{UUID}:1"
    assert given_up == [False]


def test_creation_time_is_kept_for_its_own_file_only() -> None:
    created = {PLACE.file: 77}
    plan = decide(
        ControlState(None, None, ()),
        None,
        {0: TailFound()},
        SourceFound(source_id="db:1", server_uuid="u", now=0, log_id=LogId("a" * 32), start=PLACE, gtid_set=None),
    )
    kafka: Any = Kafka()
    by = Publisher(CONFIG, kafka, SystemClock(), lambda _: None, created=lambda file: created.get(file, 0))
    by.online(plan, [])
    found = []
    for file, offset in ((PLACE.file, 6000), (PLACE.file, 7000), ("mysql-bin.000003", 4)):
        by.put([PositionAdvance(SourcePosition(file, offset), None)])
        by.drain()
        found.append(by.committed.created)
        created.clear()  # the source does not say it any more
        by.resume()
    by.end()
    assert found == [77, 77, 0]


@pytest.mark.parametrize(
    "url", ["replica", "mysql://", "postgresql://h", "mysql://h:0", "mysql://h:x", "mysql://h/db", "mysql://h?a=b"]
)
def test_an_invalid_address_is_refused_without_its_password(url: str) -> None:
    url = url.replace("//h", "//me:secret@h")
    with pytest.raises(ConfigError) as refused:
        load(None, {}, [f"publish.wait_for={url}"])
    assert "publish.wait_for.0" in str(refused.value)
    assert "secret" not in str(refused.value)
