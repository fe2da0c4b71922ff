"""The producer on a real Kafka when its source fails, loses transactions or changes them."""

from __future__ import annotations

from contextlib import closing
from threading import Event
from typing import Any

import pytest

from connector import failpoints as faults
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.config.publish import Publish
from connector.config.source import Source
from connector.errors import ConnectorError, HistoriesDiffer, SourceChanged, SourceUnavailable
from connector.kafka.log_reader import LogReader
from connector.kafka.transactions import Transactions
from connector.log.epochs.control import ControlState
from connector.log.transaction.definition import Definitions
from connector.log.transaction.position import PositionRecord
from connector.producer.producer import Producer
from tests.contract.test_publish_topics import config_of
from tests.support.producing import finished, fragments
from tests.support.scripted import UUID, ScriptedSource, transaction
from tests.support.servers.environment import Broker


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    basis = config_of(kafka_broker)
    return Config(
        service=basis.service,
        kafka=Kafka.model_validate(basis.kafka),
        source=Source(restarts_in_event=3),
        publish=Publish(fragment_bytes=100, shard_bytes=300, commit_bytes=100),
    )


def produce(config: Config, source: ScriptedSource) -> PositionRecord:
    source.stop.clear()
    position = Producer(config, source, SystemClock(), source.stop).run()
    assert position is not None
    return position


def control(config: Config) -> ControlState:
    with LogReader(config) as reader:
        return reader.control()


def events(config: Config) -> list[list[dict[str, Any]]]:
    """The finished events, whose seqnos must be dense."""
    result = finished(fragments(config))
    assert [event[0]["seqno"] for event in result] == list(range(len(result)))
    return result


def rows(event: list[dict[str, Any]]) -> list[str]:
    return [row["after"][0] for part in event for change in part["changes"] for row in change["rows"]]


def expected(number: int, pieces: int = 1) -> list[str]:
    return [f"x-{number}-{piece}-{row}" for piece in range(pieces) for row in range(5)]


def test_interrupted_event_is_published_again_in_a_new_epoch(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2, pieces=12), transaction(3)], breaks=[(2, 10)])
    assert produce(config, source).last_finished == 2
    found = events(config)
    assert [rows(event) for event in found] == [expected(1), expected(2, 12), expected(3)]
    assert [event[0]["epoch"] for event in found] == [1, 2, 2]
    assert [record.reason for record in control(config).epochs] == ["online", "went back"]
    given_up = [record for record in fragments(config) if record["epoch"] == 1 and record["seqno"] == 1]
    assert given_up


def test_fragments_name_the_previous_event_of_their_partition_and_the_last_barrier(config: Config) -> None:
    config = config.model_copy(update={"kafka": config.kafka.model_copy(update={"partitions": 3})})
    transactions = [transaction(number, pieces=12 if number % 3 == 0 else 1) for number in range(1, 8)]
    source = ScriptedSource(Event(), transactions, breaks=[(3, 10), (6, 5)])
    produce(config, source)
    source.transactions.append(transaction(8))
    produce(config, source)
    found = [event for partition in range(3) for event in finished(fragments(config, partition))]
    found.sort(key=lambda event: int(event[0]["seqno"]))
    assert [rows(event) for event in found] == [expected(n, 12 if n % 3 == 0 else 1) for n in range(1, 9)]
    assert {event[0]["shard"] for event in found} == {"a", "#UNKNOWN"}
    barriers = [-1, -1, -1, 2, 2, 2, 5, 5]
    assert [event[0]["last_barrier"] for event in found] == barriers
    previous: dict[str, int] = {}
    for event in found:
        assert {part["prev_seqno"] for part in event} == {previous.get(event[0]["shard"], -1)}
        previous[event[0]["shard"]] = event[0]["seqno"]


@pytest.mark.parametrize("where", [(2, 0), (2, 1)])
def test_interruption_between_events_keeps_the_epoch(config: Config, where: tuple[int, int]) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2, pieces=2), transaction(3)], breaks=[where])
    produce(config, source)
    assert [rows(event) for event in events(config)] == [expected(1), expected(2, 2), expected(3)]
    assert len(control(config).epochs) == 1


def test_event_that_always_fails_ends_the_producer(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2, pieces=12)], breaks=[(2, 10)] * 100)
    with pytest.raises(SourceUnavailable) as broken:
        produce(config, source)
    assert broken.value.where == {"transaction": 2, "piece": 10}
    assert len(source.breaks) == 100 - 4
    source.breaks = []
    assert produce(config, source).last_finished == 1
    assert [rows(event) for event in events(config)] == [expected(1), expected(2, 12)]


def test_producer_whose_transaction_kafka_ended_goes_online_again(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the transaction's timeout: the brokers raise the producer's epoch, and the log has no newer one."""

    class Stop(Event):
        """Is set in the second epoch at the earliest."""

        def set(self) -> None:
            if len(producer.ownership.epochs) == 2:
                super().set()

    def end_transaction(name: str) -> None:
        if name == "produce.mid_event_before_commit":
            monkeypatch.setattr(faults, "point", lambda _: None)
            clock.sleep(1.5)
            with closing(Transactions(config, clock)) as other:
                other.open()

    clock = SystemClock()
    monkeypatch.setattr(faults, "point", end_transaction)
    properties = {"transaction.timeout.ms": "1000"}
    config = config.model_copy(update={"kafka": config.kafka.model_copy(update={"properties": properties})})
    source = ScriptedSource(Stop(), [transaction(1), transaction(2, pieces=12), transaction(3)])
    producer = Producer(config, source, clock, source.stop)
    position = producer.run()
    assert position is not None
    assert position.last_finished == 2
    assert [rows(event) for event in events(config)] == [expected(1), expected(2, 12), expected(3)]
    assert [record.reason for record in control(config).epochs] == ["online", "online"]


def test_restart_compares_the_last_transaction(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2, pieces=12)])
    produce(config, source)
    source.transactions.append(transaction(3))
    assert produce(config, source).last_finished == 2
    assert [rows(event) for event in events(config)] == [expected(1), expected(2, 12), expected(3)]


@pytest.mark.parametrize("other", [transaction(2, text="y"), transaction(2, rows=4)])
def test_another_transaction_under_the_same_gtid_is_refused(config: Config, other: list[Any]) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2)])
    produce(config, source)
    before = control(config), fragments(config)
    source.transactions[1] = other
    with pytest.raises(HistoriesDiffer) as refused:
        produce(config, source)
    assert refused.value.where["gtid"] == f"{UUID}:2"
    assert refused.value.where["logged"] != refused.value.where["found"]
    assert (control(config), fragments(config)) == before


def test_source_without_the_last_transaction_is_refused(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2)])
    produce(config, source)
    source.lost.add(2)
    with pytest.raises(HistoriesDiffer) as not_sent:
        produce(config, source)
    assert (not_sent.value.where["gtid"], not_sent.value.where["found"]) == (f"{UUID}:2", "nothing")
    del source.transactions[1]
    with pytest.raises(HistoriesDiffer) as forgotten:
        produce(config, source)
    assert forgotten.value.where["trapped"] == f"{UUID}:2"


def test_source_that_changes_a_transaction_while_running_is_refused(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2)], breaks=[(2, 0)])
    after = source.after

    def lie(position: PositionRecord, tables: Definitions | None = None) -> Any:
        stream = after(position, tables)
        source.transactions[0] = transaction(1, text="y")
        return stream

    source.after = lie  # type: ignore[method-assign]
    with pytest.raises(HistoriesDiffer):
        produce(config, source)
    assert [rows(event) for event in events(config)] == [expected(1)]


def test_purged_last_transaction_is_not_compared(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1), transaction(2)])
    produce(config, source)
    source.purged.add(2)
    source.transactions.append(transaction(3))
    assert produce(config, source).last_finished == 2


@pytest.mark.parametrize("failure", [SourceChanged("DDL"), SourceUnavailable("gone")])
def test_initial_load_whose_definitions_are_not_read_begins_at_the_next_attempt(
    config: Config, failure: SourceChanged | SourceUnavailable
) -> None:
    source = ScriptedSource(Event(), [transaction(1)], loads=True, snapshot_failures=[failure])
    position = produce(config, source)
    assert not source.snapshot_failures
    assert not position.snapshot
    assert snapshot_parts(config)[:3] == ["begin", None, "end"]


def test_round_that_does_not_open_is_opened_again_within_the_same_load(config: Config) -> None:
    failures: list[ConnectorError] = [SourceChanged("DDL"), SourceUnavailable("gone")]
    source = ScriptedSource(LoadedStop(), [], loads=True, load_failures=failures)
    source.stop.source = source  # type: ignore[attr-defined]
    produce(config, source)
    assert not source.load_failures
    found = events(config)
    assert [event[0]["metadata"].get("snapshot", event[0]["metadata"].get("load_part")) for event in found] == [
        "begin", "begin", "end", "rows", "end",
    ]  # fmt: skip
    assert rows(found[3]) == [f"loaded-{row}" for row in range(5)]


def test_initial_load_stopped_before_its_end_begins_again_at_the_next_start(config: Config) -> None:
    source = ScriptedSource(Event(), [transaction(1)], loads=True, stop_in_load=True)
    assert produce(config, source).snapshot
    source.stop_in_load = False
    assert not produce(config, source).snapshot
    parts = snapshot_parts(config)
    last = len(parts) - 1 - parts[::-1].index("begin")
    assert parts[last : last + 3] == ["begin", None, "end"]
    assert expected(1) in [rows(event) for event in events(config)[last + 3 :]]


class LoadedStop(Event):
    """Is set once a stream has ended and the tables are loaded."""

    source: ScriptedSource

    def set(self) -> None:
        if self.source.rounds_read:
            super().set()


def snapshot_parts(config: Config) -> list[str | None]:
    return [event[0]["metadata"].get("snapshot") for event in events(config)]
