"""A source whose commits wait gets an acknowledgement of what Kafka has committed: all of it, at once, and no more."""

from __future__ import annotations

import socket
import struct
from contextlib import closing, nullcontext
from dataclasses import replace
from threading import Condition
from typing import Any

import pytest
from prometheus_client import REGISTRY

from connector.clock import SystemClock
from connector.config.model import Config
from connector.config.publish import Publish
from connector.kafka.records import position_record
from connector.log.epochs.control import ControlState
from connector.log.ids import LogId
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.writing.online import SourceFound, TailFound, decide
from connector.mysql.server.semi_sync import SemiSyncAcknowledger, SemiSyncState, acknowledgement, semi_sync_problem
from connector.mysql.server.shared_socket import SharedSocket
from connector.producer import semi_sync_monitor
from connector.producer.publish.publisher import Publisher
from tests.support.clock import PATIENCE
from tests.unit.producer.test_replica_gate import PLACE, UUID, Kafka, encoder, event

CONFIG = Config(service="s", publish=Publish(idle_position_seconds=3600, fragment_bytes=50, shard_bytes=50))


class Source:
    """Remembers acknowledgements; each is compared with what Kafka has at that moment."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._changed = Condition()
        self.acknowledged: list[PositionRecord] = []

    def acknowledge(self, position: PositionRecord) -> None:
        assert not self._kafka.open
        newest = next(value for topic, value in reversed(self._kafka.committed) if topic == CONFIG.position_topic)
        assert position == position_record(newest or b"")
        with self._changed:
            self.acknowledged.append(position)
            self._changed.notify()

    def until(self, resume: SourcePosition) -> PositionRecord:
        """Wait for the acknowledgement of a position."""
        with self._changed:
            reached = self._changed.wait_for(lambda: self.acknowledged[-1].resume == resume, PATIENCE)
            assert reached, self.acknowledged[-1]
            return self.acknowledged[-1]


def publisher(kafka: Kafka, source: Source) -> Publisher:
    facts = SourceFound(source_id="db:1", server_uuid="u", now=0, log_id=LogId("a" * 32), start=PLACE, gtid_set="")
    plan = decide(ControlState(None, None, ()), None, {0: TailFound()}, facts)
    made = Publisher(CONFIG, kafka, SystemClock(), lambda _: None, acknowledger=source)  # type: ignore[arg-type]
    made.online(plan, [])
    return made


def test_position_of_each_kafka_commit_is_acknowledged_after_it() -> None:
    kafka = Kafka()
    source = Source(kafka)
    by, made = publisher(kafka, source), encoder()
    assert source.until(PLACE).gtid_set == ""
    for number in range(1, 4):
        fragments = event(made, f"{UUID}:{number}")
        by.put(fragments)
        until = source.until(fragments[-1].resume)
        assert until.gtid_set in (f"{UUID}:1", f"{UUID}:1-{number}")
    by.end()


def test_filtered_transaction_is_acknowledged_without_the_timer() -> None:
    kafka = Kafka()
    source = Source(kafka)
    by = publisher(kafka, source)
    for offset in (6000, 7000):
        by.put([PositionAdvance(SourcePosition(PLACE.file, offset), None)])
        source.until(SourcePosition(PLACE.file, offset))
    by.end()


def test_unfinished_event_is_not_acknowledged_by_what_follows_it() -> None:
    kafka = Kafka()
    source = Source(kafka)
    by = publisher(kafka, source)
    fragments = event(encoder(), f"{UUID}:1", 4)
    by.put(fragments[:-1])
    by.put([PositionAdvance(SourcePosition(PLACE.file, 9000), None)])
    by.drain()
    assert {position.resume for position in source.acknowledged} == {PLACE}
    by.resume()
    by.put(fragments[-1:])
    source.until(fragments[-1].resume)
    by.end()


@pytest.fixture
def wire() -> Any:
    here, there = socket.socketpair()
    there.settimeout(0.05)
    with closing(SharedSocket(here)) as shared, there:
        yield shared, there


def record(server: str = "u", **changed: Any) -> PositionRecord:
    made = PositionRecord(finished=None, resume=PLACE, gtid_set=None, open=None, tails={}, server_uuid=server)
    return replace(made, **changed)


def test_acknowledgement_is_a_packet_with_number_0_that_names_file_and_offset(wire: Any) -> None:
    shared, there = wire
    by = SemiSyncAcknowledger("s")
    by.connected(shared, "u")
    by.acknowledge(record(resume=SourcePosition("mysql-bin.000002", 5 << 32)))
    packet = there.recv(100)
    assert packet == b"\x19\0\0\0\xef" + struct.pack("<Q", 5 << 32) + b"mysql-bin.000002"
    assert packet == acknowledgement("mysql-bin.000002", 5 << 32)


def test_new_connection_begins_with_the_newest_acknowledgement(wire: Any) -> None:
    shared, there = wire
    by = SemiSyncAcknowledger("s")
    by.acknowledge(record())
    by.acknowledge(record(resume=SourcePosition(PLACE.file, 7000)))
    by.connected(shared, "u")
    assert there.recv(100) == acknowledgement(PLACE.file, 7000)


@pytest.mark.parametrize(
    "position",
    [record("another"), record(""), record(snapshot=True), record(resume=SourcePosition("", 0))],
    ids=["of another server", "of an unknown server", "of an initial load", "of no file"],
)
def test_position_that_means_nothing_to_the_server_is_not_acknowledged(wire: Any, position: PositionRecord) -> None:
    shared, there = wire
    by = SemiSyncAcknowledger("s")
    by.connected(shared, "u")
    by.acknowledge(position)
    with pytest.raises(TimeoutError):
        there.recv(100)


def test_lost_connection_ends_no_publisher(wire: Any) -> None:
    shared, there = wire
    by = SemiSyncAcknowledger("s")
    by.connected(shared, "u")
    there.close()
    by.acknowledge(record())
    shared.close()
    by.acknowledge(record())


USUAL: dict[str, Any] = {
    "plugin": "rpl_semi_sync_source", "enabled": True, "on": True, "replicas": 1, "needed": 1, "waited": 5,
    "not_waited": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "connected", "words"),
    [
        (None, True, "has no semi-synchronous replication"),
        ({"on": False}, True, "is OFF, until this producer has caught up"),
        (
            {"on": False, "enabled": False},
            True,
            "on the source rpl_semi_sync_source_enabled is OFF: SET GLOBAL rpl_semi_sync_source_enabled = ON",
        ),
        ({"on": False, "enabled": False, "plugin": "rpl_semi_sync_master"}, False, "rpl_semi_sync_master_enabled = ON"),
        ({}, True, ""),
        ({"replicas": 2}, True, "waits for 1 of its 2"),
        ({"replicas": 2, "needed": 2}, True, ""),
        ({"replicas": 3, "needed": 2}, True, "waits for 2 of its 3"),
        ({"replicas": 0}, False, ""),
        ({"replicas": 1}, False, "waits for 1 of its 1"),
    ],
)
def test_promise_holds_only_if_no_other_replica_is_enough(
    state: dict[str, Any] | None, connected: bool, words: str
) -> None:
    problem = semi_sync_problem(None if state is None else SemiSyncState(**(USUAL | state)), connected=connected)
    assert bool(problem) == bool(words)
    assert words in problem


@pytest.mark.parametrize(("connected", "on"), [(True, 1.0), (False, 0.0)])
def test_monitor_counts_another_replica_while_the_producer_is_not_connected(
    connected: bool, on: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(service=f"semi_sync_{connected}")
    monkeypatch.setattr(semi_sync_monitor, "session", lambda _: nullcontext())
    monkeypatch.setattr(semi_sync_monitor, "read_state", lambda _: SemiSyncState(**USUAL))
    monkeypatch.setattr(semi_sync_monitor, "is_read", lambda _, server_id: connected, raising=False)
    semi_sync_monitor.SemiSyncMonitor(config).probe()
    assert REGISTRY.get_sample_value("thl_semi_sync_on", {"service": config.service}) == on
