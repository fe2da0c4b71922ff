"""`thl apply` with a real Kafka, a real Spark and SQLite: the target equals the log after any failure."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from pydantic import SecretStr

from connector import cli, failpoints
from connector.applier.applier import Applier
from connector.applier.skips import ExcludedTables, Skips
from connector.applier.stop_condition import ToTime
from connector.applier.undo import undo
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import (
    BrokerUnavailable,
    ConfigError,
    Fenced,
    HistoriesDiffer,
    LogDamaged,
    TargetDiffers,
    TargetUnavailable,
    Unsupported,
)
from connector.kafka import tails
from connector.kafka.ends import LogEnds
from connector.kafka.handshake import warn_of_missing_log
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition, TargetPosition
from connector.logs import fields_of
from connector.spark.session import SparkRun
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.stream import LogStream
from connector.status.collect import applier_status, collect
from connector.status.report import End, LagLimits, ProducerStatus, ServiceState, problems_of
from connector.targets.open import open_signal_table, open_target, read_position
from connector.targets.signal_table import Request
from tests.contract.target_again import random_records
from tests.support.clock import PATIENCE
from tests.support.fragments import change, in_parts, record, statement
from tests.support.log_writer import MESSAGE_BYTES, LogWriter
from tests.support.servers.environment import Broker
from tests.support.spark import session

CREATE = "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v VARCHAR(100))"
REFUSED = BatchSizer.refused
TEXT = {"name": "v", "type": "varchar(100)", "unsigned": False, "charset": "utf8mb4", "labels": [], "nullable": True}
COMMITTED = 1_700_000_000_000_000  # as `record` has it, of event 0
ID = {"name": "id", "type": "int", "unsigned": False, "charset": "", "labels": [], "nullable": False}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    # What fits into a batch is small, so that a test needs little to have one that does not.
    fits = {"spark.driver.maxResultSize": "16m"}
    with session(tmp_path_factory.mktemp("spark"), spark=fits) as started:
        yield started


@pytest.fixture
def config(kafka_broker: Broker, tmp_path: Path) -> Config:
    return Config(
        service=f"s{uuid.uuid4().hex[:10]}",
        kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5),
        apply=Apply(checkpoint_dir=tmp_path / "spark", batch_messages=50),
        target=Target(url=SecretStr(f"sqlite:///{tmp_path / 'target.db'}"), audit=True, retries=5),
    )


def create(seqno: int) -> dict[str, Any]:
    return record(seqno, [statement(CREATE)], kind="ddl", shard="#UNKNOWN", last_barrier=seqno - 1 if seqno else -1)


def rows(*ids: int, value: str = "x") -> dict[str, Any]:
    return change("insert", [(None, [n, value]) for n in ids]) | {"columns": [ID, TEXT]}


def inserts(first: int, count: int) -> list[dict[str, Any]]:
    return [record(n, [rows(n)], last_barrier=0) for n in range(first, first + count)]


def apply(config: Config, spark: SparkRun, until: int) -> TargetPosition:
    position = Applier(config, spark, SystemClock(), Event(), until=Seqno(until)).run()
    assert position is not None
    return position


def found(config: Config) -> list[int]:
    path = config.target.url.get_secret_value().removeprefix("sqlite:///")
    with sqlite3.connect(path) as db:
        table = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 'orders'").fetchone()[0]
        return [row[0] for row in db.execute(f'SELECT id FROM "{table}" ORDER BY id')]


def applied(config: Config) -> list[int]:
    path = config.target.url.get_secret_value().removeprefix("sqlite:///")
    with sqlite3.connect(path) as db:
        return [row[0] for row in db.execute("SELECT seqno FROM thl_applied ORDER BY seqno")]


def test_each_event_is_applied_once(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 120)])
    log.events(inserts(121, 5), abort=True)
    log.events(inserts(121, 30))
    position = apply(config, spark, 150)
    assert found(config) == list(range(1, 151))
    assert applied(config) == list(range(151))
    assert (position.seqno, position.epoch, position.consistent) == (150, 1, True)


def test_applier_resumes_at_the_targets_position(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 100)])
    apply(config, spark, 40)
    # What Spark read of events after 40 is forgotten; a checkpoint that lies there is not looked at.
    for folder in (spark.folder, spark.folder.parent):
        for name in ("offsets", "commits", "sources/0"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / "0").write_text("v1\n{}\n")
        (folder / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    log.events(inserts(101, 50))
    apply(config, spark, 150)
    assert found(config) == list(range(1, 151))
    assert applied(config) == list(range(151))


def test_event_of_many_fragments_is_applied_and_a_given_up_one_is_not(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0)])

    def fragments(count: int, *, whole: bool) -> list[dict[str, Any]]:
        return [
            record(1, [rows(n)], fragno=n, rows=n + 1, last_frag=whole and n == count - 1, last_barrier=0)
            for n in range(count)
        ]

    log.events(fragments(130, whole=False))
    log.online()
    log.events(fragments(170, whole=True))
    log.events([record(2, [rows(1000)], last_barrier=0)])
    position = apply(config, spark, 2)
    assert found(config) == [*range(170), 1000]
    assert position.epoch == 2


def test_log_at_rest_longer_than_its_retention_is_applied_on(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([create(0), *inserts(1, 10)])
    log.events([record(11, [rows(11)], prev_seqno=-1, last_barrier=0)], 1)
    apply(config, spark, 11)
    # Events, a marker of the producer, and Kafka's of two transactions.
    wait_for(lambda: delete_all(config) == {0: 11 + 1 + 2, 1: 1 + 1 + 2})
    reads = Event()

    def stream(*args: Any, **options: Any) -> LogStream:
        reads.set()
        return LogStream(*args, **options)

    monkeypatch.setattr("connector.applier.applier.LogStream", stream)
    results: list[TargetPosition | None] = []
    thread = Thread(target=lambda: results.append(Applier(config, spark, SystemClock(), stop, until=Seqno(13)).run()))
    stop = Event()
    thread.start()
    try:
        assert reads.wait(PATIENCE)  # it has shaken hands
        log.events([record(12, [rows(12)], prev_seqno=10, last_barrier=0)])
        log.events([record(13, [rows(13)], prev_seqno=11, last_barrier=0)], 1)
        thread.join(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [one and one.seqno for one in results] == [13]
    assert found(config) == list(range(1, 14))

    # While no applier runs: what comes next names the last event before it.
    wait_for(lambda: delete_all(config)[0] == 14 + 2)
    log.events([record(14, [rows(14)], prev_seqno=12, last_barrier=0)])
    apply(config, spark, 14)
    assert found(config) == list(range(1, 15))

    log.events([record(15, [rows(15)], prev_seqno=14, last_barrier=0)])
    wait_for(lambda: delete_all(config)[0] == 14 + 6)
    status = collect(config, LagLimits(), ends=frozenset({End.TARGET}))
    lacks = "Kafka no longer has event 15, which the target needs next; it has none any more"
    assert (status.applier.state, lacks in [one.text for one in status.problems]) == (ServiceState.BEHIND, True)
    log.events([record(16, [rows(16)], prev_seqno=15, last_barrier=0)])
    with pytest.raises(LogDamaged) as deleted:
        apply(config, spark, 16)
    assert (deleted.value.where["seqno"], deleted.value.where["start"]) == (15, 14 + 6)


def delete_all(config: Config) -> dict[int, int]:
    """As retention does: of two partitions, everything that is there. Returns where each begins then."""
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    deleted = admin.delete_records([TopicPartition(config.topic, number, OFFSET_END) for number in range(2)])
    return {place.partition: done.result().low_watermark for place, done in deleted.items()}


def test_events_of_partitions_are_applied_in_one_order(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config, partitions=3)
    log.online()
    log.events([create(0)])
    tails = {0: 0, 1: -1, 2: -1}
    for seqno in range(1, 91):
        partition = seqno * seqno % 3
        log.events([record(seqno, [rows(seqno)], prev_seqno=tails[partition], last_barrier=0)], partition)
        tails[partition] = seqno
    apply(config, spark, 90)
    assert found(config) == list(range(1, 91))
    assert applied(config) == list(range(91))


def test_rows_of_many_megabytes_are_applied(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    wide = CREATE.replace("VARCHAR(100)", "LONGTEXT")
    log.events([record(0, [statement(wide)], kind="ddl", shard="#UNKNOWN")])
    for n in range(1, 4):
        big = rows(n, value="é" * (12 << 20)) | {"columns": [ID, TEXT | {"type": "longtext"}]}
        log.events([record(n, [big], last_barrier=0)])
    *some, last = in_parts(rows(4, value="é" * (5 << 20)) | {"columns": [ID, TEXT | {"type": "longtext"}]}, 30)
    parts = [record(4, [part], last_frag=False, fragno=n, last_barrier=0) for n, part in enumerate(some)]
    log.events(parts)
    log.online()  # given up in the middle of a row
    log.events([*parts, record(4, [last], fragno=29, rows=1, last_barrier=0)])
    apply(config, spark, 4)
    assert found(config) == [1, 2, 3, 4]


def test_a_batch_that_does_not_fit_is_read_in_smaller_ones(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[int] = []

    def told(pace: BatchSizer) -> bool:
        refused.append(pace.messages)
        return REFUSED(pace)

    monkeypatch.setattr(BatchSizer, "refused", told)
    monkeypatch.setattr(spark, "slots", 0)  # as on a cluster, whose tasks' results go through the driver's heap
    log = LogWriter(config)
    log.online()
    log.events([create(0), *(record(n, [rows(n, value="x" * 200_000)], last_barrier=0) for n in range(1, 201))])
    many = config.model_copy(update={"apply": config.apply.model_copy(update={"batch_messages": 500})})
    apply(many, spark, 200)
    assert refused == [500]
    assert found(config) == list(range(1, 201))


def test_damaged_message_ends_the_applier_with_its_position(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 3)])
    apply(config, spark, 3)
    log.raw(b"not a fragment")
    with pytest.raises(LogDamaged) as damaged:
        apply(config, spark, 10)
    assert re.fullmatch(rf"{config.topic}-0@\d+", str(damaged.value.where["at"]))
    assert found(config) == [1, 2, 3]


def test_applier_that_waits_for_lost_events_ends_with_damage(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "EVERY", 0.0)
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([create(0), *inserts(1, 20)])
    stop = Event()
    ended: list[Exception] = []
    applier = Applier(config, spark, SystemClock(), stop)

    def run() -> None:
        try:
            applier.run()
        except LogDamaged as error:
            ended.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        wait_for(lambda: applied_or_none(config) == list(range(21)))
        log.events([record(21, [rows(21)], prev_seqno=-1, last_barrier=0)], 1, lost=True)
        log.events([record(22, [rows(22)], prev_seqno=20, last_barrier=0)])
        thread.join(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [type(error) for error in ended] == [LogDamaged]
    assert [error.where["partition_seqno"] < error.where["position_seqno"] for error in ended] == [True]
    assert applied(config) == list(range(21))


def test_another_log_is_refused(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 3)])
    apply(config, spark, 3)
    other = config.model_copy(update={"kafka": config.kafka.model_copy(update={"topic_prefix": "other"})})
    again = LogWriter(other, log_id="e" * 32)
    again.online()
    again.events([create(0), *inserts(1, 9)])
    with pytest.raises(HistoriesDiffer):
        apply(other, spark, 9)
    assert found(config) == [1, 2, 3]


def test_missing_log_is_waited_for_and_given_up(config: Config, spark: SparkRun) -> None:
    few = config.model_copy(
        update={
            "kafka": config.kafka.model_copy(update={"retries": 1}),
            "target": config.target.model_copy(update={"retries": 1}),
        }
    )
    with pytest.raises(BrokerUnavailable) as absent:
        apply(few, spark, 0)
    assert absent.value.where["topic"] == few.topic
    assert "thl produce" in absent.value.hint
    assert read_position(few.target.url.get_secret_value(), few.service) is None  # a claim would count as a restart
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 3)])
    assert apply(few, spark, 3).seqno == 3
    token = read_position(few.target.url.get_secret_value(), few.service)
    assert token is not None
    assert token.token == 1


def test_missing_log_of_a_target_that_has_followed_it_is_refused_at_once(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 3)])
    apply(config, spark, 3)
    brokers = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    for deleted in brokers.delete_topics([config.topic, config.control_topic, config.position_topic]).values():
        deleted.result()
    with pytest.raises(HistoriesDiffer, match="does not exist: the brokers have no such topics"):
        apply(config, spark, 4)


def test_wait_for_a_missing_log_is_logged_at_once(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_missing_log(config)
    (record,) = caplog.records
    assert record.getMessage() == "waiting for a log that does not exist yet: thl produce begins it"
    assert fields_of(record)["topics"] == [config.control_topic, config.topic]
    caplog.clear()
    LogWriter(config).online()
    warn_of_missing_log(config)
    assert not caplog.records


def test_a_topic_whose_messages_may_be_too_large_for_spark_is_read_in_batches(
    config: Config, spark: SparkRun, caplog: pytest.LogCaptureFixture
) -> None:
    log = LogWriter(config)  # of 128 MiB
    log.online()
    log.events([create(0), *inserts(1, 9)])
    apply(config, spark, 9)
    (said,) = (record for record in caplog.records if "raise apply.heap" in record.getMessage())
    assert fields_of(said)["max_message_bytes"] == MESSAGE_BYTES


def test_the_older_of_two_appliers_ends(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 10)])
    ended: list[BaseException] = []

    def older() -> None:
        try:
            Applier(config, spark, SystemClock(), stop).run()
        except Fenced as fenced:
            ended.append(fenced)

    stop = Event()
    thread = Thread(target=older)
    thread.start()
    try:
        wait_for(lambda: applied_or_none(config) == list(range(11)))
        newer = Thread(target=apply, args=(config, spark, 30))
        newer.start()
        for n in itertools.count(11):
            log.events(inserts(n, 1))
            newer.join(0.5)
            if n >= 30 and not newer.is_alive():
                break
        thread.join(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [type(one) for one in ended] == [Fenced]
    assert applied(config) == list(range(31))


def test_an_applier_whose_claim_failed_after_its_commit_claims_again(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 3)])
    lost = ["target.after_claim", "apply.after_claim"]  # of the second claim, and before that of the first

    def point(name: str) -> None:
        if lost[-1:] == [name]:
            raise TargetUnavailable(lost.pop())

    monkeypatch.setattr(failpoints, "point", point)
    assert apply(config, spark, 3).seqno == 3
    assert not lost


def test_killed_broker_is_survived(config: Config, spark: SparkRun, kafka_broker: Broker) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 20)])
    stop = Event()
    results: list[TargetPosition | None] = []
    applier = Applier(config, spark, SystemClock(), stop, until=Seqno(40))
    thread = Thread(target=lambda: results.append(applier.run()))
    thread.start()
    try:
        wait_for(lambda: applied_or_none(config) == list(range(21)))
        kafka_broker.kill()
        kafka_broker.start()
        log.events(inserts(21, 20))
        thread.join(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert [one and one.seqno for one in results] == [40]
    assert applied(config) == list(range(41))


def test_time_bound_ends_before_later_events_or_at_the_logs_end(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 60)])
    for time, last in ((COMMITTED + 25, 25), (SystemClock().now(), 60)):
        position = Applier(config, spark, SystemClock(), Event(), until=ToTime(time)).run()
        assert position is not None
        assert position.seqno == last
        assert found(config) == list(range(1, last + 1))


def test_offline_request_ends_this_applier_and_not_the_next(
    config: Config, spark: SparkRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 10)])
    url = config.target.url.get_secret_value()
    (tmp_path / "thl.yaml").write_text(f"service: {config.service}\ntarget: {{url: '{url}'}}\n")
    offline = ["offline", "--config", str(tmp_path / "thl.yaml"), "--reason", "an upgrade"]
    applier = Applier(config, spark, SystemClock(), Event())
    thread = Thread(target=applier.run)
    thread.start()
    wait_for(lambda: applied_or_none(config) == list(range(11)))
    assert cli.run(offline) == 0
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert f"service {config.service} is offline after event 10" in capsys.readouterr().out
    assert applier.request is not None
    assert applier.request.reason == "an upgrade"
    status = applier_status(read_position(url, config.service), LogEnds(), 0, known=True, request=request(config))
    assert (status.state, status.offline_reason) == (ServiceState.OFFLINE, "an upgrade")
    assert cli.run([*offline, "--timeout", "0.1"]) == TargetUnavailable.exit_code
    log.events(inserts(11, 5))
    apply(config, spark, 15)  # what was asked while none was running is asked of none
    assert applied(config) == list(range(16))
    assert request(config) is None


def test_undone_target_is_applied_again_until_consistent(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([create(0), *inserts(1, 30)])
    log.online()
    log.events([record(31, [rows(31)], prev_seqno=-1, last_barrier=0)], 1)
    after = [record(n, [updated(n - 31)], prev_seqno=n - 1 - (n == 32), last_barrier=0) for n in range(32, 50)]
    log.events(after)
    apply(config, spark, 49)
    text = texts(config)
    again = Applier(config, spark, SystemClock(), Event(), until=Seqno(40), first=Seqno(20)).run()
    assert again is not None
    assert (again.seqno, again.epoch, again.consistent, again.rewound_from) == (40, 2, False, 49)
    assert texts(config) == text
    log.events([record(50, [updated(30)], last_barrier=0)])
    end = apply(config, spark, 50)
    assert (end.consistent, end.rewound_from) == (True, NO_SEQNO)
    assert texts(config) == text | {30: "y"}
    assert applied(config) == list(range(51))

    place = SourcePosition("binlog.000001", 1000 + 45)
    once_more = Applier(config, spark, SystemClock(), Event(), until=Seqno(45), first=place).run()
    assert once_more is not None
    assert (once_more.seqno, once_more.rewound_from) == (45, 50)
    with (
        closing(open_target(config.target, SystemClock())) as target,
        open_signal_table(config.target) as signals,
        pytest.raises(ConfigError, match="is applying events again, up to 50") as within,
    ):
        undo(config, target, signals, Seqno(41), SystemClock())
    assert within.value.hint == "thl apply --to-seqno 50 first; nothing was changed"
    with pytest.raises(ConfigError) as refused:
        Applier(config, spark, SystemClock(), Event(), first=Seqno(48)).run()
    assert refused.value.where["next_seqno"] == 46


def test_rewind_over_unrepeatable_events_is_refused_and_changes_nothing(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    keyless = record(2, [rows(9) | {"table": "loose", "key_columns": []}], last_barrier=1)
    partial = record(4, [updated(3) | {"before_present": b"\x01"}], last_barrier=1)
    partial["changes"][0]["rows"][0]["before"] = [3]
    log.events(
        [create(0), record(1, [statement("CREATE TABLE loose (id INT, v VARCHAR(100))")], kind="ddl", shard="#UNKNOWN",
                           last_barrier=0), keyless, record(3, [rows(3)], last_barrier=1), partial]
    )  # fmt: skip
    before = apply(config, spark, 4)
    for first, reason in ((1, "sql"), (2, "keyless"), (3, "partial")):
        with pytest.raises(Unsupported) as refused:
            Applier(config, spark, SystemClock(), Event(), first=Seqno(first)).run()
        table = {"sql": "CREATE TABLE loose", "keyless": "shop.loose", "partial": "shop.orders"}[reason]
        assert str(refused.value.where[reason]).startswith(table)
    nowhere = SourcePosition("binlog.000001", 7)
    with pytest.raises(ConfigError) as unknown:
        Applier(config, spark, SystemClock(), Event(), first=nowhere).run()
    assert unknown.value.where["from_event"] == nowhere
    with closing(open_target(config.target, SystemClock())) as target, open_signal_table(config.target) as signals:
        for to, reason, way_out in ((0, "sql", "--to-seqno 1 or more"), (1, "partial", "--to-seqno of a later event")):
            with pytest.raises(Unsupported, match="cannot be undone") as not_undone:
                undo(config, target, signals, Seqno(to), SystemClock())
            assert reason in not_undone.value.where
            assert not_undone.value.hint == f"nothing was changed; go back less far: {way_out}"
        with pytest.raises(ConfigError, match="there is no event after 4 to undo"):
            undo(config, target, signals, Seqno(4), SystemClock())
    assert apply(config, spark, 4) == before


def test_empty_target_begins_at_the_given_seqno(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    earlier = [record(n, [rows(n)]) for n in range(10)]
    log.events(
        [*earlier, create(10) | {"last_barrier": -1}, *(record(n, [rows(n)], last_barrier=10) for n in (11, 12))]
    )
    position = Applier(config, spark, SystemClock(), Event(), until=Seqno(12), first=Seqno(10)).run()
    assert position is not None
    assert (position.seqno, position.consistent) == (12, False)
    assert found(config) == [11, 12]


def updated(n: int) -> dict[str, Any]:
    return change("update", [([n, "x"], [n, "y"])]) | {"columns": [ID, TEXT]}


def texts(config: Config) -> dict[int, str]:
    with sqlite3.connect(config.target.url.get_secret_value().removeprefix("sqlite:///")) as db:
        return dict(db.execute('SELECT id, v FROM "shop.orders"'))


def test_skipped_event_is_left_out_once_and_recorded(config: Config, spark: SparkRun) -> None:
    def applier(skip: int) -> Applier:
        skips = Skips([Seqno(skip)], "me@here", "why")
        return Applier(config, spark, SystemClock(), Event(), until=Seqno(10), skips=skips)

    log = LogWriter(config)
    log.online()
    log.events([create(0), *inserts(1, 10)])
    for _ in range(2):  # as a supervisor would start it
        position = applier(5).run()
        assert position is not None
        assert position.seqno == 10
    assert found(config) == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert applied(config) == list(range(11))
    with open_signal_table(config.target) as signals:
        doubtful = signals.inconsistent(config.service)
    assert [(one.schema, one.table, one.since) for one in doubtful] == [("shop", "orders", 5)]
    url = config.target.url.get_secret_value()
    status = applier_status(read_position(url, config.service), LogEnds(), 0, known=True, inconsistent=doubtful)
    assert "orders since 5" in problems_of(ProducerStatus(state=ServiceState.ONLINE), status, LagLimits())[-1].text
    with pytest.raises(ConfigError) as refused:
        applier(6).run()
    assert refused.value.where["applied"] == 6


def test_refused_ddl_is_done_by_hand_and_a_later_one_excludes_the_table(config: Config, spark: SparkRun) -> None:
    def applier(until: int, **options: Any) -> TargetPosition | None:
        return Applier(config, spark, SystemClock(), Event(), until=Seqno(until), **options).run()

    def done(seqno: int) -> Skips:
        return Skips((), "me@here", "why", done=Seqno(seqno))

    def ddl(seqno: int, sql: str, barrier: int) -> dict[str, Any]:
        return record(seqno, [statement(sql)], kind="ddl", shard="#UNKNOWN", last_barrier=barrier)

    def whole(*ids: int) -> dict[str, Any]:
        return change("insert", [(None, [n, n]) for n in ids]) | {"columns": [ID, ID | {"name": "v"}]}

    three = [ID, ID | {"name": "v"}, ID | {"name": "n"}]
    file = Path(config.target.url.get_secret_value().removeprefix("sqlite:///"))
    log = LogWriter(config)
    log.online()
    log.events(
        [
            create(0),
            *inserts(1, 3),
            ddl(4, "ALTER TABLE orders MODIFY v INT NOT NULL", 0),
            record(5, [whole(5)], last_barrier=4),
            ddl(6, "ALTER TABLE orders ADD n INT AS (v + 1)", 4),
            record(7, [change("insert", [(None, [7, 7, 8])]) | {"columns": three}], last_barrier=6),
            ddl(8, "CREATE TABLE other (id INT PRIMARY KEY)", 6),
            record(9, [change("insert", [(None, [9])]) | {"table": "other", "columns": [ID]}], last_barrier=8),
        ]
    )
    with pytest.raises(Unsupported) as refused:
        applier(9)
    assert refused.value.where["seqno"] == 4
    assert "thl apply --done-seqno 4 --reason" in refused.value.hint
    assert "thl apply --exclude-table shop.orders --reason" in refused.value.hint
    with pytest.raises(ConfigError) as early:
        applier(9, skips=done(6))
    assert early.value.where["next_seqno"] == 4
    with pytest.raises(TargetDiffers) as not_done:
        applier(9, skips=done(4))
    assert not_done.value.where["table"] == TableName("shop", "orders")
    assert "v INTEGER" in not_done.value.hint
    with closing(sqlite3.connect(file)) as db, db:
        db.execute('ALTER TABLE "shop.orders" DROP COLUMN v')
        db.execute('ALTER TABLE "shop.orders" ADD COLUMN v INTEGER')
    for _ in range(2):  # as a supervisor would start it
        with pytest.raises(Unsupported) as refused_next:
            applier(9, skips=done(4))
        assert refused_next.value.where["seqno"] == 6
    assert found(config) == [1, 2, 3, 5]
    with closing(open_target(config.target, SystemClock())) as target, open_signal_table(config.target) as signals:
        with pytest.raises(Unsupported) as not_undone:
            undo(config, target, signals, Seqno(2), SystemClock())
        assert not_undone.value.where["left_out"] == 4
        assert [(one.table, one.since) for one in signals.inconsistent(config.service)] == [("orders", 4)]
    with pytest.raises(Unsupported) as not_again:
        applier(9, first=Seqno(3))
    assert not_again.value.where["seqno"] == 4

    excluding = ExcludedTables([TableName("shop", "orders")], "me@here", "not wanted here")
    for _ in range(2):
        end = applier(9, excluded=excluding)
        assert end is not None
        assert end.consistent
    assert found(config) == [1, 2, 3, 5]
    with open_signal_table(config.target) as signals:
        excluded = signals.excluded(config.service)
    url = config.target.url.get_secret_value()
    status = applier_status(read_position(url, config.service), LogEnds(), 0, known=True, excluded=excluded)
    assert problems_of(ProducerStatus(state=ServiceState.ONLINE), status, LagLimits())[-1].text == (
        "table is not applied: shop.orders since 6, 1 row changes, by me@here (not wanted here)"
    )
    with closing(sqlite3.connect(file)) as db:
        assert db.execute('SELECT id FROM "shop.other"').fetchall() == [(9,)]
    with (
        closing(open_target(config.target, SystemClock())) as target,
        open_signal_table(config.target) as signals,
        pytest.raises(Unsupported) as excluded_since,
    ):
        undo(config, target, signals, Seqno(4), SystemClock())
    assert excluded_since.value.where == {"excluded": TableName("shop", "orders"), "since_seqno": 6}


def test_undo_of_many_transactions_and_replay_end_equal(
    config: Config, spark: SparkRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    records, states, _ = random_records(Random(1), 2001)
    log = LogWriter(config)
    log.online()
    log.events(records)
    told = {"target": config.target.model_copy(update={"metadata_columns": {"seqno": "thl_seqno"}})}
    many = config.model_copy(update={"apply": config.apply.model_copy(update={"batch_messages": 1000}), **told})
    forward = apply(many, spark, 2000)
    assert texts(config) == states[2000]
    seqnos = written_by(config)
    assert max(seqnos.values()) > 1900
    monkeypatch.setattr("connector.applier.undo.STEP_BYTES", 100_000)
    url = config.target.url.get_secret_value()
    kafka = f"{{bootstrap: '{config.kafka.bootstrap}'}}"
    target = f"{{url: '{url}', transaction_columns: {{seqno: thl_seqno}}}}"
    (tmp_path / "thl.yaml").write_text(f"service: {config.service}\ntarget: {target}\nkafka: {kafka}\n")
    undo = ["undo", "--config", str(tmp_path / "thl.yaml"), "--to-seqno"]
    assert cli.run([*undo, "1200"]) == 0
    assert "is at event 1200: binlog.000001:0000000000002200;7" in capsys.readouterr().out
    assert texts(config) == states[1200]
    assert set(written_by(config).values()) == {None}  # of each row there was a later transaction
    there = read_position(url, config.service)
    assert there is not None
    assert (there.gtid_set, there.consistent) == ("6f1c9a52-0000-11ee-8c99-0242ac120002:1-1201", True)
    assert applied(config) == list(range(1201))
    assert cli.run([*undo, "1300"]) == ConfigError.exit_code
    assert apply(many, spark, 2000) == forward
    assert texts(config) == states[2000]
    assert written_by(config) == seqnos


def test_history_leads_to_the_rows_of_a_log_that_tasks_compact(config: Config, spark: SparkRun) -> None:
    records, states, _ = random_records(Random(2), 2001)
    log = LogWriter(config)
    log.online()
    log.events(records)
    told = {"target": config.target.model_copy(update={"history": ("shop",)})}
    many = config.model_copy(update={"apply": config.apply.model_copy(update={"batch_messages": 1000}), **told})
    apply(many, spark, 2000)
    with sqlite3.connect(config.target.url.get_secret_value().removeprefix("sqlite:///")) as db:
        query = 'SELECT seqno, row_before, row_after FROM "shop__history.orders" ORDER BY seqno, position'
        changes = [row for row in db.execute(query) if row[0]]
    rows: dict[int, str] = {}
    seen = dict[int, dict[int, str]]()
    for seqno, before, after in changes:
        if before is not None:
            del rows[json.loads(before)["id"]]
        if after is not None:
            rows[json.loads(after)["id"]] = json.loads(after)["v"]
        seen[seqno] = dict(rows)
    assert len(changes) == sum(one["rows"] for one in records if one["last_frag"])
    assert seen == {seqno: states[seqno] for seqno in seen}
    assert rows == states[2000] == texts(config)


def written_by(config: Config) -> dict[int, Any]:
    path = config.target.url.get_secret_value().removeprefix("sqlite:///")
    with sqlite3.connect(path) as db:
        return dict(db.execute('SELECT id, thl_seqno FROM "shop.orders"').fetchall())


def request(config: Config) -> Request | None:
    with open_signal_table(config.target) as signals:
        return signals.request(config.service)


def applied_or_none(config: Config) -> list[int] | None:
    try:
        return applied(config)
    except sqlite3.OperationalError:
        return None


def wait_for(condition: Any, seconds: float = 60) -> None:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < end, "waited too long"
        clock.sleep(0.05)


def traced(config: Config, capsys: pytest.CaptureFixture[str], seqno: int) -> dict[str, Any]:
    settings = (f"service={config.service}", f"kafka.bootstrap={config.kafka.bootstrap}")
    url = config.target.url.get_secret_value()
    arguments = [word for one in (*settings, f"target.url={url}") for word in ("--set", one)]
    assert cli.run(["trace", str(seqno), "--format", "json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert cli.run(["trace", str(seqno), *arguments]) == 0
    lines = capsys.readouterr().out
    assert all(found[step]["clock"] in lines for step in ("committed", "published", "applied") if found[step])
    return found


def test_the_way_of_an_event_is_told_with_the_clock_of_each_time(
    config: Config, spark: SparkRun, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogWriter(config)
    log.online()
    began = SystemClock().now()
    log.events([create(0), *inserts(1, 2)])
    resource = ConfigResource(ConfigResource.Type.TOPIC, config.topic)
    resource.add_incremental_config(
        ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(30)
    log.events(inserts(3, 4))
    apply(config, spark, 3)
    unaudited = config.model_copy(update={"target": config.target.model_copy(update={"audit": False})})
    apply(unaudited, spark, 5)

    by_producer, by_broker, before, last, missing = (traced(config, capsys, seqno) for seqno in range(2, 7))
    assert (by_producer["published"]["clock"], by_broker["published"]["clock"]) == ("producer", "broker")
    assert by_broker["committed"]["microseconds"] == record(3, [], last_barrier=0)["commit_time"]
    assert began <= by_broker["published"]["microseconds"] + 1000
    assert by_broker["published"]["microseconds"] <= by_broker["applied"]["microseconds"] <= SystemClock().now()
    assert by_broker["applied"]["from"] == "in thl_applied"
    assert not before["applied"]["exact"]
    assert before["applied"]["from"] == "in thl_position, with event 5; exact with target.audit"
    assert (last["applied"]["from"], last["applied"]["exact"]) == ("in thl_position", True)
    assert (missing["applied"], missing["target"]) == (None, "not yet: the target is at 5")
