"""`connector.consume` on a real broker: every reader returns the same transactions, from any start."""

from __future__ import annotations

import json
import runpy
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.consume import (
    Consumer,
    ConsumerPosition,
    Event,
    HistoriesDiffer,
    LogDamaged,
    Start,
    Statement,
    feed,
)
from connector.consume.feed import Feed
from connector.errors import BrokerUnavailable, ConfigError, EventsDeleted
from connector.fetching import maven
from connector.fetching.java import java_home
from connector.fetching.versions import KAFKA, KAFKA_VERSION
from tests.support.events import BEGAN, SECOND, UUID, Story, shard_in
from tests.support.fragments import record
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

ROOT = Path(__file__).parents[2]
PARTITIONS = 3


def config_of(broker: Broker) -> Config:
    return Config(service=f"read-{uuid.uuid4().hex[:8]}", kafka=Kafka(bootstrap=broker.bootstrap))


@pytest.fixture(scope="module")
def story(kafka_broker: Broker) -> Story:
    story = Story(LogWriter(config_of(kafka_broker), partitions=PARTITIONS))
    story.tell()
    return story


def consumer(story: Story, **options: Any) -> Consumer:
    return Consumer(story.log.config.kafka.bootstrap, story.log.config.service, until_end=True, **options)


def plain(event: Event) -> tuple[int, int, str, list[Any]]:
    """An event as `Story.expected` has it, with the values of rows alone."""
    changes: list[Any] = []
    for change in event.changes:
        if isinstance(change, Statement):
            changes.append(change.sql)
        else:
            assert change.key_columns == (("id",) if change.table == "orders" else ())
            changes += [tuple(row.after.values()) for row in change.rows if row.after is not None]
    return event.seqno, event.epoch, event.shard, changes


def expected(story: Story, shards: Sequence[str] | None = None) -> list[tuple[int, int, str, list[Any]]]:
    found = []
    for seqno, epoch, shard, changes in story.expected:
        if shards is not None and shard not in (*shards, "#UNKNOWN"):
            continue
        values: list[Any] = []
        for change in changes:
            values += [change["sql"]] if "sql" in change else [tuple(row["after"]) for row in change["rows"]]
        found.append((seqno, epoch, shard, values))
    return found


def test_every_finished_event_is_returned_once_and_in_order(story: Story) -> None:
    with consumer(story) as reading:
        found = [plain(event) for event in reading]
        assert reading.at_end
        assert reading.position.seqno == story.seqno
    assert found == expected(story)
    assert [seqno for seqno, *_ in found] == list(range(story.seqno + 1))


def test_a_stored_position_resumes_with_the_next_event(story: Story) -> None:
    with consumer(story) as reading:
        positions = [reading.position, *(event.position for event in reading)]
    for taken in (0, 9, 15, len(positions) - 1):
        stored = ConsumerPosition.from_json(positions[taken].to_json())
        assert stored == positions[taken]
        with consumer(story, start=stored) as reading:
            assert [plain(event) for event in reading] == expected(story)[taken:]


@pytest.mark.parametrize("seqno", [0, 15, 20])
def test_a_start_by_seqno_gtid_or_time_finds_the_same_event(story: Story, seqno: int) -> None:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=BEGAN + seqno * SECOND)
    for start in (
        Start.seqno(seqno),
        Start.gtid(f"{UUID.upper()}:{seqno + 1}"),
        Start.time(when, slack=timedelta(seconds=3)),
        Start.time(when - timedelta(milliseconds=999)),
    ):
        with consumer(story, start=start) as reading:
            first = next(reading)
            assert (first.seqno, first.commit_time) == (seqno, when), start
    with consumer(story, start=Start.seqno(seqno)) as reading:
        assert [plain(event) for event in reading] == expected(story)[seqno:]


def test_a_start_at_the_end_returns_only_new_events(story: Story) -> None:
    for start in (Start.end(), Start.time(datetime(2100, 1, 1, tzinfo=UTC)), Start.seqno(story.seqno + 1)):
        with consumer(story, start=start) as reading:
            assert reading.position.seqno == story.seqno
            assert list(reading) == []


def test_a_start_that_the_log_does_not_have_is_refused(story: Story, kafka_broker: Broker) -> None:
    for start, field in (
        (Start.seqno(story.seqno + 2), ("seqno", story.seqno + 2)),
        (Start.gtid(f"{UUID}:999"), ("gtid", f"{UUID}:999")),
    ):
        with pytest.raises(ConfigError) as refused:
            consumer(story, start=start).open()
        assert field in refused.value.where.items()
    with pytest.raises(ConfigError) as refused:
        consumer(story, start=Start.committed()).open()
    assert "group=" in refused.value.hint
    with pytest.raises(BrokerUnavailable) as missing:
        Consumer(kafka_broker.bootstrap, "nothing").open()
    assert missing.value.where == {"topic": "thl.nothing"}


def test_a_group_resumes_after_its_last_commit(story: Story) -> None:
    group = f"g-{uuid.uuid4().hex[:8]}"
    for low, high in ((0, 4), (4, 15), (15, 16)):
        with consumer(story, group=group) as reading:
            for event in reading:
                assert event.seqno >= low
                if event.seqno == high - 1:
                    # Kafka stores partition by partition: one that was not reached has its older place, which does.
                    if high == 15:
                        position = event.position
                        newer = {0: position.offsets[0], 1: position.offsets[1]}
                        reading.commit(replace(position, offsets=newer))
                    else:
                        reading.commit(event)
                elif event.seqno == high + 2:  # given, and not committed
                    break
    with consumer(story, group=group) as reading:
        assert [plain(event) for event in reading] == expected(story)[16:]


@pytest.mark.parametrize("partitions", [(2,), (0, 1), ()])
def test_events_of_some_shards_are_returned_in_order_with_every_barrier(
    story: Story, partitions: tuple[int, ...]
) -> None:
    shards = [shard_in(partition, PARTITIONS) for partition in partitions]
    with consumer(story, shards=shards) as reading:
        events = [(event, plain(event)) for event in reading]
    found = [each for _, each in events]
    assert sorted(found) == expected(story, shards)
    for shard in (*shards, "#UNKNOWN"):
        assert [e for e in found if e[2] in (shard, "#UNKNOWN")] == expected(story, [shard])
    for taken in (1, len(events) // 2):
        stored = ConsumerPosition.from_json(events[taken - 1][0].position.to_json())
        with consumer(story, shards=shards, start=stored) as reading:
            assert sorted(plain(event) for event in reading) == sorted(found[taken:])
    with pytest.raises(ConfigError) as refused:
        consumer(story, start=events[0][0].position).open()
    assert refused.value.where["shards"] == events[0][0].position.shards


def test_shards_can_start_at_a_seqno_and_resume_with_a_group(story: Story) -> None:
    shard, group = shard_in(1, PARTITIONS), f"g-{uuid.uuid4().hex[:8]}"
    wanted = [event for event in expected(story, [shard]) if event[0] >= 5]
    with consumer(story, shards=[shard], start=Start.seqno(5)) as reading:
        assert [plain(event) for event in reading] == wanted
    with consumer(story, shards=[shard], group=group, start=Start.seqno(5)) as reading:
        next(reading)
        next(reading)
        reading.commit()
    with consumer(story, shards=[shard], group=group) as reading:
        assert [plain(event) for event in reading] == wanted[2:]


def test_new_events_are_returned_when_they_are_published(kafka_broker: Broker) -> None:
    story = Story(LogWriter(config_of(kafka_broker), partitions=2))
    story.log.online()
    shards = [shard_in(0, 2), shard_in(1, 2)]
    live = Consumer(kafka_broker.bootstrap, story.log.config.service)
    of_shard = Consumer(kafka_broker.bootstrap, story.log.config.service, shards=shards[1:])
    with live, of_shard:
        assert live.poll(0.1) is None
        for shard in (shards[1], "#UNKNOWN", shards[0], shards[1], "#UNKNOWN"):
            story.event(shard, 2, cut=True)
            for reading in (live, of_shard):
                if reading is live or shard != shards[0]:
                    event = reading.poll(30)
                    assert event is not None
                    assert plain(event) == expected(story)[-1]
        story.given_up(shards[1])
        story.event(shards[0], 3)
        event = live.poll(30)
        assert event is not None
        assert plain(event) == expected(story)[-1]
        assert of_shard.poll(0.5) is None


def test_a_large_event_is_held_in_a_file_and_a_partition_ahead_is_paused(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory: 4 KiB an event, 16 KiB ahead; one event has 200 KiB. Whichever partition comes first, it is ahead."""
    paused: list[set[int]] = []
    pause = Feed.pause
    monkeypatch.setattr(feed, "AT_ONCE", 5)
    monkeypatch.setattr(Feed, "pause", lambda self, chosen: (paused.append(set(chosen)), pause(self, chosen))[1])
    story = Story(LogWriter(config_of(kafka_broker), partitions=2))
    story.log.online()
    for n in range(61):
        if n == 30:
            story.event(shard_in(0, 2), 40, rows=250)
        else:
            story.event(shard_in(1, 2), rows=50)
    story.event("#UNKNOWN")
    with consumer(story, event_bytes=4096, ahead_bytes=16384) as reading:
        events = list(reading)
    assert [plain(event) for event in events] == expected(story)
    assert {0} in paused or {1} in paused
    assert paused[-1] == set()
    large = events[30]
    assert large.size > 50 * 4096
    assert large._fragments.held <= 4096
    assert plain(large) == plain(large)  # as often as one likes
    assert large.rows == 10_000


def test_a_missing_event_is_damage_at_its_offset(kafka_broker: Broker) -> None:
    story = Story(LogWriter(config_of(kafka_broker)))
    story.log.online()
    story.event("a")
    story.seqno, story.tails = 1, {0: 1}  # as if there had been another
    story.event("a")
    service = story.log.config.service
    with consumer(story) as reading:
        assert next(reading).seqno == 0
        with pytest.raises(LogDamaged) as raised:
            next(reading)
        assert {"seqno": 2, "prev_seqno": 1, "at": f"thl.{service}-0@4"}.items() <= raised.value.where.items()
        with pytest.raises(LogDamaged):
            reading.poll(0)


def test_another_history_and_another_log_are_refused(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker)
    story = Story(LogWriter(config))
    story.log.online()
    story.event("a")
    story.event("a")
    with consumer(story) as reading:
        events = list(reading)
    forked = ConsumerPosition.from_json(events[1].position.to_json().replace('"epoch":1', '"epoch":2'))
    with pytest.raises(HistoriesDiffer, match=r"Log epoch numbers do not match: .*seqno=1 .*=1 client epoch number=2"):
        consumer(story, start=forked).open()
    other = ConsumerPosition.from_json(events[1].position.to_json().replace("f" * 32, "e" * 32))
    with pytest.raises(HistoriesDiffer) as refused:
        consumer(story, start=other).open()
    assert (refused.value.where["server_log_id"], refused.value.where["client_log_id"]) == ("f" * 32, "e" * 32)


def test_a_start_that_retention_deleted_is_refused(kafka_broker: Broker) -> None:
    story = Story(LogWriter(config_of(kafka_broker), partitions=3))
    story.log.online()
    shards = [shard_in(partition, 3) for partition in range(3)]
    for n in range(10):
        story.event(shards[n % 2])
    with consumer(story) as reading:
        positions = [event.position for event in reading]
    # Of partition 0 everything before event 6; event 5, of partition 1, is still there.
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    before = TopicPartition(story.log.config.topic, 0, positions[5].offsets[0])
    for deleted in admin.delete_records([before]).values():
        deleted.result(30)
    with consumer(story, start=Start.oldest()) as reading:
        assert [event.seqno for event in reading] == [5, 6, 7, 8, 9]
    with consumer(story, start=positions[4]) as reading:
        assert [event.seqno for event in reading] == [5, 6, 7, 8, 9]
    for start in (Start.seqno(4), positions[3]):
        with pytest.raises(LogDamaged) as refused:
            consumer(story, start=start).open()
        assert {"oldest", "start"} & refused.value.where.keys()  # the first event, or offset, that is left
    with pytest.raises(HistoriesDiffer) as empty:
        consumer(story).open()
    assert empty.value.where == {"log_id": "f" * 32}
    story.event(shards[2])
    unread = TopicPartition(story.log.config.topic, 2, -1)  # all of it
    for deleted in admin.delete_records([unread]).values():
        deleted.result(30)
    with pytest.raises(LogDamaged) as refused:
        consumer(story, start=positions[8]).open()
    assert refused.value.where["partition"] == 2
    with consumer(story, start=Start.seqno(7), shards=shards[1:2]) as reading:
        assert [event.seqno for event in reading] == [7, 9]


def test_the_oldest_event_is_after_deleted_parts_of_what_was_given_up(kafka_broker: Broker) -> None:
    story = Story(LogWriter(config_of(kafka_broker)))
    log = story.log
    log.online()
    log.events([record(0)])
    for fragno in range(3):
        log.events([record(1, fragno=fragno, last_frag=False)])
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    within = TopicPartition(log.config.topic, 0, 6)  # a marker, event 0 and a fragment, each with Kafka's marker
    for deleted in admin.delete_records([within]).values():
        deleted.result(30)
    with pytest.raises(BrokerUnavailable, match="not finished"):
        consumer(story, start=Start.oldest()).open()
    log.online()
    with consumer(story, start=Start.oldest()) as reading:
        assert list(reading) == []
    log.events([record(1)])
    with consumer(story, start=Start.oldest()) as reading:
        assert [event.seqno for event in reading] == [1]


def test_a_consumer_of_shards_that_is_further_in_another_partition_lacks_what_retention_deleted(
    kafka_broker: Broker,
) -> None:
    story = Story(LogWriter(config_of(kafka_broker), partitions=3))
    story.log.online()
    shards = [shard_in(partition, 3) for partition in range(3)]
    for n in (0, 2, 0):
        story.event(shards[n])
    chosen = [shards[0], shards[2]]
    with consumer(story, shards=chosen) as reading:
        (*_, last) = [event.position for event in reading]
    story.event(shards[2])
    story.event(shards[0])
    with consumer(story, start=last, shards=chosen) as reading:
        (*_, end) = [event.position for event in reading]
    ahead = replace(end, offsets={**end.offsets, 2: last.offsets[2]}, tails={**end.tails, 2: last.tails[2]})
    with consumer(story, start=ahead, shards=chosen) as reading:
        assert [event.seqno for event in reading] == [3]
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(story.log.config.topic, 2, -1)]).values():
        deleted.result(30)
    with pytest.raises(EventsDeleted) as refused:
        consumer(story, start=ahead, shards=chosen).open()
    assert refused.value.where["partition"] == 2


def of_python(story: Story) -> list[str | Path]:
    return [sys.executable, "-I", ROOT / "tests" / "consumer_example.py", *where(story)]


def of_java(story: Story) -> list[str | Path]:
    java = java_home() / "bin" / "java"
    modules = subprocess.run([java, "--list-modules"], check=True, capture_output=True, text=True).stdout
    if "jdk.compiler" not in modules:
        pytest.skip("this Java runs programs and compiles none")
    jars = [*maven.fetch(f"kafka-{KAFKA_VERSION}", KAFKA), *maven.pyspark_jars().glob("avro-1.*.jar")]
    return [
        java,
        "-Xmx256m",
        "-cp",
        ":".join(map(str, jars)),
        ROOT / "tests" / "contract" / "Reader.java",
        *where(story),
    ]


@pytest.mark.parametrize("reader", [of_python, of_java])
def test_readers_without_this_package_return_the_same(
    story: Story, reader: Callable[[Story], list[str | Path]]
) -> None:
    told = subprocess.run(reader(story), check=True, capture_output=True, text=True, timeout=300)
    assert [json.loads(line) for line in told.stdout.splitlines()] == as_told(story)


def where(story: Story) -> list[str]:
    config = story.log.config
    return [config.kafka.bootstrap, config.topic, str(ROOT / "schemas" / "load.avsc")]


def as_told(story: Story) -> list[dict[str, Any]]:
    """What readers that are not ours print, a line an event."""
    changes = [(seqno, epoch, changes) for seqno, epoch, _, changes in story.expected]
    return [json.loads(json.dumps({"seqno": s, "epoch": e, "changes": c}, default=bytes.hex)) for s, e, c in changes]


def test_documented_programs_run(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "consuming.md").read_text()
    config = story.log.config
    for name, value in (("localhost:9092", config.kafka.bootstrap), ("shop", config.service)):
        text = text.replace(f'"{name}"', f'"{value}"')
    for name, part in zip(("printing.py", "storing.py", "copying.py"), text.split("```python\n")[1:], strict=True):
        Path(name).write_text(part.partition("```")[0])
    given = [(seqno, change) for seqno, _, _, changes in story.expected for change in changes]
    runpy.run_path("printing.py")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(change.get("rows", [1])) for _, change in given)
    runpy.run_path("printing.py")
    assert capsys.readouterr().out == ""  # it goes on after what it committed
    for _ in range(2):
        runpy.run_path("storing.py")
        stored = sqlite3.connect("changes.db").execute("SELECT seqno, what FROM changes ORDER BY rowid").fetchall()
        assert stored == [(seqno, change.get("table", change.get("sql"))) for seqno, change in given]
    copied = runpy.run_path("copying.py")["copy"]
    begun = next(seqno for seqno, _, _, changes in story.expected if not changes) - 4  # the end of a load has none
    for table, found in (("orders", copied["shop", "orders"].values()), ("notes", copied["shop", "notes"])):
        of_table = [change["rows"] for seqno, change in given if seqno >= begun and change.get("table") == table]
        assert [list(row.values()) for row in found] == [row["after"] for rows in of_table for row in rows]
