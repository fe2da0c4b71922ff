"""Prepared transactions on a real Kafka: stored with the position or not at all, read back, removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.prepared_records import closing_record, message_key, tombstones
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.pending import NOTHING, Pending, PendingSet, Stored
from connector.log.transaction.position import SourcePosition
from connector.producer.publish.queue import Work
from tests.contract.test_publish_log import Log
from tests.contract.test_publish_topics import config_of
from tests.support.servers.environment import Broker

PENDING = Pending(
    xid="X'61',X'',1",
    attempt="1.1",
    batches=1,
    messages=3,
    gtid=None,
    start=SourcePosition("mysql-bin.000002", 4),
    time=5,
)
KEPT = PendingSet([PENDING]).kept
PIECES: Work = [Stored(message_key("1.1", number), b"%d" % number) for number in range(3)]
PASSED = PositionAdvance(SourcePosition("mysql-bin.000002", 900), None)


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    result = config_of(kafka_broker, partitions=2)
    Topics(result).ensure()
    return result


@pytest.fixture
def log(config: Config) -> Iterator[Log]:
    result = Log(config)
    result.online()
    yield result
    result.close()


def read_back(config: Config, start: int = 0) -> list[bytes]:
    with LogReader(config, high_watermark=True) as reader:
        return list(reader.prepared_messages("1.1", start, 3))


def test_a_prepared_transaction_is_read_back_as_pending_with_its_position(config: Config, log: Log) -> None:
    log.publisher.put([Stored(message_key("1.0", 0), b"of an attempt that ended within"), *PIECES])
    assert log.publisher.drain().prepared == NOTHING
    log.publisher.resume()
    with LogReader(config) as reader:
        assert list(reader.prepared().pending) == []
    log.publisher.put([closing_record(PENDING, KEPT), PASSED])
    position = log.publisher.drain()
    assert (position.prepared, position.resume) == (KEPT, PASSED.end)
    assert log.points[-2:] == ["produce.prepared_before_commit", "produce.prepared_after_commit"]
    with LogReader(config) as reader:
        state, stored = reader.prepared(), reader.position()
        assert reader.prepared_end() >= state.end
    assert stored == position
    assert (list(state.pending), state.strays) == ([PENDING], (message_key("1.0", 0),))
    assert read_back(config) == read_back(config, state.starts["1.1"]) == [b"0", b"1", b"2"]
    with pytest.raises(LogDamaged) as refused:
        read_back(config, state.starts["1.1"] + 1)
    assert {"attempt": "1.1", "messages": 3, "found": 0}.items() <= refused.value.where.items()


def test_a_committed_transaction_removes_its_prepared_records(config: Config, log: Log) -> None:
    log.publisher.put([*PIECES, closing_record(PENDING, KEPT), PASSED])
    log.publisher.put([*log.event(), *tombstones(PENDING, NOTHING)])
    position = log.publisher.drain()
    assert (position.last_finished, position.prepared) == (0, NOTHING)
    with LogReader(config) as reader:
        state = reader.prepared()
    assert (list(state.pending), state.starts, state.strays) == ([], {}, ())


def test_an_aborted_kafka_transaction_leaves_no_prepared_records(config: Config, log: Log) -> None:
    log.publisher.put([*PIECES, closing_record(PENDING, KEPT), PASSED])
    log.publisher.drain()
    log.transactions.begin()
    for stored in tombstones(PENDING, NOTHING):
        log.transactions.send(config.prepared_topic, 0, stored.key, stored.value)
    newer = Transactions(config, SystemClock())
    newer.open()  # which aborts it
    with LogReader(config) as reader:
        assert list(reader.prepared().pending) == [PENDING]
    assert read_back(config) == [b"0", b"1", b"2"]
    newer.close()
