"""`thl info`, `thl index` and `thl tail` against a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest

from connector.cli import run as thl
from connector.errors import LogDamaged
from connector.inspect.index import index_entries
from connector.inspect.thl_events import follow
from connector.inspect.thl_events.follow import Following
from connector.log.epochs.control import EpochRecord, LogRecord, PartitionMap
from connector.log.ids import Epoch, LogId, Seqno
from tests.support.clock import PATIENCE
from tests.support.log_topic import LOG_ID, Log, a_fragment
from tests.support.servers.environment import Broker

SERVERS = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562")


def an_epoch(number: int, first: int, server: str) -> EpochRecord:
    return EpochRecord(
        epoch=Epoch(number), first_seqno=Seqno(first), source_id=f"h{number}:1", server_uuid=server, started=0,
        reason="online",
    )  # fmt: skip


@pytest.fixture(scope="module")
def log(kafka_broker: Broker) -> Log:
    """Events 0 to 59, those that 3 divides in partition 1; 20 has nine fragments.

    With 40, which epoch 1 had begun in partition 0, epoch 2 and another server begin.
    """
    log = Log(kafka_broker)
    log.control(
        LogRecord(LogId(LOG_ID), 1_000_000),
        PartitionMap(1, 2),
        an_epoch(1, 0, SERVERS[0]),
        an_epoch(2, 40, SERVERS[1]),
        an_epoch(3, 60, SERVERS[1]),
    )
    for epoch, first, last in ((1, 0, 40), (2, 40, 60)):
        log.transaction(*((p, a_fragment(first, kind="epoch", epoch=epoch)) for p in (0, 1)))
        for seqno in range(first, last):
            count = 9 if seqno == 20 else 1
            fragments = (a_fragment(seqno, number, last=number == count - 1, epoch=epoch) for number in range(count))
            log.transaction(*((int(seqno % 3 == 0), value) for value in fragments))
        if epoch == 1:
            log.transaction((0, a_fragment(40, last=False)))
    return log


def told(log: Log, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert thl([arguments[0], *log.arguments, *arguments[1:]]) == 0
    return capsys.readouterr().out


def test_info_describes_the_log_as_json(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(log, capsys, "info", "--format", "json"))
    assert (found["log"], found["logId"], found["created"]) == (log.topic, "c" * 32, "1970-01-01 00:00:01.0")
    assert (found["minimumStoredSeqNo"], found["maximumStoredSeqNo"], found["events"]) == (0, 59, 60)
    assert found["oldest"] == {
        "seqno": 0, "eventId": "b.1:0000000000000000;0", "gtid": "u:0", "time": "1970-01-01 00:00:00.0",
    }  # fmt: skip
    assert (found["newest"]["seqno"], found["newest"]["gtid"]) == (59, "u:59")
    assert [(one["minimumStoredSeqNo"], one["maximumStoredSeqNo"]) for one in found["partitions"]] == [(1, 59), (0, 57)]
    assert [(one["epoch"], one["firstSeqno"], one["fork"]) for one in found["epochs"]] == [
        (1, 0, False), (2, 40, True), (3, 60, False),
    ]  # fmt: skip
    assert found["retentionHours"] == 168.0  # Kafka's own default
    # 73 messages of about 200 bytes, and as many offsets for the ends of Kafka's transactions.
    assert len(a_fragment(10)) * 60 < found["aboutBytes"] < len(a_fragment(10)) * 150


def test_info_describes_the_log_in_lines(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(log, capsys, "info").splitlines()
    assert {
        f"log = {log.topic} ({'c' * 32}, since 1970-01-01 00:00:01.0)",
        "min seq# = 0",
        "max seq# = 59",
        "events = 60",
        "oldest event = b.1:0000000000000000;0 (1970-01-01 00:00:00.0)",
        "retention = 168 hours",
        f"epoch 2 = from seqno 40, online 1970-01-01 00:00:00.0, source h2:1, server {SERVERS[1]}, "
        "another server than before",
    } <= set(lines)
    assert any(line.startswith("partition 1 = offsets 0 to ") and "seqnos 0 to 57" in line for line in lines)


def test_index_shows_a_segment_per_epoch(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    found = [json.loads(line) for line in told(log, capsys, "index", "--format", "json").splitlines()]
    assert [(one["partition"], one["firstSeqno"], one["lastSeqno"], one["epoch"]) for one in found] == [
        (0, 1, 38, 1), (0, 40, 59, 2), (1, 0, 39, 1), (1, 42, 57, 2),
    ]  # fmt: skip
    lines = told(log, capsys, "index").splitlines()
    assert lines[0] == f"LogIndexEntry {log.topic}-0@0(1:38) epoch 1 from 1970-01-01 00:00:00.000001"
    assert len(lines) == 4


def test_segments_hold_whole_events_and_leave_none_out(log: Log) -> None:
    found = [one for one in index_entries(log.config, 4) if one.partition == 0]
    assert len(found) > 10
    ours = [seqno for seqno in range(60) if seqno % 3]
    assert [seqno for one in found for seqno in ours if one.first <= seqno <= one.last] == ours
    assert all(before.end == after.start for before, after in pairwise(found))


@pytest.mark.parametrize("command", ["info", "index", "tail"])
def test_a_missing_log_is_refused(kafka_broker: Broker, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert thl([command, "--set", "service=nothing", "--set", f"kafka.bootstrap={kafka_broker.bootstrap}"]) == 2
    assert "service=nothing" in capsys.readouterr().err


def followed(log: Log, last: int, until: int) -> Iterator[tuple[int, int]]:
    for one in Following(log.config, lambda: False).events(last, until=until):
        if one is not None:
            yield one.fragment["seqno"], one.fragment["fragno"]


def test_tail_follows_partitions_in_the_order_of_seqnos(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "AHEAD_BYTES", 500)  # so that both partitions are held back again and again
    expected = [(seqno, number) for seqno in range(60) for number in range(9 if seqno == 20 else 1)]
    assert list(followed(log, 100, 59)) == expected
    assert list(followed(log, 41, 20)) == expected[19:29]
    assert list(followed(log, 1, 58)) == []


def test_a_missing_event_ends_the_tail(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.transaction((0, a_fragment(0)), (0, a_fragment(2)), (1, a_fragment(3)))
    found = followed(log, 9, 3)
    assert next(found) == (0, 0)
    with pytest.raises(LogDamaged) as refused:
        next(found)
    assert refused.value.where == {"rule": "event_missing", "seqno": 1}


def test_a_repeated_event_ends_the_tail(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.transaction((0, a_fragment(0)), (1, a_fragment(1)), (0, a_fragment(1)))
    found = followed(log, 9, 3)
    assert [next(found), next(found)] == [(0, 0), (1, 0)]
    with pytest.raises(LogDamaged) as refused:
        next(found)
    assert refused.value.where["seqno"] == 1
    assert refused.value.where["at"] in (f"{log.topic}-0@1", f"{log.topic}-1@0")  # the one that comes second


def test_tail_shows_given_up_attempts_on_request_before_their_event(kafka_broker: Broker) -> None:
    log = Log(kafka_broker)
    log.control(LogRecord(LogId(LOG_ID), 0), PartitionMap(1, 2), an_epoch(1, 0, SERVERS[0]), an_epoch(2, 1, SERVERS[0]))
    log.transaction(*((p, a_fragment(0, kind="epoch")) for p in (0, 1)))
    log.transaction((1, a_fragment(0)), (0, a_fragment(1, last=False)), (0, a_fragment(1, 1, last=False)))
    log.transaction(*((p, a_fragment(1, kind="epoch", epoch=2)) for p in (0, 1)))
    log.transaction((0, a_fragment(1, epoch=2)), (1, a_fragment(2, epoch=2)))
    found = [
        (one.fragment["seqno"], one.fragment["epoch"], one.fragment["fragno"], one.voided, one.partition, one.offset)
        for one in Following(log.config, lambda: False).events(9, until=2, voided=True)
        if one is not None
    ]
    assert found == [
        (0, 1, 0, False, 1, 2), (1, 1, 0, True, 0, 2), (1, 1, 1, True, 0, 3), (1, 2, 0, False, 0, 7),
        (2, 2, 0, False, 1, 6),
    ]  # fmt: skip
    assert list(followed(log, 9, 2)) == [(0, 0), (1, 0), (2, 0)]


def test_an_event_that_becomes_visible_late_is_not_shown_as_new(kafka_broker: Broker) -> None:
    """Partition 1 shows event 2 already, partition 0 shows 1 only after we have begun."""
    log = Log(kafka_broker)
    log.transaction((0, a_fragment(0)), (1, a_fragment(2)))
    found = Following(log.config, lambda: False).events(0, until=3)
    assert next(found) is None
    log.transaction((0, a_fragment(1)), (0, a_fragment(3)))
    assert [one.fragment["seqno"] for one in found if one is not None] == [3]


def test_tail_prints_new_events_until_a_signal(kafka_broker: Broker) -> None:
    """An event waits for the one before it, which comes later in another partition; what is given up is left out."""
    log = Log(kafka_broker)
    log.transaction((0, a_fragment(0)), (0, a_fragment(1)))
    command = [sys.executable, "-m", "tests.support.thl", "tail", *log.arguments, "-headers", "-last", "1"]
    with ExitStack() as stack:
        ours = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            for _ in range(2)
        ]

        def lines(count: int) -> list[list[str]]:
            return [[process.stdout.readline()[:8] for _ in range(count)] for process in ours if process.stdout]

        assert lines(1) == [["1\t1\t0\ttr"]] * 2
        log.transaction((1, a_fragment(3)))
        log.transaction((0, a_fragment(2)), abort=True)
        log.transaction((0, a_fragment(2)), (0, a_fragment(4, last=False)))
        log.transaction((0, a_fragment(4, kind="epoch", epoch=2)), (1, a_fragment(4, kind="epoch", epoch=2)))
        log.transaction((0, a_fragment(4, epoch=2)), (1, a_fragment(5, epoch=2, last=False)))
        assert lines(3) == [["2\t1\t0\ttr", "3\t1\t0\ttr", "4\t2\t0\ttr"]] * 2
        for process, stop in zip(ours, (signal.SIGTERM, signal.SIGINT), strict=True):
            process.send_signal(stop)
            assert process.communicate(timeout=PATIENCE) == ("", "")
            assert process.returncode == 0
