"""A partition that lost its end: every reader reports it as damage, not as the end of the log.

The fault is what an unclean election leaves: the producer's position names an event that its partition does not have.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connector.applier.rewind import seqno_of
from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.consume import Consumer, LogDamaged, Start
from connector.inspect.thl_events.follow import Following
from connector.kafka import tails
from connector.kafka.handshake import handshake
from connector.kafka.log_reader import LogReader
from connector.kafka.trapped import trapped_events
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.log.writing.tail import TailFound
from connector.spark.source.ends import Ends
from connector.status.collect import collect
from connector.status.report import LagLimits
from tests.support.events import shard_in
from tests.support.fragments import change, record
from tests.support.log_writer import LogWriter
from tests.support.problems import texts
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.servers

SHARD = shard_in(1, 2)
POSITION = "position_seqno=1"  # of the error that a partition lost its end


def a_log(broker: Broker, *, whole: bool = False) -> LogWriter:
    """Event 0 in partition 0, 1 in partition 1, which lost it, 2 in partition 0."""
    log = LogWriter(Config(service=f"lost-{uuid.uuid4().hex[:8]}", kafka=Kafka(bootstrap=broker.bootstrap)),
                    partitions=2)  # fmt: skip
    log.online()
    log.events([event(0, -1)], 0)
    if not whole:
        lose(log)
    return log


def event(seqno: int, prev: int, **fields: Any) -> dict[str, Any]:
    fields = {"shard": "shop", **fields}
    return record(seqno, [change("insert", [(None, (seqno, "x"))])], prev_seqno=prev, **fields)


def lose(log: LogWriter) -> None:
    log.events([event(1, -1, shard=SHARD)], 1, lost=True)
    log.events([event(2, 0)], 0)


@pytest.fixture(scope="module")
def log(kafka_broker: Broker) -> LogWriter:
    return a_log(kafka_broker)


def consumer(log: LogWriter, **options: Any) -> Consumer:
    return Consumer(log.config.kafka.bootstrap, log.config.service, **options)


def arguments(log: LogWriter) -> list[str]:
    return ["--set", f"service={log.config.service}", "--set", f"kafka.bootstrap={log.config.kafka.bootstrap}"]


@pytest.mark.parametrize("shards", [None, [SHARD]])
@pytest.mark.parametrize("start", [Start.beginning(), Start.end(), Start.seqno(2)])
def test_a_consumer_does_not_open_after_a_lost_end(log: LogWriter, start: Start, shards: list[str] | None) -> None:
    with lost_end(log) as refused:
        consumer(log, start=start, until_end=True, shards=shards).open()
    assert (refused.value.where["partition_seqno"], refused.value.where["position_seqno"]) == (-1, 1)


def test_a_start_at_a_lost_gtid_is_damage(log: LogWriter) -> None:
    with lost_end(log):
        consumer(log, start=Start.gtid(record(1)["gtid"])).open()


@pytest.mark.parametrize("shards", [None, [SHARD]])
def test_a_consumer_until_the_end_ends_with_damage(kafka_broker: Broker, shards: list[str] | None) -> None:
    log = a_log(kafka_broker, whole=True)
    with consumer(log, until_end=True, shards=shards) as reading:
        lose(log)
        given = []
        with lost_end(log):
            given.extend(one.seqno for one in reading)
        assert not reading.at_end
    assert given == ([0] if shards is None else [])


def test_a_waiting_consumer_notices_the_lost_end(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "EVERY", 0.0)
    log = a_log(kafka_broker, whole=True)
    with consumer(log) as reading:
        first = next(reading)
        lose(log)
        with lost_end(log):
            next(reading)
        assert first.seqno == 0


@contextmanager
def lost_end(log: LogWriter) -> Iterator[pytest.ExceptionInfo[LogDamaged]]:
    """The error that partition 1 lost its end: the position names a later event than the partition has."""
    with pytest.raises(LogDamaged) as refused:
        yield refused
    where = refused.value.where
    assert str(where["at"]).startswith(f"{log.config.topic}-1@")
    assert where["partition_seqno"] < where["position_seqno"]


def seqnos(out: str) -> list[int]:
    return [json.loads(line)["seqno"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ([], [0]),
        (["-low", "1"], []),
        (["-seqno", "1"], []),
        (["-first", "2"], [0]),
        (["-last", "2"], []),
        (["-low", "2"], [2]),
        (["-from", "2023-01-01T00:00:00"], [0]),
    ],
)
def test_a_list_stops_before_the_missing_event(
    log: LogWriter, capsys: pytest.CaptureFixture[str], chosen: list[str], found: list[int]
) -> None:
    assert thl(["list", *arguments(log), "--format", "json", *chosen]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert seqnos(shown.out) == found
    assert POSITION in shown.err


@pytest.mark.parametrize("chosen", [["-seqno", "0"], ["-high", "0"], ["-seqno", "2"]])
def test_events_that_are_left_can_be_listed(
    log: LogWriter, capsys: pytest.CaptureFixture[str], chosen: list[str]
) -> None:
    assert thl(["list", *arguments(log), "--format", "json", *chosen]) == 0
    assert seqnos(capsys.readouterr().out) == [int(chosen[-1])]


def test_the_loss_of_the_logs_last_event_is_noticed(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_log(kafka_broker, whole=True)
    log.events([event(1, 0)], 0, lost=True)
    for command in (["list"], ["list", "-last"], ["info"], ["index"], ["tail"]):
        assert thl([command[0], *arguments(log), *command[1:]]) == LogDamaged.exit_code, command
        assert POSITION in capsys.readouterr().err


def test_a_list_stops_before_a_hole_between_two_events(
    kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_log(kafka_broker)
    log.events([event(3, 1, shard=SHARD)], 1)
    assert thl(["list", *arguments(log), "--format", "json"]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert seqnos(shown.out) == [0]
    assert "seqno=1" in shown.err
    assert POSITION not in shown.err  # a hole, not a lost end
    assert thl(["list", *arguments(log), "--format", "json", "-low", "2"]) == 0
    assert seqnos(capsys.readouterr().out) == [2, 3]


@pytest.mark.parametrize("command", [["info"], ["info", "--format", "json"], ["index"]])
def test_info_and_index_show_the_log_and_the_damage(
    log: LogWriter, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert thl([command[0], *arguments(log), *command[1:]]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert log.config.topic in shown.out
    assert POSITION in shown.err


def test_thl_tail_notices_the_lost_end_at_its_start_and_while_it_waits(
    log: LogWriter, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lost_end(log):
        next(Following(log.config, lambda: False).events(0))
    monkeypatch.setattr(tails, "EVERY", 0.0)
    other = a_log(kafka_broker, whole=True)
    following = Following(other.config, lambda: False).events(1)
    assert next(one for one in following if one is not None).fragment["seqno"] == 0
    lose(other)
    with lost_end(other):
        while True:
            assert next(following) is None


def test_a_spark_stream_does_not_end_before_the_lost_event(log: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.spark.source.ends.PATIENCE", 0.1)
    with Ends(log.config, SystemClock()) as ends, pytest.raises(LogDamaged) as lost:
        ends.latest()
    assert set(lost.value.where) == {"partition", "expected", "found"}
    assert lost.value.where["found"] != lost.value.where["expected"]


def _of_target(log: LogWriter, seqno: int) -> TargetPosition:
    return TargetPosition(service=log.config.service, log_id=LogId(log.log_id), seqno=Seqno(seqno), epoch=Epoch(1))


def _trapped(log: LogWriter) -> object:
    with LogReader(log.config) as reader:
        control, position = reader.control(), reader.position()
    assert position is not None
    return trapped_events(log.config, control, position, "")


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda log: handshake(log.config, _of_target(log, 0)), id="apply, undo, rewind"),
        pytest.param(lambda log: seqno_of(log.config, SourcePosition("binlog.000001", 1001)), id="apply --from-event"),
        pytest.param(_trapped, id="trapped"),
    ],
)
def test_every_reader_of_the_log_notices_the_lost_end(log: LogWriter, look: Callable[[LogWriter], object]) -> None:
    with lost_end(log):
        look(log)


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda log: handshake(log.config, _of_target(log, 0)), id="handshake"),
        pytest.param(lambda log: tails.check_tails(log.config), id="tails"),
    ],
)
def test_an_end_that_the_broker_shows_a_moment_later_is_not_lost(
    kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch, look: Callable[[LogWriter], object]
) -> None:
    log = a_log(kafka_broker, whole=True)
    log.events([event(1, -1, shard=SHARD)], 1)
    read = LogReader.tail

    def late(self: LogReader, partition: int, **bounds: Any) -> TailFound:
        found = read(self, partition, **bounds)
        return found if partition == 0 else TailFound(start=found.start, end=found.start)

    monkeypatch.setattr(LogReader, "tail", late)
    monkeypatch.setattr(
        SystemClock, "sleep", lambda _, seconds: seconds and monkeypatch.setattr(LogReader, "tail", read)
    )
    look(log)
    assert LogReader.tail is read


def test_status_reports_the_lost_end(log: LogWriter, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'target.db'}"
    config = log.config.model_copy(update={"target": log.config.target.model_copy(update={"url": url})})
    problems = collect(Config.model_validate(config.model_dump()), LagLimits()).problems
    assert any("lost its end" in problem for problem in texts(problems))  # a problem is a message without fields
