"""A partition that lost its end: no reader takes that for the end of the log.

The fault is what an unclean election leaves: the producer's position names an event that its partition does not have.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connector.applier.rewind import seqno_of
from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.model import Config, Kafka
from connector.consume import Consumer, LogDamaged, Start
from connector.inspect.events.follow import Following
from connector.kafka import tails
from connector.kafka.handshake import handshake
from connector.kafka.log_reader import LogReader
from connector.kafka.trapped import trapped_events
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.spark.source.ends import Ends
from connector.status.collect import collect
from connector.status.report import Limits
from tests.support.events import shard_in
from tests.support.fragments import change, record
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.servers

LOST = "A partition lost its end"
SHARD = shard_in(1, 2)


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
def test_a_consumer_does_not_open(log: LogWriter, start: Start, shards: list[str] | None) -> None:
    with pytest.raises(LogDamaged, match=LOST) as told:
        consumer(log, start=start, until_end=True, shards=shards).open()
    assert told.value.where["at"].startswith(f"{log.config.topic}-1@")
    assert (told.value.where["partition_seqno"], told.value.where["position_seqno"]) == (-1, 1)


def test_a_gtid_that_is_lost_is_not_called_unknown(log: LogWriter) -> None:
    with pytest.raises(LogDamaged, match=LOST):
        consumer(log, start=Start.gtid(record(1)["gtid"])).open()


@pytest.mark.parametrize("shards", [None, [SHARD]])
def test_a_consumer_until_the_end_ends_with_the_error(kafka_broker: Broker, shards: list[str] | None) -> None:
    log = a_log(kafka_broker, whole=True)
    with consumer(log, until_end=True, shards=shards) as reading:
        lose(log)
        given = []
        with pytest.raises(LogDamaged, match=LOST):
            given.extend(one.seqno for one in reading)
        assert not reading.at_end
    assert given == ([0] if shards is None else [])


def test_a_consumer_that_waits_is_told(kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "EVERY", 0.0)
    log = a_log(kafka_broker, whole=True)
    with consumer(log) as reading:
        first = next(reading)
        lose(log)
        with pytest.raises(LogDamaged, match=LOST):
            next(reading)
        assert first.seqno == 0


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
def test_a_list_stops_where_the_event_is_missing(
    log: LogWriter, capsys: pytest.CaptureFixture[str], chosen: list[str], found: list[int]
) -> None:
    assert thl(["list", *arguments(log), "--format", "json", *chosen]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert seqnos(shown.out) == found
    assert LOST in shown.err


@pytest.mark.parametrize("chosen", [["-seqno", "0"], ["-high", "0"], ["-seqno", "2"]])
def test_what_is_there_can_be_listed(log: LogWriter, capsys: pytest.CaptureFixture[str], chosen: list[str]) -> None:
    assert thl(["list", *arguments(log), "--format", "json", *chosen]) == 0
    assert seqnos(capsys.readouterr().out) == [int(chosen[-1])]


def test_the_last_event_of_all_is_missed_too(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    log = a_log(kafka_broker, whole=True)
    log.events([event(1, 0)], 0, lost=True)
    for command in (["list"], ["list", "-last"], ["info"], ["index"], ["tail"]):
        assert thl([command[0], *arguments(log), *command[1:]]) == LogDamaged.exit_code, command
        assert LOST in capsys.readouterr().err


def test_an_event_between_two_others_is_missed_by_a_list(
    kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    log = a_log(kafka_broker)
    log.events([event(3, 1, shard=SHARD)], 1)
    assert thl(["list", *arguments(log), "--format", "json"]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert seqnos(shown.out) == [0]
    assert "An event is missing" in shown.err
    assert "seqno=1" in shown.err
    assert thl(["list", *arguments(log), "--format", "json", "-low", "2"]) == 0
    assert seqnos(capsys.readouterr().out) == [2, 3]


@pytest.mark.parametrize("command", [["info"], ["info", "--format", "json"], ["index"]])
def test_info_and_index_say_what_there_is_and_that_it_is_not_all(
    log: LogWriter, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert thl([command[0], *arguments(log), *command[1:]]) == LogDamaged.exit_code
    shown = capsys.readouterr()
    assert log.config.topic in shown.out
    assert LOST in shown.err


def test_a_tail_is_told_at_its_start_and_while_it_waits(
    log: LogWriter, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LogDamaged, match=LOST):
        next(Following(log.config, lambda: False).events(0))
    monkeypatch.setattr(tails, "EVERY", 0.0)
    other = a_log(kafka_broker, whole=True)
    following = Following(other.config, lambda: False).events(1)
    assert next(one for one in following if one is not None).fragment["seqno"] == 0
    lose(other)
    with pytest.raises(LogDamaged, match=LOST):
        while True:
            assert next(following) is None


def test_a_stream_does_not_end_before_it(log: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.spark.source.ends.PATIENCE", 0.1)
    with Ends(log.config, SystemClock()) as ends, pytest.raises(LogDamaged, match="lost its tail"):
        ends.latest()


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
def test_whoever_looks_at_the_log_is_told(log: LogWriter, look: Callable[[LogWriter], object]) -> None:
    with pytest.raises(LogDamaged, match=LOST):
        look(log)


def test_status_names_it(log: LogWriter, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'target.db'}"
    config = log.config.model_copy(update={"target": log.config.target.model_copy(update={"url": url})})
    assert any(LOST in problem for problem in collect(Config.model_validate(config.model_dump()), Limits()).problems)
